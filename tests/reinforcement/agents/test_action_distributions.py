"""Action distributions compared with torch.distributions."""

import torch
from torch import distributions

from parnassus.reinforcement.agents.action_distributions import Categorical, DiagonalGaussian


def test_categorical_matches_torch() -> None:
    logits, other_logits = torch.randn(3, 5, 4), torch.randn(3, 5, 4)
    distribution, reference = Categorical(logits), distributions.Categorical(logits=logits)
    action = torch.randint(4, (3, 5))
    assert torch.allclose(distribution.log_prob(action), reference.log_prob(action), atol=1e-6)
    assert torch.allclose(distribution.entropy(), reference.entropy(), atol=1e-6)
    assert torch.allclose(
        distribution.kl(Categorical(other_logits)),
        distributions.kl_divergence(reference, distributions.Categorical(logits=other_logits)),
        atol=1e-6,
    )
    assert torch.equal(distribution.mode(), logits.argmax(-1))


def test_categorical_sample_frequencies_match_probabilities() -> None:
    torch.manual_seed(0)
    logits = torch.tensor([0.0, 1.0, -2.0])
    samples = Categorical(logits.expand(40_000, 3)).sample()
    frequencies = samples.bincount(minlength=3) / 40_000
    assert torch.allclose(frequencies, logits.softmax(0), atol=4 * (0.25 / 40_000) ** 0.5)


def test_diagonal_gaussian_matches_torch() -> None:
    mean, log_std, other_mean = torch.randn(2, 6, 3), torch.randn(2, 1, 3) / 3, torch.randn(2, 6, 3)
    distribution, reference = (
        DiagonalGaussian(mean, log_std),
        distributions.Independent(distributions.Normal(mean, log_std.exp().expand_as(mean)), 1),
    )
    action = torch.randn(2, 6, 3)
    assert torch.allclose(distribution.log_prob(action), reference.log_prob(action), atol=1e-5)
    assert torch.allclose(distribution.entropy(), reference.entropy(), atol=1e-5)
    wider = DiagonalGaussian(other_mean, log_std + 0.3)
    assert torch.allclose(
        distribution.kl(wider),
        distributions.kl_divergence(
            reference,
            distributions.Independent(distributions.Normal(other_mean, wider.log_std.exp().expand_as(mean)), 1),
        ),
        atol=1e-5,
    )
    torch.manual_seed(0)
    samples = DiagonalGaussian(torch.tensor([1.0]).expand(40_000, 1), torch.tensor([0.5])).sample()
    assert abs(float(samples.mean()) - 1) < 0.03
    assert abs(float(samples.std()) - 1.6487) < 0.03
