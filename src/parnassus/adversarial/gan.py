"""Generative adversarial networks: generator, discriminator and their losses (Diehl sec. 5.2).

    min_G max_D  E log D(x) + E log(1 − D(G(z)))                                          (Goodfellow et al. 2014)

The notes describe it in words. The discriminator outputs logits a with D = sigmoid(a), for numerical stability:
−log D = softplus(−a) and −log(1 − D) = softplus(a).
"""

from collections.abc import Callable
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import softplus

from parnassus.errors import check_at_least_one
from parnassus.layers import check_logit_network
from parnassus.losses import check_logits

GeneratorLoss: TypeAlias = Callable[[Tensor], Tensor]
"""From the discriminator's logits of generated samples to the generator's loss."""


def discriminator_loss(real: Float[Tensor, " real"], fake: Float[Tensor, " fake"]) -> Float[Tensor, ""]:
    """−E log D(x) − E log(1 − D(G(z))) from logits, minimised by the optimal discriminator (Diehl sec. 5.2)."""
    check_logits(real)
    return softplus(-real).mean() + softplus(fake).mean()


def minimax_loss(fake: Float[Tensor, " fake"]) -> Float[Tensor, ""]:
    """E log(1 − D(G(z))), the generator's minimax loss; its gradient vanishes where D(G(z)) ≈ 0."""
    return -softplus(fake).mean()


def non_saturating_loss(fake: Float[Tensor, " fake"]) -> Float[Tensor, ""]:
    """−E log D(G(z)), whose gradient does not vanish where D(G(z)) ≈ 0 (Goodfellow et al. 2014)."""
    return softplus(-fake).mean()


def optimal_discriminator(p: Float[Tensor, "*shape"], q: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """D⋆(x) = p(x) / (p(x) + q(x)) for densities p of the data and q of the generator; ½ where both are 0.

    The value of the game is then 2 JS(p, q) − log 4, so the optimal generator has q = p.
    """
    if not (bool((p >= 0).all()) and bool((q >= 0).all())):
        raise ValueError(f"densities must not be negative; got minima {float(p.min()):g} and {float(q.min()):g}")
    total = p + q
    return torch.where(total > 0, p / total.where(total > 0, 1.0), 0.5)


class GAN(nn.Module):
    """A generator from latents z ~ N(0, I) of dimension `latent_dim`, and a discriminator with one logit.

    Each has its own loss and optimiser; they are trained in alternation.

    >>> gan = GAN(nn.Linear(8, 2), nn.Linear(2, 1), latent_dim=8)
    >>> gan.sample(100).shape
    torch.Size([100, 2])
    """

    def __init__(
        self,
        generator: nn.Module,
        discriminator: nn.Module,
        *,
        latent_dim: int,
        generator_loss: GeneratorLoss = non_saturating_loss,
    ) -> None:
        super().__init__()
        check_at_least_one(latent_dim=latent_dim)
        check_logit_network(discriminator)
        self.generator = generator
        self.discriminator = discriminator
        self.latent_dim = latent_dim
        self._generator_loss = generator_loss

    def generate(self, count: int) -> Float[Tensor, "{count} *example"]:
        """G(z) for new latents, with gradients."""
        weight = next(self.generator.parameters())
        z = torch.randn(count, self.latent_dim, dtype=weight.dtype, device=weight.device)
        samples: Tensor = self.generator(z)
        return samples

    def logits(self, x: Float[Tensor, "count *example"]) -> Float[Tensor, " count"]:
        logits: Tensor = self.discriminator(x)
        return logits[:, 0]

    def discriminator_loss(self, real: Float[Tensor, "count *example"]) -> Float[Tensor, ""]:
        """Loss of the discriminator on these examples and as many samples; the generator gets no gradient."""
        return discriminator_loss(self.logits(real), self.logits(self.generate(len(real)).detach()))

    def generator_loss(self, count: int) -> Float[Tensor, ""]:
        """Loss of the generator on `count` samples."""
        return self._generator_loss(self.logits(self.generate(count)))

    @torch.no_grad()
    def sample(self, count: int) -> Float[Tensor, "{count} *example"]:
        """Draw `count` samples, without gradients."""
        return self.generate(count)
