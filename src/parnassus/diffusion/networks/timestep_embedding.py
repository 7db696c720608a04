"""Sinusoidal embedding of time steps, and embedding of time step and class (book sec. 13.2.4)."""

from math import log

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import silu

from parnassus.attention.positions.sinusoidal import sines_and_cosines


def sinusoidal_embedding(
    t: Int[Tensor, " batch"], width: int, period: float = 10_000.0
) -> Float[Tensor, "batch width"]:
    """sin(ω_i t) and cos(ω_i t) at width/2 frequencies ω_i from 1 down to 1/period, in geometric order.

    ⟨e(s), e(t)⟩ = Σ_i cos(ω_i (s − t)): similarity depends on the distance of the steps only.
    """
    if width % 2:
        raise ValueError(f"width must be even, for sines and cosines; got width={width}")
    omega = torch.exp(-log(period) * torch.linspace(0, 1, width // 2, device=t.device))
    return sines_and_cosines(t, omega).flatten(1)


class ConditionEmbedding(nn.Module):
    """One vector for the time step and, with `classes`, the class label.

    Label `classes` is the null label (unconditional), also used if no label is given.
    """

    def __init__(self, width: int, classes: int = 0) -> None:
        super().__init__()
        self.width = width
        self.null = classes
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)
        self.label = nn.Embedding(classes + 1, width) if classes else None

    def forward(
        self, t: Int[Tensor, " batch"], label: Int[Tensor, " batch"] | None = None
    ) -> Float[Tensor, "batch width"]:
        embedding: Tensor = self.second(silu(self.first(sinusoidal_embedding(t, self.width).to(self.first.weight))))
        if self.label is None:
            if label is not None:
                raise ValueError("label must be None for a denoiser without classes; build it with classes=…")
            return embedding
        label_embedding: Tensor = self.label(torch.full_like(t, self.null) if label is None else label)
        return embedding + label_embedding
