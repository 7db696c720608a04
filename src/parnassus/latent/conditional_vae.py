"""A variational autoencoder that is told the class: draw what is asked for (book sec. 6.3)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.distributions import Distribution
from torch.nn.functional import one_hot

from parnassus.latent.objectives import ImportanceWeighted, Objective
from parnassus.latent.vae import VAE


class ConditionalVAE(nn.Module):
    """p(x|y) = ∫ p(x|z, y) p(z) dz and q(z|x, y), with the class y written beside x and beside z (Sohn et al. 2015).

    `encoder` takes x with `classes` further channels (numbers, for rows that are no images), `decoder` takes
    `latent` + `classes` numbers. Once y is fixed this is an ordinary VAE: `given(y)` is that one. What the class says
    the code need not, so z is left with style: slant, weight, size.
    """

    def __init__(
        self,
        encoder: nn.Module,
        decoder: nn.Module,
        latent: int,
        classes: int,
        *,
        objective: Objective | None = None,
    ) -> None:
        super().__init__()
        if classes < 1:
            raise ValueError(f"a condition needs at least one class; got classes={classes}")
        self.encoder = encoder
        self.decoder = decoder
        self.latent = latent
        self.classes = classes
        self.objective = objective

    def given(self, label: Int[Tensor, " batch"]) -> VAE:
        """The VAE of x once the class of every row is known: its bound, draws and likelihood are those of p(x|y)."""
        if len(label) and not 0 <= int(label.min()) <= int(label.max()) < self.classes:
            raise ValueError(
                f"a class must lie between 0 and {self.classes - 1}; got {int(label.min())} to {int(label.max())}"
            )
        told = one_hot(label, self.classes)
        return VAE(_Told(self.encoder, told), _Told(self.decoder, told), self.latent, objective=self.objective)

    def loss(self, x: Float[Tensor, "batch *event"], label: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
        return self.given(label).loss(x)

    def decode(self, z: Float[Tensor, "batch latent"], label: Int[Tensor, " batch"]) -> Float[Tensor, "batch *event"]:
        """The mean of p(x|z, y)."""
        return self.given(label).decode(z)

    @torch.no_grad()
    def sample(self, count: int, label: int) -> Float[Tensor, "count *event"]:
        """Draws of p(x|y): z from the prior, x from p(x|z, y)."""
        return self.given(torch.full((count,), label, device=next(self.parameters()).device)).sample(count)

    @torch.no_grad()
    def log_prob_by_class(
        self, x: Float[Tensor, "batch *event"], *, samples: int = 50
    ) -> Float[Tensor, "batch classes"]:
        """Estimates of log p(x|y) for every class: with Bayes' rule a classifier that was never taught to classify."""
        labels = [torch.full((len(x),), label, device=x.device) for label in range(self.classes)]
        return torch.stack([-ImportanceWeighted(samples)(self.given(label), x) for label in labels], 1)


class _Told(nn.Module):
    """A network that reads the class of each row beside its input; rows may come in several rounds of the batch."""

    def __init__(self, network: nn.Module, told: Tensor) -> None:
        super().__init__()
        self.network = network
        self.told = told

    def forward(self, x: Tensor) -> Tensor | Distribution:
        told = self.told.to(x).repeat(len(x) // len(self.told), 1)
        beside = told.view(*told.shape, *(1 for _ in x.shape[2:])).expand(-1, -1, *x.shape[2:])
        answer: Tensor | Distribution = self.network(torch.cat([x, beside], 1))
        return answer
