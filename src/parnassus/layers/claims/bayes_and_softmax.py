"""Claims about generative and discriminative classification: Bayes' rule and softmax regression (Diehl sec. 5.2)."""

from functools import partial

import torch
from torch.distributions import Categorical, MultivariateNormal

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, rate
from parnassus.layers.linear_models.softmax_regression import SoftmaxRegression
from parnassus.layers.linear_models.support_vector_machine import RandomFourierFeatures
from parnassus.losses import cross_entropy, one_hot, soft_cross_entropy
from parnassus.probability import GenerativeClassifier, cross_entropy_between, fit_linear_discriminant, rbf_kernel

REPEATS = 12


def three_gaussians() -> GenerativeClassifier:
    """Three Gaussian classes in the plane with one covariance, whose posterior is a softmax of linear scores."""
    means = torch.tensor([[0.0, 0.0], [2.0, 0.0], [1.0, 2.0]], dtype=torch.float64)
    covariance = torch.tensor([[1.0, 0.3], [0.3, 0.7]], dtype=torch.float64)
    return GenerativeClassifier(torch.tensor([0.5, 0.3, 0.2]).double(), MultivariateNormal(means, covariance))


@claim("D5.2.1")
def likelihood_and_cross_entropy_agree() -> Evidence:
    """The negative log-likelihood of labels is the cross-entropy with their one-hot distributions (Diehl sec. 5.2)."""
    torch.manual_seed(0)
    logits, labels = torch.randn(200, 10, dtype=torch.float64), torch.randint(10, (200,))
    likelihood = -Categorical(logits=logits).log_prob(labels)
    targets = one_hot(labels, 10).double()
    return all_of(
        from_logits=close(cross_entropy(logits, labels), likelihood, atol=1e-12),
        with_one_hot=close(soft_cross_entropy(logits, targets), likelihood, atol=1e-12),
        between_distributions=close(cross_entropy_between(targets, logits.softmax(1)), likelihood, atol=1e-12),
    )


@claim("D5.2.1")
def both_classifiers_converge_to_the_posterior() -> Evidence:
    """On Gaussian classes both converge to P(C | x), Bayes' rule faster than softmax regression (Diehl sec. 5.2)."""
    torch.manual_seed(0)
    model = three_gaussians()
    x_test, _ = model.sample(2_000)
    truth = model.log_posterior(x_test)
    counts, divergences = (60, 240, 960), []
    for count in counts:
        divergence = torch.zeros(2, dtype=torch.float64)
        for _ in range(REPEATS):
            x, labels = model.sample(count)
            bayes = GenerativeClassifier.fit(
                x, labels, classes=3, model=partial(fit_linear_discriminant, shrinkage=1e-9)
            )
            softmax = SoftmaxRegression.fit(x, labels, classes=3, penalty=1e-6)
            predictions = bayes.log_posterior(x_test), softmax.probabilities(x_test).log()
            divergence += (
                torch.stack([(truth.exp() * (truth - prediction)).sum(1).mean() for prediction in predictions])
                / REPEATS
            )
        divergences.append(divergence)
    sizes = torch.tensor(counts, dtype=torch.float64)
    generative, discriminative = torch.stack(divergences).T
    return all_of(
        bayes=rate(sizes, generative, -1.0, atol=0.3),
        softmax=rate(sizes, discriminative, -1.0, atol=0.4),
        generative_is_more_efficient=greater_equal(discriminative / generative, 1.1),
    )


@claim("D5.2.1")
def random_fourier_features_converge_to_the_gaussian_kernel() -> Evidence:
    """The error of D random Fourier features against exp(−γ ‖x − y‖²) decreases as 1/√D (Diehl sec. 5.2)."""
    torch.manual_seed(0)
    x = torch.randn(30, 4)
    kernel = rbf_kernel(x, length_scale=(2 * 0.2) ** -0.5)
    counts = (50, 200, 800, 3_200)
    errors = []
    for count in counts:
        features = [RandomFourierFeatures(4, count, gamma=0.2)(x) for _ in range(20)]
        errors.append(torch.stack([(phi @ phi.T - kernel).square().mean() for phi in features]).mean().sqrt())
    return rate(torch.tensor(counts), torch.stack(errors), -0.5, atol=0.1)
