"""Attributions: exact, estimated, of one feature, of constant ones, of models that will not do."""

import pytest
import torch
from torch import Tensor

from parnassus.shapley.attribution import explain, explain_exactly
from parnassus.shapley.masking import Interventional
from parnassus.shapley.model import ModelError


def normals(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def curved(x: Tensor) -> Tensor:
    return torch.stack([(x[:, :-1] * x[:, 1:]).sum(1), x.tanh().sum(1)], 1)


def test_a_product_is_shared_by_its_factors() -> None:
    value = Interventional(lambda x: x[:, :1] * x[:, 1:2], torch.zeros(1, 3, dtype=torch.float64))
    parts = explain_exactly(value, torch.tensor([[2.0, 3.0, 9.0]], dtype=torch.float64))
    assert parts.values[0, 0].tolist() == pytest.approx([3.0, 3.0, 0.0])
    assert parts.importance.tolist() == [pytest.approx([3.0, 3.0, 0.0])]


def test_an_estimate_is_within_its_errors_and_sums_up() -> None:
    x, background = normals(6, 11), normals(8, 11, seed=1)
    value = Interventional(curved, background)
    exact = explain_exactly(value, x)
    found = explain(value, x, 200, generator=torch.Generator().manual_seed(0))
    assert found.coalitions < 220
    assert torch.allclose(found.prediction, curved(x))
    sure = (found.values - exact.values).abs() <= 4 * found.errors + 1e-9
    assert float(sure.double().mean()) > 0.97


def test_a_budget_for_all_is_exact() -> None:
    x, value = normals(2, 4), Interventional(curved, normals(3, 4, seed=1))
    assert torch.equal(explain(value, x, 16).values, explain_exactly(value, x).values)


def test_one_feature_and_constant_ones() -> None:
    one = explain(Interventional(lambda x: x.square(), normals(5, 1)), normals(3, 1, seed=1), 2)
    assert torch.allclose(one.prediction, normals(3, 1, seed=1).square())
    flat = torch.ones(5, 3, dtype=torch.float64)
    assert float(explain_exactly(Interventional(curved, flat), flat[:1]).values.abs().max()) < 1e-12


def test_models_and_sizes_that_will_not_do_get_a_sentence() -> None:
    with pytest.raises(ModelError, match="not deterministic"):
        explain_exactly(Interventional(lambda x: torch.rand(len(x), 1).to(x), normals(4, 3)), normals(1, 3))
    with pytest.raises(ValueError, match="at most 24"):
        explain_exactly(Interventional(curved, normals(2, 30)), normals(1, 30))
