"""Generative classifiers: discriminant analysis and naive Bayes by Bayes' rule (Diehl sec. 5.2).

The class-conditional densities are any torch distribution, fitted by a function that is passed in.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.distributions import Bernoulli, Distribution, Independent, MultivariateNormal, Normal

from parnassus.arrays import accepts_arrays
from parnassus.errors import check_indices, check_positive
from parnassus.probability.distributions.simplex import check_distribution
from parnassus.short_repr import short_repr

FitClassConditionals: TypeAlias = Callable[[Tensor, Tensor, int], Distribution]
"""fit(x, labels, classes): the class-conditional distributions of the features, as one batch."""


@dataclass(frozen=True)
class GenerativeClassifier:
    """A prior over classes and a class-conditional density for each (Diehl sec. 5.2).

        P(C | x) = p(x | C) P(C) / p(x),   p(x) = Σ_C p(x | C) P(C)
        Ĉ = argmax_C P(C | x)

    It models the joint distribution, so it also gives p(x) and samples new pairs; a discriminative model gives only
    P(C | x). Images are flattened first.

    >>> normals = torch.distributions.MultivariateNormal(torch.tensor([[0.0], [4.0]]), torch.eye(1))
    >>> GenerativeClassifier(torch.tensor([0.5, 0.5]), normals).predict(torch.tensor([[1.0], [3.0]])).tolist()
    [0, 1]
    """

    prior: Float[Tensor, " classes"]
    class_conditional: Distribution

    __repr__ = short_repr

    def __post_init__(self) -> None:
        check_distribution(self.prior, "prior")
        if self.class_conditional.batch_shape != self.prior.shape:
            raise ValueError(
                f"need one density per class; got {len(self.prior)} classes, "
                f"densities of batch shape {tuple(self.class_conditional.batch_shape)}"
            )

    @classmethod
    @accepts_arrays
    def fit(
        cls,
        x: Float[Tensor, "count features"],
        labels: Int[Tensor, " count"],
        *,
        classes: int,
        model: FitClassConditionals,
    ) -> "GenerativeClassifier":
        """Fit the prior by label frequencies and the class-conditional densities by `model`."""
        counts = _class_counts(x, labels, classes).to(x.dtype)
        return cls(counts / counts.sum(), model(x, labels, classes))

    def log_joint(self, x: Float[Tensor, "count features"]) -> Float[Tensor, "count classes"]:
        """The joint log-density log p(x | C) + log P(C)."""
        density: Tensor = self.class_conditional.log_prob(x[:, None, :])
        return density + self.prior.log()

    @accepts_arrays
    def log_prob(self, x: Float[Tensor, "count features"]) -> Float[Tensor, " count"]:
        """The log-evidence log p(x)."""
        return self.log_joint(x).logsumexp(1)

    def log_posterior(self, x: Float[Tensor, "count features"]) -> Float[Tensor, "count classes"]:
        """The log-posterior log P(C | x), by Bayes' rule (Diehl sec. 5.2)."""
        return self.log_joint(x).log_softmax(1)

    @accepts_arrays
    def predict(self, x: Float[Tensor, "count features"]) -> Int[Tensor, " count"]:
        """The most probable class."""
        return self.log_joint(x).argmax(1)

    def sample_given_class(self, labels: Int[Tensor, " count"]) -> Float[Tensor, "count features"]:
        """Sample one example of each of these classes."""
        samples: Tensor = self.class_conditional.sample((len(labels),))
        return samples[torch.arange(len(labels), device=samples.device), labels]

    def sample(self, count: int) -> tuple[Float[Tensor, "{count} features"], Int[Tensor, " {count}"]]:
        """Sample pairs (x, C): a class from the prior, then an example of it."""
        labels = torch.multinomial(self.prior, count, replacement=True)
        return self.sample_given_class(labels), labels


@accepts_arrays
def fit_quadratic_discriminant(
    x: Float[Tensor, "count features"], labels: Int[Tensor, " count"], classes: int, *, shrinkage: float = 0.1
) -> MultivariateNormal:
    """Quadratic discriminant analysis: a Gaussian with its own, shrunk covariance for each class.

    Σ_C = (1 − λ) S_C + λ (tr S_C / d) 1,   with S_C the covariance of class C and λ = `shrinkage`
    """
    means, covariances = _class_moments(x, labels, classes)
    return MultivariateNormal(means, _shrink(covariances, shrinkage))


@accepts_arrays
def fit_linear_discriminant(
    x: Float[Tensor, "count features"], labels: Int[Tensor, " count"], classes: int, *, shrinkage: float = 0.1
) -> MultivariateNormal:
    """Linear discriminant analysis: one shared covariance, so the posterior is a softmax of linear scores.

    Σ = Σ_C P(C) S_C, shrunk as for `fit_quadratic_discriminant`
    """
    means, covariances = _class_moments(x, labels, classes)
    counts = _class_counts(x, labels, classes).to(x.dtype)
    pooled = torch.einsum("c,cij->ij", counts / counts.sum(), covariances)
    return MultivariateNormal(means, _shrink(pooled, shrinkage))


@accepts_arrays
def fit_gaussian_naive_bayes(
    x: Float[Tensor, "count features"], labels: Int[Tensor, " count"], classes: int, *, min_variance: float = 0.01
) -> "Independent[Normal]":
    """Gaussian naive Bayes: features independent and normal given the class.

    `min_variance` is added to the variances, as constant features have variance 0.
    """
    check_positive(min_variance=min_variance)
    means, covariances = _class_moments(x, labels, classes)
    std = (covariances.diagonal(dim1=-2, dim2=-1) + min_variance).sqrt()
    return Independent(Normal(means, std), 1)


@accepts_arrays
def fit_bernoulli_naive_bayes(
    x: Float[Tensor, "count features"], labels: Int[Tensor, " count"], classes: int, *, smoothing: float = 1.0
) -> "Independent[Bernoulli]":
    """Bernoulli naive Bayes for binary features, with `smoothing` pseudo-counts per value and class."""
    if not bool(((x == 0) | (x == 1)).all()):
        raise ValueError("features must be 0 or 1; binarise grey values first")
    counts = _class_counts(x, labels, classes)[:, None].to(x.dtype)
    ones = x.new_zeros(classes, x.shape[1]).index_add(0, labels, x)
    return Independent(Bernoulli((ones + smoothing) / (counts + 2 * smoothing), validate_args=False), 1)


def _class_counts(x: Tensor, labels: Tensor, classes: int) -> Tensor:
    if len(x) != len(labels) or len(x) == 0:
        raise ValueError(f"need one label per row and at least one row; got {len(x)} rows, {len(labels)} labels")
    check_indices(classes, labels=labels)
    counts = torch.bincount(labels, minlength=classes)
    if int(counts.min()) == 0:
        raise ValueError(f"every class needs an example; got none of classes {(counts == 0).nonzero()[:, 0].tolist()}")
    return counts


def _class_moments(x: Tensor, labels: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """Means and (biased) covariances by class."""
    _class_counts(x, labels, classes)
    groups = [x[labels == kind] for kind in range(classes)]
    means = torch.stack([group.mean(0) for group in groups])
    covariances = [(group - mean).T @ (group - mean) / len(group) for group, mean in zip(groups, means, strict=True)]
    return means, torch.stack(covariances)


def _shrink(covariance: Tensor, shrinkage: float) -> Tensor:
    if not 0 < shrinkage <= 1:
        raise ValueError(f"shrinkage must lie in (0, 1]; got shrinkage={shrinkage}")
    features = covariance.shape[-1]
    level = covariance.diagonal(dim1=-2, dim2=-1).mean(-1)[..., None, None]
    return (1 - shrinkage) * covariance + shrinkage * level * torch.eye(
        features, dtype=covariance.dtype, device=covariance.device
    )
