"""Interactive views: the book's game, efficient values, error bars that cover the exact values."""

import pytest
import torch

from parnassus.shapley.probes.estimator_convergence import ESTIMATORS, compare_estimators
from parnassus.shapley.probes.patient_explanation import explain_patient
from parnassus.shapley.probes.three_player_game import three_player_game
from parnassus.widgets import Bars, Curves, Numbers, evaluate_probe, read_controls


def converged(**values: object) -> tuple[Bars, Curves, Numbers]:
    bars, errors, numbers = evaluate_probe(compare_estimators, None, read_controls(compare_estimators, None), values)
    assert isinstance(bars, Bars)
    assert isinstance(errors, Curves)
    assert isinstance(numbers, Numbers)
    return bars, errors, numbers


def test_the_books_game() -> None:
    parts, *_ = evaluate_probe(three_player_game, None, read_controls(three_player_game, None), {})
    assert isinstance(parts, Bars)
    assert parts.values.tolist() == pytest.approx([970 / 6, 970 / 6, 1060 / 6])


@pytest.mark.parametrize("way", range(len(ESTIMATORS)), ids=list(ESTIMATORS))
def test_error_bars_cover_the_exact_values(way: int) -> None:
    held = []
    for seed in range(12):
        bars, _, numbers = converged(estimator=way, seed=seed, budget=40, features=8)
        assert bars.errors is not None
        assert bars.truth is not None
        held.append((bars.values - bars.truth).abs() <= bars.errors)
        assert numbers.values["gap of efficiency"] == pytest.approx(0.0, abs=1e-9)
    assert 0.88 <= float(torch.stack(held).double().mean()) <= 1.0


def test_kernel_shap_is_exact_with_all_coalitions() -> None:
    _, errors, numbers = converged(estimator=list(ESTIMATORS).index("Kernel SHAP"), budget=3_000, features=6)
    assert numbers.values["actual error, root mean square"] == pytest.approx(0.0, abs=1e-12)
    assert numbers.values["standard error, root mean square"] == 0.0
    missed = errors.lines["actual error"][1]
    assert missed[-1] < missed[0]


@pytest.mark.parametrize("moved", [{}, {"index": 8.0, "sugar": -12.0}], ids=["as measured", "moved"])
def test_shap_values_sum_to_the_prediction(moved: dict[str, float]) -> None:
    bars, before, _, numbers = evaluate_probe(
        explain_patient, None, read_controls(explain_patient, None), {"patient": 7, **moved}
    )
    assert isinstance(bars, Bars)
    assert isinstance(before, Bars)
    assert isinstance(numbers, Numbers)
    told = {name: float(number) for name, number in numbers.values.items()}
    whole = told["base value, the mean over the background"] + told["sum of the SHAP values"]
    assert whole == pytest.approx(told["prediction"], abs=1e-9)
    assert (told["prediction"] != told["prediction for the measured values"]) == bool(moved)
    assert torch.equal(bars.values, before.values) == (not moved)
