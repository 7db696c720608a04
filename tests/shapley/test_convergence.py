"""Asking until the errors are small: what was asked is kept, errors are as wished, the budget is kept to."""

import pytest
import torch
from torch import Tensor

from parnassus.shapley import attribution, convergence
from parnassus.shapley.attribution import explain_exactly
from parnassus.shapley.convergence import Growing, explain_until
from parnassus.shapley.kernel_shap import regressed
from parnassus.shapley.masking import ConditionalGaussian, Interventional, OneGame
from parnassus.shapley.stopping import largest_error, largest_share


def normals(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


WEIGHTS = normals(10, 3, seed=5)


def curved(x: Tensor) -> Tensor:
    return torch.stack([(x @ WEIGHTS).tanh().sum(1), x[:, 0] * x[:, 1] * x[:, 2]], 1)


class Counted:
    """A model that counts the rows it was asked about."""

    def __init__(self) -> None:
        self.rows = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.rows += len(x)
        return curved(x)


X, BACKGROUND = normals(3, 10), normals(4, 10, seed=1)


def test_it_stops_at_the_wished_error_and_is_within_it() -> None:
    value = Interventional(curved, BACKGROUND)
    exact = explain_exactly(value, X)
    counts = []
    for error in (0.05, 0.01, 0.002):
        found = explain_until(value, X, error, most=1_024, generator=torch.Generator().manual_seed(0))
        assert largest_error(found) <= error
        assert float((found.values - exact.values).square().mean().sqrt()) <= error
        assert torch.allclose(found.prediction, exact.prediction, atol=1e-10)
        counts.append(found.coalitions)
    assert counts == sorted(counts)
    assert counts[0] < 300


def test_nothing_is_asked_twice() -> None:
    model = Counted()
    growing = Growing(Interventional(model, BACKGROUND), X, regressed, torch.Generator().manual_seed(0))
    for count in (40, 80, 300):
        found = growing(count)
        assert model.rows == found.coalitions * len(BACKGROUND) * len(X)
        assert growing.asked is not None
        fresh = Interventional(curved, BACKGROUND).each(X, growing.asked.coalitions)
        assert torch.allclose(growing.worth[..., 1:-1], fresh, atol=1e-12)


def test_the_budget_ends_it_and_says_so() -> None:
    found = explain_until(Interventional(curved, BACKGROUND), X, 1e-9, most=100)
    assert found.coalitions < 120
    assert largest_error(found) > 1e-9


def test_errors_beside_the_spread_of_values() -> None:
    value = Interventional(lambda x: 1e6 * curved(x), BACKGROUND)
    found = explain_until(value, X, 0.1, most=1_024, judge=largest_share, generator=torch.Generator().manual_seed(0))
    assert largest_share(found) <= 0.1 < largest_error(found)


def test_a_budget_for_all_is_exact_and_few_features_are_at_once() -> None:
    value = Interventional(curved, BACKGROUND)
    found = explain_until(value, X, 1e-12, most=4_096)
    assert found.coalitions == 1_024
    assert torch.allclose(found.values, explain_exactly(value, X).values, atol=1e-9)
    few = Interventional(lambda x: x.prod(1, keepdim=True), BACKGROUND[:, :3])
    assert largest_error(explain_until(few, X[:, :3], 0.1, most=100)) == 0.0


def test_portions_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convergence, "NUMBERS", 100)
    monkeypatch.setattr(attribution, "NUMBERS", 100)
    value = Interventional(curved, BACKGROUND)
    found = explain_until(value, X, 0.1, most=512, generator=torch.Generator().manual_seed(0))
    assert found.values.shape == (3, 2, 10)
    assert largest_error(found) <= 0.1


def test_games_without_a_background_too() -> None:
    value = ConditionalGaussian(lambda x: curved(torch.cat([x, x], 1)), normals(50, 5, seed=2), draws=4)
    found = explain_until(value, X[:, :5], 0.05, most=40)
    assert torch.allclose(found.prediction, curved(torch.cat([X[:, :5], X[:, :5]], 1)), atol=1e-10)
    assert OneGame(value).players == 5


def test_a_wish_that_is_none_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match="must be positive"):
        explain_until(Interventional(curved, BACKGROUND), X, 0.0, most=100)
