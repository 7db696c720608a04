"""Generative adversarial networks: a generator that forges, a discriminator that judges (Diehl sec. 5.2).

    min_G max_D  E log D(x) + E log(1 − D(G(z)))                                          (Goodfellow et al. 2014)

The notes tell it in words. A discriminator gives logits a, with D = sigmoid(a), so that no logarithm of 0 is taken:
−log D = softplus(−a) and −log(1 − D) = softplus(a).
"""

from collections.abc import Callable
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import softplus

GeneratorLoss: TypeAlias = Callable[[Tensor], Tensor]
"""From the logits of forgeries to what the generator makes small."""


def discriminator_loss(real: Float[Tensor, " real"], fake: Float[Tensor, " fake"]) -> Float[Tensor, ""]:
    """−E log D(x) − E log(1 − D(G(z))) from logits: two cross-entropies, least for the best judge (Diehl sec. 5.2)."""
    return softplus(-real).mean() + softplus(fake).mean()


def minimax_loss(fake: Float[Tensor, " fake"]) -> Float[Tensor, ""]:
    """E log(1 − D(G(z))), the generator's side of the game as it is stated; flat where the judge is sure."""
    return -softplus(fake).mean()


def non_saturating_loss(fake: Float[Tensor, " fake"]) -> Float[Tensor, ""]:
    """−E log D(G(z)): the same wish, but steep where the judge is sure (Goodfellow et al. 2014)."""
    return softplus(-fake).mean()


def optimal_discriminator(p: Float[Tensor, "*shape"], q: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """D⋆(x) = p(x) / (p(x) + q(x)) for densities p of the data and q of the forgeries; ½ where both are 0.

    With it the game is worth 2 JS(p, q) − log 4, so that the best forger has q = p.
    """
    if not (bool((p >= 0).all()) and bool((q >= 0).all())):
        raise ValueError(f"densities must not be negative; the least are {float(p.min()):g} and {float(q.min()):g}")
    total = p + q
    return torch.where(total > 0, p / total.where(total > 0, 1.0), 0.5)


class GAN(nn.Module):
    """A generator from noise z ~ N(0, 1) of size `noise` to examples, and a discriminator from examples to one logit.

    The two have losses of their own and are trained in turn, each by its own optimiser.
    """

    def __init__(
        self,
        generator: nn.Module,
        discriminator: nn.Module,
        *,
        noise: int,
        generator_loss: GeneratorLoss = non_saturating_loss,
    ) -> None:
        super().__init__()
        if noise < 1:
            raise ValueError(f"the noise needs at least one number; got noise={noise}")
        self.generator = generator
        self.discriminator = discriminator
        self.noise = noise
        self._generator_loss = generator_loss

    def generate(self, count: int) -> Float[Tensor, "{count} *example"]:
        """G(z) for fresh noise, with gradients."""
        device = next(self.generator.parameters()).device
        made: Tensor = self.generator(torch.randn(count, self.noise, device=device))
        return made

    def logits(self, x: Float[Tensor, "count *example"]) -> Float[Tensor, " count"]:
        judged: Tensor = self.discriminator(x)
        return judged[:, 0]

    def discriminator_loss(self, real: Float[Tensor, "count *example"]) -> Float[Tensor, ""]:
        """What the judge makes small, on these examples and as many forgeries; the forger stands still."""
        return discriminator_loss(self.logits(real), self.logits(self.generate(len(real)).detach()))

    def generator_loss(self, count: int) -> Float[Tensor, ""]:
        """What the forger makes small, on `count` forgeries."""
        return self._generator_loss(self.logits(self.generate(count)))

    @torch.no_grad()
    def sample(self, count: int) -> Float[Tensor, "{count} *example"]:
        """`count` forgeries."""
        return self.generate(count)
