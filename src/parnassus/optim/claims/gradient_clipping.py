"""Claims about gradient clipping (Zhao sec. 9)."""

import torch
from torch import nn

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal
from parnassus.optim.optimisers.gradient_clipping import clip_by_global_norm, clip_gradients, global_norm


@claim("Z9.6")
def clipping_projects_onto_a_ball() -> Evidence:
    """min(1, θ/‖g‖) g keeps the direction, is idempotent and is the nearest point of the ball (Zhao sec. 9)."""
    generator = torch.Generator().manual_seed(0)
    g = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in ((3, 2), (4,), (2,))]
    gradient, max_norm = torch.cat([part.flatten() for part in g]), 0.5
    clipped = torch.cat([part.flatten() for part in clip_by_global_norm(g, max_norm)])
    inside = torch.randn(5_000, 12, generator=generator, dtype=torch.float64)
    inside = max_norm * inside / inside.norm(dim=1, keepdim=True).clamp(min=1.0)
    weights = [nn.Parameter(torch.zeros_like(part)) for part in g]
    for weight, part in zip(weights, g, strict=True):
        weight.grad = part.clone()
    torch_weights = [nn.Parameter(weight.detach().clone()) for weight in weights]
    for weight, part in zip(torch_weights, g, strict=True):
        weight.grad = part.clone()
    norm = clip_gradients(weights, max_norm)
    nn.utils.clip_grad_norm_(torch_weights, max_norm)
    in_place = torch.cat([weight.grad.flatten() for weight in weights if weight.grad is not None])
    by_torch = torch.cat([weight.grad.flatten() for weight in torch_weights if weight.grad is not None])
    zero = [torch.zeros(3, dtype=torch.float64)]
    return all_of(
        length=close(clipped.norm(), max_norm, rtol=1e-12),
        direction=close(clipped @ gradient / (clipped.norm() * gradient.norm()), 1.0, rtol=1e-12),
        idempotent=close(
            torch.cat([part.flatten() for part in clip_by_global_norm(clip_by_global_norm(g, max_norm), max_norm)]),
            clipped,
            atol=1e-15,
        ),
        nearest=greater_equal((inside - gradient).norm(dim=1), (clipped - gradient).norm()),
        short_gradient_unchanged=close(torch.cat([part.flatten() for part in clip_by_global_norm(g, 100.0)]), gradient),
        zero_unchanged=close(clip_by_global_norm(zero, max_norm)[0], 0.0),
        in_place=close(in_place, clipped, atol=1e-15),
        norm=close(norm, global_norm(g), rtol=1e-15),
        matches_torch=close(by_torch, clipped, rtol=1e-6),
    )
