"""Parameters of a small network as views of one flat vector, so that one operation updates them all."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.reinforcement.fast.gradient_clipping import clip_grad_norm_per_learner

CACHE_LINE = 16
"""Number of values per cache line; every parameter begins at a cache line, like a separately allocated tensor."""


class FlatParameters:
    """Parameters that become views of one vector, with their gradients as views of another.

    They remain the same parameters, with the same shapes, values and gradients. The padding between the views is zero
    and has gradient 0.
    """

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        self.parameters = list(parameters)
        first = self.parameters[0]
        if any((own.device, own.dtype) != (first.device, first.dtype) for own in self.parameters):
            raise ValueError(
                "all parameters must have one device and one dtype; got "
                f"{sorted({f'{own.device} {own.dtype}' for own in self.parameters})}"
            )
        self.vector = nn.Parameter(self.flatten([own.detach() for own in self.parameters]), requires_grad=False)
        self.vector.grad = torch.zeros_like(self.vector)
        self.gradients = self.views(self.vector.grad)
        for own, part, gradient in zip(self.parameters, self.views(self.vector), self.gradients, strict=True):
            if own.grad is not None:
                gradient.copy_(own.grad.detach())
            own.data, own.grad = part, gradient

    def flatten(self, tensors: Sequence[Tensor]) -> Float[Tensor, " numbers"]:
        """Tensors of the parameters' shapes as one padded vector."""
        return torch.cat([nn.functional.pad(own.flatten(), (0, -own.numel() % CACHE_LINE)) for own in tensors])

    def views(self, vector: Float[Tensor, " numbers"]) -> list[Tensor]:
        """The parts of such a vector as views of the parameters' shapes."""
        padded = vector.split([own.numel() + -own.numel() % CACHE_LINE for own in self.parameters])
        return [part[: own.numel()].view_as(own) for part, own in zip(padded, self.parameters, strict=True)]

    def zero_grad(self) -> None:
        """Zero all gradients; gradients kept elsewhere become views of the flat one again."""
        assert self.vector.grad is not None
        self.vector.grad.zero_()
        for own, gradient in zip(self.parameters, self.gradients, strict=True):
            own.grad = gradient

    def clipped_gradient(self, max_norm: float, num_learners: int) -> Float[Tensor, " numbers"]:
        """The gradient, each learner's scaled down to `max_norm`; other gradients are copied in first."""
        for own, gradient in zip(self.parameters, self.gradients, strict=True):
            if own.grad is not gradient:
                if own.grad is None:
                    raise ValueError(f"every parameter needs a gradient; one of shape {list(own.shape)} has none")
                gradient.copy_(own.grad.detach())
                own.grad = gradient
        if max_norm < torch.inf:
            parameters = [self.vector] if num_learners == 1 else self.parameters
            clip_grad_norm_per_learner(parameters, max_norm, num_learners=num_learners)
        assert self.vector.grad is not None
        return self.vector.grad

    def flatten_state(self, state: dict[Any, dict[str, Any]], names: Sequence[str]) -> tuple[Tensor, ...]:
        """The step count and one flat vector per name of an optimiser's state; zeros where it has none yet.

        The state's own tensors become views of these vectors.
        """
        counts = [state[own]["step"] for own in self.parameters if state[own]]
        if any(float(count) != float(counts[0]) for count in counts):
            raise ValueError(
                f"all parameters must have taken the same number of steps; got {[float(each) for each in counts]}"
            )
        count = counts[0].clone() if counts else torch.zeros((), device=self.vector.device)
        old = [[state[own].get(name, torch.zeros_like(own)) for own in self.parameters] for name in names]
        vectors = [self.flatten([each.detach() for each in own]) for own in old]
        parts = zip(*(self.views(vector) for vector in vectors), strict=True)
        for own, each in zip(self.parameters, parts, strict=True):
            state[own].update({"step": count, **dict(zip(names, each, strict=True))})
        return count, *vectors
