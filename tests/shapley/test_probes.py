"""Interactive views: Shapley values of the book's game, efficiency, coverage of the error bars."""

import pytest
import torch

from parnassus.shapley.probes.estimator_convergence import ESTIMATORS, compare_estimators
from parnassus.shapley.probes.patient_explanation import explain_patient
from parnassus.shapley.probes.three_player_game import three_player_game
from parnassus.widgets import Bars, Curves, Numbers, evaluate_probe, read_controls


def estimator_views(**values: object) -> tuple[Bars, Curves, Numbers]:
    bars, errors, numbers = evaluate_probe(compare_estimators, None, read_controls(compare_estimators, None), values)
    assert isinstance(bars, Bars)
    assert isinstance(errors, Curves)
    assert isinstance(numbers, Numbers)
    return bars, errors, numbers


def test_shapley_values_of_the_books_three_player_game() -> None:
    parts, *_ = evaluate_probe(three_player_game, None, read_controls(three_player_game, None), {})
    assert isinstance(parts, Bars)
    assert parts.values.tolist() == pytest.approx([970 / 6, 970 / 6, 1060 / 6])


@pytest.mark.parametrize("name", range(len(ESTIMATORS)), ids=list(ESTIMATORS))
def test_error_bars_cover_the_exact_values(name: int) -> None:
    is_covered = []
    for seed in range(12):
        bars, _, numbers = estimator_views(estimator=name, seed=seed, budget=40, features=8)
        assert bars.errors is not None
        assert bars.truth is not None
        is_covered.append((bars.values - bars.truth).abs() <= bars.errors)
        assert numbers.values["efficiency gap"] == pytest.approx(0.0, abs=1e-9)
    assert 0.88 <= float(torch.stack(is_covered).double().mean()) <= 1.0


def test_kernel_shap_is_exact_with_all_coalitions() -> None:
    _, errors, numbers = estimator_views(estimator=list(ESTIMATORS).index("Kernel SHAP"), budget=3_000, features=6)
    assert numbers.values["actual error, root mean square"] == pytest.approx(0.0, abs=1e-12)
    assert numbers.values["standard error, root mean square"] == 0.0
    actual_errors = errors.lines["actual error"][1]
    assert actual_errors[-1] < actual_errors[0]


@pytest.mark.parametrize("changed", [{}, {"bmi": 8.0, "sugar": -12.0}], ids=["as measured", "moved"])
def test_shap_values_sum_to_the_prediction(changed: dict[str, float]) -> None:
    bars, measured_bars, _, numbers = evaluate_probe(
        explain_patient, None, read_controls(explain_patient, None), {"patient": 7, **changed}
    )
    assert isinstance(bars, Bars)
    assert isinstance(measured_bars, Bars)
    assert isinstance(numbers, Numbers)
    printed = {name: float(number) for name, number in numbers.values.items()}
    total = printed["base value, the mean over the background"] + printed["sum of the SHAP values"]
    assert total == pytest.approx(printed["prediction"], abs=1e-9)
    assert (printed["prediction"] != printed["prediction for the measured values"]) == bool(changed)
    assert torch.equal(bars.values, measured_bars.values) == (not changed)
