"""Negative log-likelihoods against `torch.distributions`; maximum-likelihood estimates."""

from math import exp

import pytest
import torch
from torch.distributions import Bernoulli, Laplace, Normal
from torch.func import grad

from parnassus.losses import bernoulli_nll, laplace_nll, laplace_scale_mle, normal_nll, normal_std_mle

torch.manual_seed(0)
PREDICTION = torch.randn(50, dtype=torch.float64)
TARGET = PREDICTION + 0.7 * torch.randn(50, dtype=torch.float64)


@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_losses_match_torch_distributions(scale: float) -> None:
    normal, laplace = Normal(PREDICTION, scale), Laplace(PREDICTION, scale)
    torch.testing.assert_close(normal_nll(PREDICTION, TARGET, sigma=scale), -normal.log_prob(TARGET))
    torch.testing.assert_close(laplace_nll(PREDICTION, TARGET, scale=scale), -laplace.log_prob(TARGET))


def test_maximum_likelihood_scale_minimises_the_loss() -> None:
    sigma = float(normal_std_mle(PREDICTION, TARGET))
    scale = float(laplace_scale_mle(PREDICTION, TARGET))
    for factor in (0.9, 0.99, 1.01, 1.1):
        assert (
            normal_nll(PREDICTION, TARGET, sigma=sigma).sum()
            < normal_nll(PREDICTION, TARGET, sigma=factor * sigma).sum()
        )
        assert (
            laplace_nll(PREDICTION, TARGET, scale=scale).sum()
            < laplace_nll(PREDICTION, TARGET, scale=factor * scale).sum()
        )


def test_bernoulli_nll_matches_torch() -> None:
    logit = torch.tensor(0.3, dtype=torch.float64)
    tosses = torch.tensor([1.0] * 9 + [0.0] * 4, dtype=torch.float64)
    torch.testing.assert_close(bernoulli_nll(logit, heads=9, tails=4), -Bernoulli(logits=logit).log_prob(tosses).sum())
    derivative = grad(lambda each: bernoulli_nll(each, heads=9, tails=4))(
        torch.tensor(9 / 4, dtype=torch.float64).log()
    )
    assert float(derivative) == pytest.approx(0, abs=1e-12)
    assert float(bernoulli_nll(torch.tensor(100.0), heads=1, tails=0)) == pytest.approx(exp(-100), abs=1e-30)


def test_invalid_input_raises_value_error() -> None:
    with pytest.raises(ValueError, match=r"must be positive; got sigma=0"):
        normal_nll(PREDICTION, TARGET, sigma=0.0)
    with pytest.raises(ValueError, match=r"must be positive; got scale=-1"):
        laplace_nll(PREDICTION, TARGET, scale=-1.0)
    with pytest.raises(ValueError, match="tails=-1"):
        bernoulli_nll(torch.tensor(0.0), heads=1, tails=-1)


def test_gradient_of_the_fitted_deviation_is_zero_at_a_perfect_fit() -> None:
    prediction = torch.ones(3, requires_grad=True)
    normal_std_mle(prediction, torch.ones(3)).backward()
    assert prediction.grad is not None
    assert prediction.grad.tolist() == [0.0, 0.0, 0.0]
