"""Generative classifiers against scikit-learn and Bayes' theorem."""

from functools import partial

import pytest
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from torch import Tensor
from torch.distributions import Independent, Normal

from parnassus.probability import (
    FitClassConditionals,
    GenerativeClassifier,
    fit_bernoulli_naive_bayes,
    fit_gaussian_naive_bayes,
    fit_linear_discriminant,
    fit_quadratic_discriminant,
    posterior_table,
)


def three_classes(count: int = 300) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(count) % 3
    labels[: count // 5] = 0  # unequal priors
    scale = torch.randn(3, 4, 4, generator=generator, dtype=torch.float64)
    noise = torch.randn(count, 4, generator=generator, dtype=torch.float64)
    return torch.einsum("nij,nj->ni", scale[labels], noise) + labels[:, None], labels


def fit_classifier(model: FitClassConditionals, x: Tensor, labels: Tensor) -> GenerativeClassifier:
    return GenerativeClassifier.fit(x, labels, classes=3, model=model)


def test_gaussian_naive_bayes_matches_scikit_learn() -> None:
    x, labels = three_classes()
    classifier = fit_classifier(partial(fit_gaussian_naive_bayes, min_variance=1e-12), x, labels)
    reference = GaussianNB(var_smoothing=1e-14).fit(x.numpy(), labels.numpy())
    torch.testing.assert_close(classifier.log_posterior(x), torch.from_numpy(reference.predict_log_proba(x.numpy())))


def test_bernoulli_naive_bayes_matches_scikit_learn() -> None:
    x, labels = three_classes()
    bits = (x > 0).double()
    classifier = fit_classifier(fit_bernoulli_naive_bayes, bits, labels)
    reference = BernoulliNB(alpha=1.0).fit(bits.numpy(), labels.numpy())
    torch.testing.assert_close(
        classifier.log_posterior(bits), torch.from_numpy(reference.predict_log_proba(bits.numpy()))
    )


def test_quadratic_discriminant_matches_scikit_learn() -> None:
    x, labels = three_classes()
    classifier = fit_classifier(partial(fit_quadratic_discriminant, shrinkage=1e-12), x, labels)
    reference = QuadraticDiscriminantAnalysis().fit(x.numpy(), labels.numpy())
    agreement = (classifier.predict(x).numpy() == reference.predict(x.numpy())).mean()
    assert agreement > 0.99  # scikit-learn divides by n − 1


def test_linear_discriminant_matches_scikit_learn() -> None:
    x, labels = three_classes()
    classifier = fit_classifier(partial(fit_linear_discriminant, shrinkage=1e-12), x, labels)
    reference = LinearDiscriminantAnalysis(solver="lsqr").fit(x.numpy(), labels.numpy())
    posterior = torch.from_numpy(reference.predict_log_proba(x.numpy()))
    torch.testing.assert_close(classifier.log_posterior(x), posterior, atol=1e-6, rtol=1e-6)


def test_posterior_of_binary_features_matches_bayes_theorem() -> None:
    """With bits for features the posterior is Bayes' theorem for a finite table."""
    x, labels = torch.tensor([[0.0], [1.0], [1.0], [1.0], [0.0]]), torch.tensor([0, 0, 0, 1, 1])
    model = GenerativeClassifier.fit(x, labels, classes=2, model=partial(fit_bernoulli_naive_bayes, smoothing=0.0))
    table = posterior_table(torch.tensor([0.6, 0.4]), torch.tensor([[1 / 3, 2 / 3], [0.5, 0.5]]))
    bits = torch.tensor([[0.0], [1.0]])
    torch.testing.assert_close(model.log_posterior(bits).exp(), table.posterior)
    torch.testing.assert_close(model.log_prob(bits).exp(), table.evidence)


def test_samples_match_priors_and_means() -> None:
    gaussians = Independent(Normal(torch.tensor([[-3.0, 0.0], [4.0, 1.0]]), torch.ones(2, 2)), 1)
    torch.manual_seed(0)
    x, labels = GenerativeClassifier(torch.tensor([0.25, 0.75]), gaussians).sample(40_000)
    assert float(labels.float().mean()) == pytest.approx(0.75, abs=0.01)
    torch.testing.assert_close(x[labels == 0].mean(0), torch.tensor([-3.0, 0.0]), atol=0.05, rtol=0)
    torch.testing.assert_close(x[labels == 1].mean(0), torch.tensor([4.0, 1.0]), atol=0.05, rtol=0)


def test_shrinkage_keeps_the_total_variance() -> None:
    x, labels = three_classes()
    shrunk, unshrunk = (
        fit_quadratic_discriminant(x, labels, 3, shrinkage=shrinkage).covariance_matrix for shrinkage in (0.5, 1e-12)
    )
    torch.testing.assert_close(shrunk.diagonal(dim1=1, dim2=2).sum(1), unshrunk.diagonal(dim1=1, dim2=2).sum(1))
    isotropic = fit_quadratic_discriminant(x, labels, 3, shrinkage=1.0).covariance_matrix
    torch.testing.assert_close(isotropic, isotropic[:, :1, :1] * torch.eye(4, dtype=torch.float64))


def test_invalid_arguments_raise_value_error() -> None:
    x, labels = three_classes()
    with pytest.raises(ValueError, match=r"every class needs an example; got none of classes \[3\]"):
        GenerativeClassifier.fit(x, labels, classes=4, model=fit_gaussian_naive_bayes)
    with pytest.raises(ValueError, match=r"labels must lie between 0 and 1; got 0 to 2"):
        GenerativeClassifier.fit(x, labels, classes=2, model=fit_gaussian_naive_bayes)
    with pytest.raises(ValueError, match="features must be 0 or 1"):
        fit_bernoulli_naive_bayes(x, labels, 3)
    with pytest.raises(ValueError, match=r"shrinkage must lie in \(0, 1\]; got shrinkage=0"):
        fit_quadratic_discriminant(x, labels, 3, shrinkage=0.0)
    with pytest.raises(ValueError, match="min_variance must be positive; got min_variance=0"):
        fit_gaussian_naive_bayes(x, labels, 3, min_variance=0.0)
    with pytest.raises(ValueError, match="need one label per row"):
        GenerativeClassifier.fit(x[:0], labels[:0], classes=3, model=fit_gaussian_naive_bayes)
    with pytest.raises(ValueError, match="need one density per class; got 3 classes"):
        GenerativeClassifier(torch.ones(3) / 3, Independent(Normal(torch.zeros(2, 4), 1.0), 1))
