"""The conditional VAE (CVAE): generation given a class label (book sec. 6.3)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.distributions import Distribution
from torch.nn.functional import one_hot

from parnassus.arrays import accepts_arrays
from parnassus.errors import check_indices, check_positive
from parnassus.latent.variational.elbo import Objective
from parnassus.latent.variational.iwae import ImportanceWeightedELBO
from parnassus.latent.variational.vae import VAE


class ConditionalVAE(nn.Module):
    """p(x|y) = ∫ p(x|z, y) p(z) dz and q(z|x, y), with the class y concatenated to x and to z (Sohn et al. 2015).

    `encoder` takes x with `classes` additional channels (features, if x is a vector), `decoder` takes
    `latent_dim` + `classes` values. For a fixed y this is an ordinary VAE, returned by `condition_on(y)`. As the class
    is given, the code represents the remaining variation: slant, stroke weight, size.
    """

    def __init__(
        self,
        encoder: nn.Module,
        decoder: nn.Module,
        latent_dim: int,
        classes: int,
        *,
        objective: Objective | None = None,
    ) -> None:
        super().__init__()
        check_positive(classes=classes)
        self.encoder = encoder
        self.decoder = decoder
        self.latent_dim = latent_dim
        self.classes = classes
        self.objective = objective

    def condition_on(self, label: Int[Tensor, " batch"]) -> VAE:
        """The VAE of x given the class of every row: its bound, samples and likelihood are those of p(x|y)."""
        check_indices(self.classes, labels=label)
        condition = one_hot(label, self.classes)
        encoder, decoder = _ConditionalNetwork(self.encoder, condition), _ConditionalNetwork(self.decoder, condition)
        return VAE(encoder, decoder, self.latent_dim, objective=self.objective)

    def loss(self, x: Float[Tensor, "batch *event"], label: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
        return self.condition_on(label).loss(x)

    @accepts_arrays
    def decode(self, z: Float[Tensor, "batch latent"], label: Int[Tensor, " batch"]) -> Float[Tensor, "batch *event"]:
        """The mean of p(x|z, y)."""
        return self.condition_on(label).decode(z)

    @torch.no_grad()
    def sample(self, count: int, label: int) -> Float[Tensor, "count *event"]:
        """Samples of p(x|y): z from the prior, x from p(x|z, y)."""
        return self.condition_on(torch.full((count,), label, device=next(self.parameters()).device)).sample(count)

    @torch.no_grad()
    def log_prob_by_class(
        self, x: Float[Tensor, "batch *event"], *, samples: int = 50
    ) -> Float[Tensor, "batch classes"]:
        """Estimates of log p(x|y) for every class y: by Bayes' rule, the logits of a generative classifier."""
        labels = [torch.full((len(x),), label, device=x.device) for label in range(self.classes)]
        return torch.stack([-ImportanceWeightedELBO(samples)(self.condition_on(label), x) for label in labels], 1)


class _ConditionalNetwork(nn.Module):
    """A network with a condition concatenated to its input; the input may hold several copies of the batch."""

    def __init__(self, network: nn.Module, condition: Tensor) -> None:
        super().__init__()
        self.network = network
        self.condition = condition

    def forward(self, x: Tensor) -> Tensor | Distribution:
        condition = self.condition.to(x).repeat(len(x) // len(self.condition), 1)
        channels = condition.view(*condition.shape, *(1 for _ in x.shape[2:])).expand(-1, -1, *x.shape[2:])
        output: Tensor | Distribution = self.network(torch.cat([x, channels], 1))
        return output
