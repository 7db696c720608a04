"""Gradient clipping for stacked weights: the norm of each learner is limited independently."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn


def clip_grad_norm_per_learner(
    parameters: Sequence[nn.Parameter], max_norm: float, *, num_learners: int
) -> Float[Tensor, " learners"]:
    """Scale each learner's gradient down to `max_norm` if it is larger; return the norms before clipping.

    Each stack holds one or several layers of every learner, layer by layer.
    """
    gradients = [p.grad for p in parameters if p.grad is not None]
    norms = _norms(gradients, num_learners)
    if num_learners == 1 and norms.is_cpu:
        norm = float(norms)
        if norm > max_norm:
            torch._foreach_mul_(gradients, max_norm / (norm + 1e-6))
        return norms
    if norms.is_cpu and not bool((norms > max_norm).any()):
        return norms
    scale = (max_norm / (norms + 1e-6)).clamp_(max=1.0)[:, None]
    torch._foreach_mul_([_rows_by_learner(each, num_learners) for each in gradients], [scale] * len(gradients))
    return norms


def _norms(gradients: list[Tensor], num_learners: int) -> Float[Tensor, " learners"]:
    if num_learners == 1:
        parts: Tensor = gradients[0] if len(gradients) == 1 else torch.stack(torch._foreach_norm(gradients))
        norm: Tensor = torch.linalg.vector_norm(parts)
        return norm.view(1)
    rows = [layer for gradient in gradients for layer in _rows_by_learner(gradient, num_learners).unbind()]
    norms: Tensor = torch.linalg.vector_norm(torch.cat(rows, 1), dim=1)
    return norms


def _rows_by_learner(gradient: Tensor, num_learners: int) -> Float[Tensor, "layers learners numbers"]:
    return gradient.view(-1, num_learners, gradient[0].numel())
