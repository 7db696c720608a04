"""A VAE whose code must also name the class: compress, reconstruct, predict (book sec. 6.4)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from parnassus.latent.aggregate import code_information
from parnassus.latent.vae import VAE, reparametrise, standard_normal_kl
from parnassus.probability import entropy


class PredictingVAE(nn.Module):
    """−ELBO + γ E[−log p(y|z)]: a code that rebuilds x and from which `head` reads the class (book eq. 6.23).

    The text adds γ KL(p(Y|X) ‖ p(Y|Z)). That differs from the cross-entropy by H(Y|X), which no network can change,
    and the cross-entropy needs labels only. At γ = 0 the code is that of `vae`, and the head still learns to read it:
    its cross-entropy then does not reach the code.
    """

    def __init__(self, vae: VAE, head: nn.Module, *, gamma: float = 1.0) -> None:
        super().__init__()
        if not gamma >= 0:
            raise ValueError(f"the weight of the prediction must not be negative; got gamma={gamma}")
        self.vae = vae
        self.head = head
        self.gamma = gamma

    def loss(self, x: Float[Tensor, "batch *event"], label: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
        mean, log_variance = self.vae.moments(x)
        z = reparametrise(mean, log_variance)
        bound = standard_normal_kl(mean, log_variance) - self.vae.log_likelihood(x, z)
        if self.gamma == 0:
            return bound.mean() + cross_entropy(self.head(z.detach()), label)
        return bound.mean() + self.gamma * cross_entropy(self.head(z), label)

    def class_probabilities(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, "batch classes"]:
        """p(y|z) at the middle of the posterior of each row."""
        logits: Tensor = self.head(self.vae.encode(x))
        return logits.softmax(-1)


@dataclass(frozen=True)
class Goals:
    """The three numbers of a model, in nats: min I(X, Z), min D, max I(Z, Y) (book eq. 6.24)."""

    information: float
    """I(X, Z) on these rows: what the code keeps; compression wants it small."""
    distortion: float
    """D = −E log p(x|z): what reconstruction wants small."""
    label_information: float
    """H(Y) − E[−log p(y|z)] ≤ I(Z, Y): what prediction wants large; equal where the head is Bayes' rule."""


@torch.no_grad()
def three_goals(
    model: PredictingVAE, x: Float[Tensor, "batch *event"], label: Int[Tensor, " batch"], *, draws: int = 4
) -> Goals:
    """Measure what a model keeps, loses and can say of the class, with `draws` codes a row (book eqs. 6.17-6.24)."""
    mean, log_variance = model.vae.moments(x)
    z = reparametrise(mean.repeat(draws, 1), log_variance.repeat(draws, 1))
    distortion = -model.vae.log_likelihood(x, z.view(draws, *mean.shape)).mean()
    shares = torch.bincount(label).double() / len(label)
    unsure = cross_entropy(model.head(z), label.repeat(draws))
    return Goals(
        information=code_information(mean, log_variance, draws=draws).information,
        distortion=float(distortion),
        label_information=float(entropy(shares)) - float(unsure),
    )
