"""Exact Shapley values against explicit enumeration and shap's ExactExplainer."""

from collections.abc import Callable
from itertools import combinations
from math import comb
from typing import TypeAlias

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from torch import nn

from parnassus.shapley import InterventionalValue, as_model, explain_exactly

FEATURES, BACKGROUND_ROWS, ROWS = 6, 12, 3
Array: TypeAlias = NDArray[np.float64]
Function: TypeAlias = Callable[[Array], Array]


def random_table(count: int, seed: int) -> Array:
    return np.random.default_rng(seed).normal(size=(count, FEATURES))


BACKGROUND, X = random_table(BACKGROUND_ROWS, 0), random_table(ROWS, 1)


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(FEATURES, 16), nn.ReLU(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1)).double()


def forest() -> RandomForestClassifier:
    training = random_table(200, 2)
    return RandomForestClassifier(10, random_state=0).fit(
        training, (training[:, 0] * training[:, 1] > 0) + (training[:, 2] > 0)
    )


def scalar_function(x: Array) -> Array:
    """One value per row, with interacting features."""
    actual: Array = np.sin(x[:, 0] * x[:, 1]) + np.abs(x[:, 2] - x[:, 3]) ** 1.5 + x[:, 4]
    return actual


def vector_function(x: Array) -> Array:
    """Three values per row."""
    return np.stack([x[:, 0] * x[:, 5], x.max(1), np.exp(-(x**2).sum(1))], 1)


def enumerate_shapley_values(model: Function, x: Array) -> Array:
    """φ_i = Σ_{S∌i} [v(S ∪ i) − v(S)] / (M C(M − 1, |S|)), with v(S) the mean of f(x_S, b_∖S) over the background."""

    def coalition_value(coalition_features: tuple[int, ...]) -> Array:
        mixed = BACKGROUND.copy()
        mixed[:, coalition_features] = x[list(coalition_features)]
        mean: Array = np.asarray(model(mixed)).reshape(BACKGROUND_ROWS, -1).mean(0)
        return mean

    values = []
    for player in range(FEATURES):
        others = [other for other in range(FEATURES) if other != player]
        value = 0.0 * coalition_value(())
        for size in range(FEATURES):
            for coalition in combinations(others, size):
                value += (coalition_value((*coalition, player)) - coalition_value(coalition)) / (
                    FEATURES * comb(FEATURES - 1, size)
                )
        values.append(value)
    return np.stack(values, -1)


PREDICTORS: dict[str, Callable[[], object]] = {
    "network": network,
    "forest": forest,
    "function": lambda: scalar_function,
    "several outputs": lambda: vector_function,
}


@pytest.mark.parametrize("name", PREDICTORS)
def test_exact_values_match_enumeration_and_shap(name: str) -> None:
    shap = pytest.importorskip("shap")
    model = as_model(PREDICTORS[name]())
    actual = explain_exactly(InterventionalValue(model, torch.tensor(BACKGROUND)), torch.tensor(X))

    def function(x: Array) -> Array:
        output: Array = model(torch.tensor(x)).numpy()
        return output

    expected = torch.tensor(np.stack([enumerate_shapley_values(function, row) for row in X]))
    torch.testing.assert_close(actual.values, expected, atol=1e-9, rtol=0)
    reference = shap.ExactExplainer(function, shap.maskers.Independent(BACKGROUND, max_samples=BACKGROUND_ROWS))(X)
    values = torch.tensor(reference.values).reshape(ROWS, FEATURES, -1).mT
    torch.testing.assert_close(actual.values, values, atol=1e-6, rtol=0)
    torch.testing.assert_close(
        actual.base_values, torch.tensor(reference.base_values).reshape(ROWS, -1), atol=1e-6, rtol=0
    )
