"""Noise-conditional score network (NCSN) (Song and Ermon 2019; book sec. 13.2.7)."""

from math import prod

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from parnassus.arrays import accepts_arrays
from parnassus.diffusion.chain.forward_process import extract
from parnassus.diffusion.samplers.annealed_langevin import annealed_langevin
from parnassus.diffusion.scores.noise_levels import check_levels
from parnassus.diffusion.scores.score_matching import multiscale_score_matching


class ScoreModel(nn.Module):
    """One network for the scores of the data at all noise levels σ_t, with annealed Langevin sampling.

        s(x, t) = −ε_θ(x / √(1 + σ_t²), t) / σ_t
        loss    = E σ_t² ‖s(x_t, t) − (x − x_t)/σ_t²‖² over uniform t              (book eq. 13.89)

    `network(x, t)` may be any denoiser: its input has about unit variance at every level if the data have, and its
    output is the noise, of unit variance at every level.

    >>> model = ScoreModel(TimeMLP(2, 16), (2,), geometric_levels(5, 0.1, 1.0))
    >>> model.sample(10, steps=2).shape
    torch.Size([10, 2])
    """

    levels: Tensor

    def __init__(self, network: nn.Module, shape: tuple[int, ...], levels: Float[Tensor, " levels"]) -> None:
        super().__init__()
        check_levels(levels)
        self.network = network
        self.shape = tuple(shape)
        self.register_buffer("levels", levels.float(), persistent=False)

    def score(self, x: Float[Tensor, "batch *event"], t: Int[Tensor, " batch"]) -> Float[Tensor, "batch *event"]:
        """The learned score ∇ log p_{σ_t}(x)."""
        std = extract(self.levels, t, x)
        noise: Tensor = self.network(x * (1 + std.square()).rsqrt(), t)
        return -noise / std

    @accepts_arrays
    def loss(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, ""]:
        """Denoising score matching at one random level per example, per coordinate (book eq. 13.89)."""
        t = torch.randint(len(self.levels), (len(x),), device=x.device)
        per_example = multiscale_score_matching(self.score, self.levels, x, t, torch.randn_like(x))
        return per_example.mean() / prod(self.shape)

    @torch.no_grad()
    def sample(self, count: int, *, steps: int = 100, factor: float = 0.1) -> Float[Tensor, "count *event"]:
        """`count` samples by annealed Langevin dynamics from σ_T ε and a final denoising step.

        The final step is Tweedie's formula E[x_0 | x] = x + σ_1² s(x, 1).
        """
        start = self.levels[-1] * torch.randn(count, *self.shape, dtype=self.levels.dtype, device=self.levels.device)
        x = annealed_langevin(self.score, self.levels, start, steps=steps, factor=factor)
        first = torch.zeros(count, dtype=torch.long, device=x.device)
        return x + self.levels[0].square() * self.score(x, first)
