"""A VAE with a prediction head that classifies the code (book sec. 6.4)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from parnassus.arrays import accepts_arrays
from parnassus.latent.variational.aggregated_posterior import code_information
from parnassus.latent.variational.reparametrisation import reparametrise, standard_normal_kl
from parnassus.latent.variational.vae import VAE
from parnassus.probability import entropy


class PredictiveVAE(nn.Module):
    """−ELBO + γ E[−log p(y|z)]: `head` predicts the class y from the code (book eq. 6.23).

    The text adds γ KL(p(Y|X) ‖ p(Y|Z)), which differs from the cross-entropy by the constant H(Y|X); the cross-entropy
    needs labels only. With γ = 0 the code is that of `vae`, and the head is trained on it without a gradient to the
    encoder.
    """

    def __init__(self, vae: VAE, head: nn.Module, *, gamma: float = 1.0) -> None:
        super().__init__()
        if not gamma >= 0:
            raise ValueError(f"gamma, the weight of the prediction, must not be negative; got gamma={gamma}")
        self.vae = vae
        self.head = head
        self.gamma = gamma

    @accepts_arrays
    def loss(self, x: Float[Tensor, "batch *event"], label: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
        mean, log_variance = self.vae.posterior_parameters(x)
        z = reparametrise(mean, log_variance)
        negative_elbo = standard_normal_kl(mean, log_variance) - self.vae.log_likelihood(x, z)
        if self.gamma == 0:
            return negative_elbo.mean() + cross_entropy(self.head(z.detach()), label)
        return negative_elbo.mean() + self.gamma * cross_entropy(self.head(z), label)

    def class_probabilities(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, "batch classes"]:
        """p(y|z) at the posterior mean of each row."""
        return self.class_logits(x).softmax(-1)

    def class_logits(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, "batch classes"]:
        """The logits of p(y|z) at the posterior mean of each row."""
        logits: Tensor = self.head(self.vae.encode(x))
        return logits


@dataclass(frozen=True)
class CodeMetrics:
    """The three objectives of a code, in nats: min I(X, Z), min D, max I(Z, Y) (book eq. 6.24)."""

    information: float
    """I(X, Z) on these rows, minimised by compression."""
    distortion: float
    """D = −E log p(x|z), minimised by reconstruction."""
    label_information: float
    """H(Y) − E[−log p(y|z)] ≤ I(Z, Y), maximised by prediction; an equality for the Bayes-optimal head."""


@torch.no_grad()
def evaluate_code(
    model: PredictiveVAE, x: Float[Tensor, "batch *event"], label: Int[Tensor, " batch"], *, num_draws: int = 4
) -> CodeMetrics:
    """Mutual information, distortion and label information, from `num_draws` codes per row (book eqs. 6.17-6.24)."""
    mean, log_variance = model.vae.posterior_parameters(x)
    z = reparametrise(mean.repeat(num_draws, 1), log_variance.repeat(num_draws, 1))
    distortion = -model.vae.log_likelihood(x, z.view(num_draws, *mean.shape)).mean()
    class_frequencies = torch.bincount(label).double() / len(label)
    conditional_entropy = cross_entropy(model.head(z), label.repeat(num_draws))
    return CodeMetrics(
        information=code_information(mean, log_variance, num_draws=num_draws).information,
        distortion=float(distortion),
        label_information=float(entropy(class_frequencies)) - float(conditional_entropy),
    )
