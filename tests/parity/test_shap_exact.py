"""Exact Shapley values: equal to enumeration written plainly, and to shap's ExactExplainer."""

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

from parnassus.shapley import Interventional, as_model, explain_exactly

FEATURES, OTHERS, ROWS = 6, 12, 3
Array: TypeAlias = NDArray[np.float64]
Function: TypeAlias = Callable[[Array], Array]


def table(count: int, seed: int) -> Array:
    return np.random.default_rng(seed).normal(size=(count, FEATURES))


BACKGROUND, X = table(OTHERS, 0), table(ROWS, 1)


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(FEATURES, 16), nn.ReLU(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1)).double()


def forest() -> RandomForestClassifier:
    training = table(200, 2)
    return RandomForestClassifier(10, random_state=0).fit(
        training, (training[:, 0] * training[:, 1] > 0) + (training[:, 2] > 0)
    )


def plain(x: Array) -> Array:
    """One number a row, with features that act together."""
    found: Array = np.sin(x[:, 0] * x[:, 1]) + np.abs(x[:, 2] - x[:, 3]) ** 1.5 + x[:, 4]
    return found


def many(x: Array) -> Array:
    """Three numbers a row."""
    return np.stack([x[:, 0] * x[:, 5], x.max(1), np.exp(-(x**2).sum(1))], 1)


def by_hand(model: Function, x: Array) -> Array:
    """φ_i = Σ_{S∌i} [v(S ∪ i) − v(S)] / (M C(M − 1, |S|)), with v(S) the mean of f(x_S, b_∖S) over the background."""

    def worth(known: tuple[int, ...]) -> Array:
        mixed = BACKGROUND.copy()
        mixed[:, known] = x[list(known)]
        mean: Array = np.asarray(model(mixed)).reshape(OTHERS, -1).mean(0)
        return mean

    values = []
    for player in range(FEATURES):
        others = [other for other in range(FEATURES) if other != player]
        part = 0.0 * worth(())
        for size in range(FEATURES):
            for coalition in combinations(others, size):
                part += (worth((*coalition, player)) - worth(coalition)) / (FEATURES * comb(FEATURES - 1, size))
        values.append(part)
    return np.stack(values, -1)


PREDICTORS: dict[str, Callable[[], object]] = {
    "network": network,
    "forest": forest,
    "function": lambda: plain,
    "several outputs": lambda: many,
}


@pytest.mark.parametrize("name", PREDICTORS)
def test_exact_values_are_what_enumeration_and_shap_find(name: str) -> None:
    shap = pytest.importorskip("shap")
    model = as_model(PREDICTORS[name]())
    found = explain_exactly(Interventional(model, torch.tensor(BACKGROUND)), torch.tensor(X))

    def function(x: Array) -> Array:
        said: Array = model(torch.tensor(x)).numpy()
        return said

    plainly = torch.tensor(np.stack([by_hand(function, row) for row in X]))
    torch.testing.assert_close(found.values, plainly, atol=1e-9, rtol=0)
    theirs = shap.ExactExplainer(function, shap.maskers.Independent(BACKGROUND, max_samples=OTHERS))(X)
    values = torch.tensor(theirs.values).reshape(ROWS, FEATURES, -1).mT
    torch.testing.assert_close(found.values, values, atol=1e-6, rtol=0)
    torch.testing.assert_close(found.base_values, torch.tensor(theirs.base_values).reshape(ROWS, -1), atol=1e-6, rtol=0)
