"""Classification by Bayes' rule: model how each class looks, then ask which class looks like this (Diehl sec. 5.2).

The model of a class is any torch distribution; how it is fitted is a function that is passed in.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.distributions import Bernoulli, Distribution, Independent, MultivariateNormal, Normal

from parnassus.probability.simplex import require_distribution

FitClasses: TypeAlias = Callable[[Tensor, Tensor, int], Distribution]
"""fit(x, labels, classes): a distribution over rows of features for each class, as one batch."""


@dataclass(frozen=True)
class GenerativeClassifier:
    """A prior over classes and a density for each of them (Diehl sec. 5.2).

        P(C | x) = p(x | C) P(C) / p(x),   p(x) = Σ_C p(x | C) P(C)
        Ĉ = argmax_C P(C | x)

    It knows the joint law, so that it also says how likely x is and draws new pairs; a discriminative model knows
    P(C | x) alone. Images are flattened first.
    """

    prior: Float[Tensor, " classes"]
    given_class: Distribution

    def __post_init__(self) -> None:
        require_distribution(self.prior, "prior")
        if self.given_class.batch_shape != self.prior.shape:
            raise ValueError(
                f"need a density for each class; got {len(self.prior)} classes, "
                f"densities of batch shape {tuple(self.given_class.batch_shape)}"
            )

    @classmethod
    def fit(
        cls, x: Float[Tensor, "count features"], labels: Int[Tensor, " count"], *, classes: int, model: FitClasses
    ) -> "GenerativeClassifier":
        """Priors as shares of the labels, and the densities that `model` fits to each class."""
        counts = _class_counts(x, labels, classes).to(x.dtype)
        return cls(counts / counts.sum(), model(x, labels, classes))

    def log_joint(self, x: Float[Tensor, "count features"]) -> Float[Tensor, "count classes"]:
        """The logarithm log p(x | C) + log P(C) of the joint law."""
        density: Tensor = self.given_class.log_prob(x[:, None, :])
        return density + self.prior.log()

    def log_prob(self, x: Float[Tensor, "count features"]) -> Float[Tensor, " count"]:
        """The logarithm of p(x), the evidence: small for what looks like no class."""
        return self.log_joint(x).logsumexp(1)

    def log_posterior(self, x: Float[Tensor, "count features"]) -> Float[Tensor, "count classes"]:
        """The logarithm of P(C | x), by Bayes' rule (Diehl sec. 5.2)."""
        return self.log_joint(x).log_softmax(1)

    def predict(self, x: Float[Tensor, "count features"]) -> Int[Tensor, " count"]:
        """The most probable class, which errs least often where the model is right."""
        return self.log_joint(x).argmax(1)

    def sample_like(self, labels: Int[Tensor, " count"]) -> Float[Tensor, "count features"]:
        """A new example of each of these classes."""
        drawn: Tensor = self.given_class.sample((len(labels),))
        return drawn[torch.arange(len(labels), device=drawn.device), labels]

    def sample(self, count: int) -> tuple[Float[Tensor, "{count} features"], Int[Tensor, " {count}"]]:
        """New pairs (x, C): a class from the prior, then an example of it."""
        labels = torch.multinomial(self.prior, count, replacement=True)
        return self.sample_like(labels), labels


def own_covariances(
    x: Float[Tensor, "count features"], labels: Int[Tensor, " count"], classes: int, *, shrinkage: float = 0.1
) -> MultivariateNormal:
    """A Gaussian of its own for each class, whose borders are quadrics; classes have few rows, hence the shrinkage.

    Σ_C = (1 − λ) S_C + λ (tr S_C / d) 1,   S_C the covariance of the class
    """
    means, covariances = _class_moments(x, labels, classes)
    return MultivariateNormal(means, _shrunk(covariances, shrinkage))


def shared_covariance(
    x: Float[Tensor, "count features"], labels: Int[Tensor, " count"], classes: int, *, shrinkage: float = 0.1
) -> MultivariateNormal:
    """Gaussians with a mean for each class and one covariance: the posterior is a softmax of linear scores.

    Σ = Σ_C P(C) S_C, shrunk as for `own_covariances`
    """
    means, covariances = _class_moments(x, labels, classes)
    counts = _class_counts(x, labels, classes).to(x.dtype)
    pooled = torch.einsum("c,cij->ij", counts / counts.sum(), covariances)
    return MultivariateNormal(means, _shrunk(pooled, shrinkage))


def naive_gaussian(
    x: Float[Tensor, "count features"], labels: Int[Tensor, " count"], classes: int, *, least: float = 0.01
) -> "Independent[Normal]":
    """Naive Bayes: features independent given the class, each normal; `least` is added to the variances.

    Pixels that are always black have no variance of their own.
    """
    if not least > 0:
        raise ValueError(f"the least variance must be positive; got least={least}")
    means, covariances = _class_moments(x, labels, classes)
    deviations = (covariances.diagonal(dim1=-2, dim2=-1) + least).sqrt()
    return Independent(Normal(means, deviations), 1)


def naive_bernoulli(
    x: Float[Tensor, "count features"], labels: Int[Tensor, " count"], classes: int, *, smoothing: float = 1.0
) -> "Independent[Bernoulli]":
    """Naive Bayes for features 0 and 1, with `smoothing` imagined rows of each value in every class."""
    if not bool(((x == 0) | (x == 1)).all()):
        raise ValueError("Bernoulli features must be 0 or 1; compare grey values with a threshold first")
    counts = _class_counts(x, labels, classes)[:, None].to(x.dtype)
    ones = x.new_zeros(classes, x.shape[1]).index_add(0, labels, x)
    return Independent(Bernoulli((ones + smoothing) / (counts + 2 * smoothing), validate_args=False), 1)


def _class_counts(x: Tensor, labels: Tensor, classes: int) -> Tensor:
    if len(x) != len(labels) or len(x) == 0:
        raise ValueError(f"need a label for every row and at least one row; got {len(x)} rows, {len(labels)} labels")
    if not (int(labels.min()) >= 0 and int(labels.max()) < classes):
        raise ValueError(f"labels count from 0 to {classes - 1}; got {int(labels.min())} … {int(labels.max())}")
    counts = torch.bincount(labels, minlength=classes)
    if int(counts.min()) == 0:
        raise ValueError(f"every class needs an example; got none of {(counts == 0).nonzero()[:, 0].tolist()}")
    return counts


def _class_moments(x: Tensor, labels: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """Means and covariances by class; sums over the class divided by its count."""
    _class_counts(x, labels, classes)
    groups = [x[labels == kind] for kind in range(classes)]
    means = torch.stack([group.mean(0) for group in groups])
    spreads = [(group - mean).T @ (group - mean) / len(group) for group, mean in zip(groups, means, strict=True)]
    return means, torch.stack(spreads)


def _shrunk(covariance: Tensor, shrinkage: float) -> Tensor:
    if not 0 < shrinkage <= 1:
        raise ValueError(f"the shrinkage must satisfy 0 < λ ≤ 1; got shrinkage={shrinkage}")
    features = covariance.shape[-1]
    level = covariance.diagonal(dim1=-2, dim2=-1).mean(-1)[..., None, None]
    return (1 - shrinkage) * covariance + shrinkage * level * torch.eye(features).to(covariance)
