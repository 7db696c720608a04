"""A generative model that knows only scores, of the data under many blurs (book sec. 13.2.7; Song and Ermon 2019)."""

from math import prod

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from parnassus.diffusion.annealed_langevin import annealed_langevin
from parnassus.diffusion.process import spread
from parnassus.diffusion.score_matching import matching_at_levels


class ScoreModel(nn.Module):
    """One network for the score of the data blurred by each σ_t, and annealed Langevin dynamics to draw from it.

        s(x, t) = −ε_θ(x / √(1 + σ_t²), t) / σ_t
        loss    = E σ_t² ‖s(x_t, t) − (x − x_t)/σ_t²‖² over uniform t              (book eq. 13.89)

    `network(x, t)` may be any denoiser: its input has about unit variance at every level when the data have, and what
    it gives is the noise, whose size does not depend on the level.
    """

    levels: Tensor

    def __init__(self, network: nn.Module, shape: tuple[int, ...], levels: Float[Tensor, " levels"]) -> None:
        super().__init__()
        if not len(levels) or not bool((levels > 0).all()) or bool((levels[1:] <= levels[:-1]).any()):
            raise ValueError(f"levels must be positive and rise from level 0 on; got levels={levels.tolist()}")
        self.network = network
        self.shape = tuple(shape)
        self.register_buffer("levels", levels.float(), persistent=False)

    def score(self, x: Float[Tensor, "batch *event"], t: Int[Tensor, " batch"]) -> Float[Tensor, "batch *event"]:
        """∇ log p_{σ_t}(x), as far as it is learned."""
        std = spread(self.levels, t, x)
        noise: Tensor = self.network(x * (1 + std.square()).rsqrt(), t)
        return -noise / std

    def loss(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, ""]:
        """Denoising score matching at one random level for each example, per coordinate (book eq. 13.89)."""
        t = torch.randint(len(self.levels), (len(x),), device=x.device)
        per_example = matching_at_levels(self.score, self.levels, x, t, torch.randn_like(x))
        return per_example.mean() / prod(self.shape)

    @torch.no_grad()
    def sample(self, count: int, *, steps: int = 100, factor: float = 0.1) -> Float[Tensor, "count *event"]:
        """`count` new examples: annealed Langevin dynamics from σ_T ε, and at its end a last step without noise.

        That step is Tweedie's, E[x_0 | x] = x + σ_1² s(x, 1): it takes the smallest blur off.
        """
        start = self.levels[-1] * torch.randn(count, *self.shape, device=self.levels.device)
        x = annealed_langevin(self.score, self.levels, start, steps=steps, factor=factor)
        first = torch.zeros(count, dtype=torch.long, device=x.device)
        return x + self.levels[0].square() * self.score(x, first)
