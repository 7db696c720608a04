"""MLP denoisers conditioned on the time step and, optionally, the class (book sec. 13.2.4)."""

from math import prod

from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import silu

from parnassus.diffusion.networks.timestep_embedding import ConditionEmbedding, sinusoidal_embedding


class ResidualBlock(nn.Module):
    """h + W₂ silu(W₁ ((1 + γ) ⊙ norm(h) + β)), with γ and β from the condition (FiLM, book sec. 13.3)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.film = nn.Linear(width, 2 * width)
        self.expand = nn.Linear(width, width)
        self.contract = nn.Linear(width, width)
        nn.init.zeros_(self.contract.weight)  # each block is initially the identity
        nn.init.zeros_(self.contract.bias)

    def forward(
        self, h: Float[Tensor, "batch width"], embedding: Float[Tensor, "batch width"]
    ) -> Float[Tensor, "batch width"]:
        gamma, beta = self.film(silu(embedding)).chunk(2, dim=1)
        update: Tensor = self.contract(silu(self.expand((1 + gamma) * self.norm(h) + beta)))
        return h + update


class ResidualMLP(nn.Module):
    """Residual blocks on the flattened example, conditioned on time step and class (book sec. 13.2.4).

    >>> ResidualMLP((1, 8, 8), 32, blocks=1)(torch.zeros(2, 1, 8, 8), torch.tensor([0, 9])).shape
    torch.Size([2, 1, 8, 8])
    """

    def __init__(self, shape: tuple[int, ...], width: int = 384, *, blocks: int = 3, classes: int = 0) -> None:
        super().__init__()
        self.shape = tuple(shape)
        self.condition = ConditionEmbedding(width, classes)
        self.proj_in = nn.Linear(prod(shape), width)
        self.blocks = nn.ModuleList(ResidualBlock(width) for _ in range(blocks))
        self.proj_out = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, prod(shape)))

    def forward(
        self,
        x: Float[Tensor, "batch *event"],
        t: Int[Tensor, " batch"],
        label: Int[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, "batch *event"]:
        embedding = self.condition(t, label)
        h = self.proj_in(x.flatten(1))
        for block in self.blocks:
            h = block(h, embedding)
        noise: Tensor = self.proj_out(h)
        return noise.reshape(x.shape)


class TimeMLP(nn.Module):
    """A small denoiser for points: h ← h + W silu((1 + V e(t)) ⊙ h) in each layer.

    The time embedding multiplies every layer, since concatenated to the input it would dominate few coordinates.

    >>> TimeMLP(2, width=16)(torch.zeros(5, 2), torch.arange(5)).shape
    torch.Size([5, 2])
    """

    def __init__(self, features: int, width: int = 128, *, layers: int = 3) -> None:
        super().__init__()
        self.width = width
        self.proj_in = nn.Linear(features, width)
        self.times = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.proj_out = nn.Linear(width, features)

    def forward(self, x: Float[Tensor, "batch d"], t: Int[Tensor, " batch"]) -> Float[Tensor, "batch d"]:
        embedding = sinusoidal_embedding(t, self.width).to(x)
        h = self.proj_in(x)
        for time, layer in zip(self.times, self.layers, strict=True):
            h = h + layer(silu((1 + time(embedding)) * h))
        noise: Tensor = self.proj_out(silu(h))
        return noise
