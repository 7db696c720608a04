"""Claims about classes from both sides: through Bayes' rule and directly (Diehl sec. 5.2)."""

from functools import partial

import torch
from torch.distributions import Categorical, MultivariateNormal

from parnassus.atlas import Evidence, all_of, at_least, claim, close, rate
from parnassus.layers.softmax_regression import SoftmaxRegression
from parnassus.layers.support_vectors import RandomWaves
from parnassus.losses import cross_entropy, one_hot, soft_cross_entropy
from parnassus.probability import GenerativeClassifier, cross_entropy_between, shared_covariance

REPEATS = 12


def three_bells() -> GenerativeClassifier:
    """Three Gaussian classes in the plane with one covariance: their true posterior is a softmax of linear scores."""
    means = torch.tensor([[0.0, 0.0], [2.0, 0.0], [1.0, 2.0]], dtype=torch.float64)
    covariance = torch.tensor([[1.0, 0.3], [0.3, 0.7]], dtype=torch.float64)
    return GenerativeClassifier(torch.tensor([0.5, 0.3, 0.2]).double(), MultivariateNormal(means, covariance))


@claim("D5.2.1")
def likelihood_and_cross_entropy_are_one() -> Evidence:
    """The negative log-likelihood of labels is the cross-entropy with their one-hot laws (Diehl sec. 5.2)."""
    torch.manual_seed(0)
    logits, labels = torch.randn(200, 10, dtype=torch.float64), torch.randint(10, (200,))
    likelihood = -Categorical(logits=logits).log_prob(labels)
    hot = one_hot(labels, 10).double()
    return all_of(
        from_logits=close(cross_entropy(logits, labels), likelihood, atol=1e-12),
        with_one_hot=close(soft_cross_entropy(logits, hot), likelihood, atol=1e-12),
        as_laws=close(cross_entropy_between(hot, logits.softmax(1)), likelihood, atol=1e-12),
    )


@claim("D5.2.1")
def both_ways_lead_to_the_posterior() -> Evidence:
    """On Gaussian classes Bayes' rule and softmax regression both learn P(C | x), Bayes sooner (Diehl sec. 5.2)."""
    torch.manual_seed(0)
    law = three_bells()
    unseen, _ = law.sample(2_000)
    truth = law.log_posterior(unseen)
    counts, far = (60, 240, 960), []
    for count in counts:
        gaps = torch.zeros(2, dtype=torch.float64)
        for _ in range(REPEATS):
            x, labels = law.sample(count)
            bayes = GenerativeClassifier.fit(x, labels, classes=3, model=partial(shared_covariance, shrinkage=1e-9))
            softmax = SoftmaxRegression.fit(x, labels, classes=3, penalty=1e-6)
            guesses = bayes.log_posterior(unseen), softmax.probabilities(unseen).log()
            gaps += torch.stack([(truth.exp() * (truth - guess)).sum(1).mean() for guess in guesses]) / REPEATS
        far.append(gaps)
    numbers = torch.tensor(counts, dtype=torch.float64)
    through_bayes, directly = torch.stack(far).T
    return all_of(
        bayes=rate(numbers, through_bayes, -1.0, atol=0.3),
        softmax=rate(numbers, directly, -1.0, atol=0.4),
        knowing_more_helps=at_least(directly / through_bayes, 1.1),
    )


@claim("D5.2.1")
def random_waves_come_to_the_gaussian_kernel() -> Evidence:
    """The error of D random waves against exp(−γ ‖x − y‖²) falls like 1/√D (Diehl sec. 5.2)."""
    torch.manual_seed(0)
    x = torch.randn(30, 4)
    kernel = (-0.2 * torch.cdist(x, x).square()).exp()
    waves = (50, 200, 800, 3_200)
    errors = []
    for count in waves:
        features = [RandomWaves(4, count, gamma=0.2)(x) for _ in range(20)]
        errors.append(torch.stack([(phi @ phi.T - kernel).square().mean() for phi in features]).mean().sqrt())
    return rate(torch.tensor(waves), torch.stack(errors), -0.5, atol=0.1)
