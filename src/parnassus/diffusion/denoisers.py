"""Networks that find the noise in x_t, told the time step and, where there is one, the class (book sec. 13.2.4)."""

from math import log, prod

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import silu

from parnassus.attention.sinusoidal import waves


def sinusoidal_embedding(
    t: Int[Tensor, " batch"], width: int, period: float = 10_000.0
) -> Float[Tensor, "batch width"]:
    """sin(ω_i t) and cos(ω_i t) at width/2 frequencies ω_i from 1 down to 1/period, in geometric order.

    ⟨e(s), e(t)⟩ = Σ_i cos(ω_i (s − t)): near steps get like codes, and only their distance counts.
    """
    if width % 2:
        raise ValueError(f"width must be even, a sine and a cosine for each frequency; got width={width}")
    omega = torch.exp(-log(period) * torch.linspace(0, 1, width // 2, device=t.device))
    return waves(t, omega).flatten(1)


class Condition(nn.Module):
    """One vector for what the denoiser must know beside x_t: the time step and, with `classes`, the label.

    Label number `classes` is the null label, which stands for "any class"; a missing label means it too.
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
        code: Tensor = self.second(silu(self.first(sinusoidal_embedding(t, self.width).to(self.first.weight))))
        if self.label is None:
            if label is not None:
                raise ValueError("this denoiser knows no classes: build it with classes=… before giving labels")
            return code
        known: Tensor = self.label(torch.full_like(t, self.null) if label is None else label)
        return code + known


class ResidualBlock(nn.Module):
    """h + W₂ silu(W₁ ((1 + γ) ⊙ norm(h) + β)), where the condition gives γ and β (FiLM, book sec. 13.3)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.film = nn.Linear(width, 2 * width)
        self.expand = nn.Linear(width, width)
        self.contract = nn.Linear(width, width)
        nn.init.zeros_(self.contract.weight)  # each block begins as the identity
        nn.init.zeros_(self.contract.bias)

    def forward(
        self, h: Float[Tensor, "batch width"], code: Float[Tensor, "batch width"]
    ) -> Float[Tensor, "batch width"]:
        gamma, beta = self.film(silu(code)).chunk(2, dim=1)
        update: Tensor = self.contract(silu(self.expand((1 + gamma) * self.norm(h) + beta)))
        return h + update


class ResidualMLP(nn.Module):
    """Residual blocks on the flattened example, each told the time step and the class (book sec. 13.2.4)."""

    def __init__(self, shape: tuple[int, ...], width: int = 384, *, blocks: int = 3, classes: int = 0) -> None:
        super().__init__()
        self.shape = tuple(shape)
        self.condition = Condition(width, classes)
        self.enter = nn.Linear(prod(shape), width)
        self.blocks = nn.ModuleList(ResidualBlock(width) for _ in range(blocks))
        self.leave = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, prod(shape)))

    def forward(
        self,
        x: Float[Tensor, "batch *event"],
        t: Int[Tensor, " batch"],
        label: Int[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, "batch *event"]:
        code = self.condition(t, label)
        h = self.enter(x.flatten(1))
        for block in self.blocks:
            h = block(h, code)
        noise: Tensor = self.leave(h)
        return noise.reshape(x.shape)


class TimeMLP(nn.Module):
    """A light network for points in the plane: h ← h + W silu((1 + V e(t)) ⊙ h), three times.

    Time multiplies every layer: beside its many sines, two coordinates would be overheard at the input.
    """

    def __init__(self, features: int, width: int = 128, *, layers: int = 3) -> None:
        super().__init__()
        self.width = width
        self.enter = nn.Linear(features, width)
        self.times = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.leave = nn.Linear(width, features)

    def forward(self, x: Float[Tensor, "batch d"], t: Int[Tensor, " batch"]) -> Float[Tensor, "batch d"]:
        code = sinusoidal_embedding(t, self.width).to(x)
        h = self.enter(x)
        for time, layer in zip(self.times, self.layers, strict=True):
            h = h + layer(silu((1 + time(code)) * h))
        noise: Tensor = self.leave(silu(h))
        return noise
