"""Attributions: exact, estimated, of one feature, of constant ones, of models that will not do."""

import pytest
import torch
from torch import Tensor

from parnassus.shapley import attribution
from parnassus.shapley.attribution import explain, explain_exactly, of_repeats
from parnassus.shapley.kernel_shap import regressed
from parnassus.shapley.masking import Interventional, OneGame
from parnassus.shapley.model import ModelError, as_model


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


def test_coalitions_of_its_own_for_each_background_row_err_less() -> None:
    """As often as one set for all, at as many questions: the errors of the rows cancel."""
    x, background = normals(4, 11), normals(30, 11, seed=1)
    value = Interventional(lambda z: (z.roll(1, 1) * z * z.roll(-1, 1)).sum(1, keepdim=True), background)
    exact = explain_exactly(value, x).values
    missed = []
    for asked in (value, OneGame(value)):
        found = [
            explain(asked, x, 120, solve=regressed, generator=torch.Generator().manual_seed(seed)) for seed in range(4)
        ]
        missed.append(float(torch.stack([each.values - exact for each in found]).square().mean().sqrt()))
        said = float(torch.stack([each.errors for each in found]).square().mean().sqrt())
        assert said == pytest.approx(missed[-1], rel=0.3)
    assert missed[0] < 0.7 * missed[1]


def test_portions_of_rows_and_background_change_nothing_that_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = normals(12, seed=3)
    x, background = normals(5, 12), normals(7, 12, seed=1)
    value = Interventional(lambda z: (z @ parts)[:, None], background)
    monkeypatch.setattr(attribution, "NUMBERS", 1_500)
    found = explain(value, x, 60)
    assert torch.allclose(found.values[:, 0], parts * (x - background.mean(0)), atol=1e-9)
    assert torch.allclose(found.base[:, 0], (background @ parts).mean().expand(5), atol=1e-9)
    assert float(found.errors.max()) < 1e-9


def test_a_background_of_one_row_and_more_features_than_rows() -> None:
    x, background = normals(2, 40), normals(1, 40, seed=1)
    value = Interventional(curved, background)
    found = explain(value, x, 300, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(found.prediction, curved(x), atol=1e-10)
    assert torch.allclose(found.values[:, 1], x.tanh() - background.tanh(), atol=1e-9)
    assert torch.allclose(found.base, curved(background).expand(2, -1), atol=1e-10)


def test_constant_features_get_nothing_beyond_their_errors() -> None:
    x, background = normals(3, 12), normals(6, 12, seed=1)
    background[:, 4] = x[:, 4] = 2.0
    found = explain(Interventional(curved, background), x, 400, generator=torch.Generator().manual_seed(0))
    assert bool((found.values[..., 4].abs() <= 4 * found.errors[..., 4] + 1e-9).all())


def test_a_budget_below_the_number_of_features_says_that_nothing_is_known() -> None:
    found = explain(Interventional(curved, normals(3, 20)), normals(2, 20, seed=1), 20)
    assert bool(found.errors.isinf().all())
    assert torch.allclose(found.prediction, curved(normals(2, 20, seed=1)), atol=1e-10)


def test_models_and_sizes_that_will_not_do_get_a_sentence() -> None:
    with pytest.raises(ModelError, match="not deterministic"):
        explain_exactly(Interventional(lambda x: torch.rand(len(x), 1).to(x), normals(4, 3)), normals(1, 3))
    with pytest.raises(ModelError, match="not deterministic"):
        explain(Interventional(lambda x: torch.rand(len(x), 1).to(x), normals(4, 9)), normals(1, 9), 60)
    with pytest.raises(ModelError, match="depends on the rows that it is asked with: alone it said"):
        explain(Interventional(lambda x: (x - x.mean(0)).sum(1, keepdim=True), normals(4, 9)), normals(1, 9), 60)
    with pytest.raises(ModelError, match="returned"):
        explain(Interventional(as_model(lambda x: x.log().sum(1)), normals(4, 9)), normals(1, 9), 60)
    with pytest.raises(ValueError, match="at least 2 coalitions"):
        explain(Interventional(curved, normals(4, 9)), normals(1, 9), 1)
    with pytest.raises(ValueError, match="at most 24"):
        explain_exactly(Interventional(curved, normals(2, 30)), normals(1, 30))


def test_one_attribution_shows_no_spread() -> None:
    with pytest.raises(ValueError, match="two attributions at least; got 1"):
        of_repeats([explain_exactly(Interventional(lambda x: x.sum(1, keepdim=True), torch.eye(2)), torch.ones(1, 2))])
