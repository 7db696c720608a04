"""Claims about generative and discriminative classification: Bayes' rule and softmax regression (Diehl sec. 5.2)."""

from functools import partial

import torch
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from torch.distributions import Categorical, MultivariateNormal

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal, rate
from parnassus.layers.linear_models.softmax_regression import SoftmaxRegression
from parnassus.layers.linear_models.support_vector_machine import (
    RandomFourierFeatures,
    gaussian_svm,
    linear_svm,
    multiclass_hinge,
)
from parnassus.losses import cross_entropy, one_hot, soft_cross_entropy
from parnassus.probability import GenerativeClassifier, cross_entropy_between, fit_linear_discriminant, rbf_kernel
from parnassus.probability.inference.generative_classifier import fit_bernoulli_naive_bayes, fit_gaussian_naive_bayes

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


@claim("D5.2.1")
def naive_bayes_agrees_with_scikit_learn() -> Evidence:
    """P(C | x) of Gaussian and Bernoulli naive Bayes, with variances and pseudo-counts added (Diehl sec. 5.2)."""
    torch.manual_seed(0)
    labels = torch.tensor([0, 0, 1, 2, 2, 2]).repeat(20)
    x = torch.randn(120, 3, dtype=torch.float64) * (1 + labels[:, None]) + labels[:, None]
    bits = (x > 0.5).double()
    gaussian = GenerativeClassifier.fit(
        x, labels, classes=3, model=partial(fit_gaussian_naive_bayes, min_variance=1e-9)
    )
    smoothed = partial(fit_bernoulli_naive_bayes, smoothing=2.5)
    bernoulli = GenerativeClassifier.fit(bits, labels, classes=3, model=smoothed)
    theirs = GaussianNB(var_smoothing=0.0).fit(x.numpy(), labels.numpy()).predict_log_proba(x.numpy())
    with_bits = BernoulliNB(alpha=2.5).fit(bits.numpy(), labels.numpy()).predict_log_proba(bits.numpy())
    floored = fit_gaussian_naive_bayes(torch.ones(4, 2), torch.tensor([0, 0, 1, 1]), 2, min_variance=0.09)
    return all_of(
        gaussian=close(gaussian.log_posterior(x), theirs, atol=1e-6),
        bernoulli=close(bernoulli.log_posterior(bits), with_bits, atol=1e-10),
        variance_of_constant_features=close(floored.variance, 0.09, rtol=1e-6),
    )


@claim("D5.2.1")
def support_vector_machines_maximise_the_margin() -> Evidence:
    """The hinge is max(0, 1 + max_{j≠y} s_j − s_y); training it separates rings with Gaussian features only."""
    scores = torch.tensor([[3.0, 1.0, 2.5], [0.0, -1.0, 4.0], [1.0, 2.0, 0.0]])
    labels = torch.tensor([0, 0, 1])
    torch.manual_seed(0)
    radius = torch.tensor([0.5, 2.0]).repeat(60)
    angle = torch.linspace(0, 20, 120)
    x, y = radius[:, None] * torch.stack([angle.cos(), angle.sin()], 1), torch.arange(120) % 2
    accuracies = []
    for model in (linear_svm(2, 2), gaussian_svm(2, 2, num_features=200, gamma=0.5)):
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
        for _ in range(150):
            optimizer.zero_grad()
            model.loss(x, y).backward()
            optimizer.step()
        accuracies.append((model.predict(x) == y).double().mean())
    penalised = linear_svm(2, 2, penalty=0.4)
    decay = penalised.loss(x, y) - multiclass_hinge(penalised(x), y).mean()
    return all_of(
        hinge=close(multiclass_hinge(scores, labels), torch.tensor([0.5, 5.0, 0.0])),
        penalty=close(decay, 0.2 * penalised.scores.weight.square().sum(), rtol=1e-4),
        linear=less_equal(accuracies[0], 0.8),
        gaussian=close(accuracies[1], 1.0),
    )
