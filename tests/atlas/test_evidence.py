"""Evidence holds exactly when the relation does, and shows the decisive number."""

import pickle
from collections.abc import Callable
from dataclasses import astuple
from math import inf, isfinite, nan

import numpy as np
import pytest
import torch
from numpy import array

from parnassus.atlas import (
    Correction,
    Evidence,
    accepts,
    all_of,
    close,
    exponent,
    greater_equal,
    less_equal,
    raises,
    rate,
    rejects,
    runs,
)
from parnassus.atlas.evidence import KEPT, Agreement, Bound, PowerLaw, PValue

TRUE, FALSE = close(1.0, 1.0), close(1.0, 2.0)


def test_runs_catches_only_the_given_error() -> None:
    failing, passing = runs(lambda: int("x"), unless=ValueError), runs(lambda: int("1"), unless=ValueError)
    assert (failing.holds, passing.holds) == (False, True)
    assert "ValueError" in str(failing.measured)
    with pytest.raises(ZeroDivisionError):
        runs(lambda: 1 // 0, unless=ValueError)


def test_close_without_tolerance_requires_equality() -> None:
    assert close(0.5, 0.5).holds
    assert not close(1.0, 1.0 + 2**-52).holds
    assert close(torch.arange(3), array([0, 1, 2])).relation == "="


def test_tolerances_add_and_include_the_border() -> None:
    assert close(1.5, 1.0, atol=0.5).holds
    assert not close(1.5, 1.0, atol=0.5 - 2**-50).holds
    assert close(110.0, 100.0, rtol=0.1).holds
    assert close(111.0, 100.0, rtol=0.1, atol=1.0).holds
    assert not close(111.0, 100.0, rtol=0.1).holds


def test_relative_tolerance_scales_with_the_prediction() -> None:
    assert close(0.0, 1.0, rtol=1.0).holds
    assert not close(1.0, 0.0, rtol=1.0).holds


@pytest.mark.parametrize(("measured", "predicted"), [(nan, nan), (nan, 1.0), (1.0, nan), (array([1.0, nan]), 1.0)])
def test_close_fails_for_nan(measured: float, predicted: float) -> None:
    evidence = close(measured, predicted, atol=inf)
    assert not evidence.holds
    assert "nan" in str(evidence)


def test_infinity_equals_only_itself() -> None:
    assert close(inf, inf).holds
    assert close(array([inf, -inf, 1.0]), array([inf, -inf, 1.0]), rtol=1e-3).holds
    assert not close(inf, -inf, rtol=1e-3).holds
    assert not close(1.0, inf, rtol=1e-3).holds
    assert not close(inf, 1.0, rtol=1e-3).holds


def test_worst_element_is_shown_with_its_tolerance() -> None:
    evidence = close(torch.tensor([[1.0, 2.0], [3.5, 4.1]]), torch.tensor([[1.0, 2.0], [3.0, 4.0]]), atol=0.25)
    assert (evidence.measured, evidence.relation, evidence.predicted) == ("3.5", "≈", "3 ± 0.25")
    assert str(evidence) == "3.5 ≈ 3 ± 0.25"
    assert not evidence.holds


def test_worst_element_is_relative_to_its_tolerance() -> None:
    assert close(array([1000.5, 1.4]), array([1000.0, 1.0]), rtol=0.01).measured == "1.4"


def test_shapes_broadcast_and_empty_tensors_raise_value_error() -> None:
    assert close(np.ones((4, 3)), 1.0).holds
    for compare in (close, less_equal, greater_equal):
        with pytest.raises(ValueError, match="at least one number"):
            compare(torch.empty(0), 1.0)


def test_complex_numbers_are_compared() -> None:
    assert close(array([1 + 1j]), array([1 + 1j])).holds
    assert not close(array([1 + 1j]), array([1 - 1j]), atol=1.9).holds


def test_tensors_with_gradients_are_accepted() -> None:
    assert close(torch.ones(2, requires_grad=True), 1.0).holds


def test_bounds_include_the_border_and_show_the_nearest_element() -> None:
    assert less_equal(array([1.0, 2.0]), 2.0).holds
    assert greater_equal(array([2.0, 3.0]), 2.0).holds
    assert not less_equal(array([1.0, 2.5]), 2.0).holds
    assert not greater_equal(array([1.5, 3.0]), 2.0).holds
    assert str(less_equal(array([1.0, 1.9, 0.3]), 2.0)) == "1.9 ≤ 2"
    assert str(greater_equal(array([5.0, 2.1, 9.0]), array([1.0, 2.0, 3.0]))) == "2.1 ≥ 2"


def test_bounds_at_infinity() -> None:
    assert less_equal(inf, inf).holds
    assert greater_equal(-inf, -inf).holds
    assert not less_equal(inf, 1.0).holds


@pytest.mark.parametrize("compare", [less_equal, greater_equal])
@pytest.mark.parametrize(("measured", "bound"), [(nan, 1.0), (array([0.0, nan]), 0.0), (1.0, nan)])
def test_bounds_fail_for_nan(compare: Callable[..., Evidence], measured: float, bound: float) -> None:
    evidence = compare(measured, bound)
    assert not evidence.holds
    assert "nan" in str(evidence)


def test_rate_is_the_exponent_of_a_power_law() -> None:
    x = array([1.0, 10.0, 100.0, 1e4])
    assert rate(x, 7 * x**-0.5, -0.5, atol=1e-12).holds
    assert not rate(x, 7 * x**-0.5, -0.6, atol=0.09).holds
    assert rate(x, x**2, 2.0, atol=1e-9).measured == "exponent 2"


def test_exponent_is_the_slope_of_the_logarithms() -> None:
    x, y = [1, 2, 3, 5], [2.0, 0.5, 7.0, 1.0]
    assert exponent(x, y) == pytest.approx(np.polyfit(np.log(x), np.log(y), 1)[0], rel=1e-12)
    assert exponent(torch.tensor([1.0, 100.0]), (3.0, 30.0)) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("x", "y"), [([], []), ([2.0], [3.0]), ([2, 2], [1, 3]), ([1, 2], [1.0, -1.0]), ([1, 2], [0, 1])]
)
def test_exponent_of_invalid_data_is_not_finite(x: list[float], y: list[float]) -> None:
    assert not isfinite(exponent(x, y))


@pytest.mark.parametrize("y", [[1.0, 0.0], [1.0, -1.0], [1.0, nan], [1.0], [[1.0], [2.0]]])
def test_rate_of_invalid_data_raises_value_error(y: list[float]) -> None:
    with pytest.raises(ValueError, match="rate needs"):
        rate(array([1.0, 2.0]), array(y), 1.0, atol=1.0)


def test_rate_with_equal_x_raises_value_error() -> None:
    with pytest.raises(ValueError, match="two or more"):
        rate(array([2.0, 2.0]), array([1.0, 3.0]), 1.0, atol=1.0)


def test_p_values_below_the_level_are_rejected() -> None:
    assert rejects(1e-4).holds
    assert not rejects(1e-3).holds
    assert accepts(1e-3).holds
    assert not accepts(1e-4).holds
    assert not rejects(nan).holds
    assert not accepts(nan).holds


def fail(error: Exception) -> object:
    raise error


def test_raises_requires_the_given_error() -> None:
    evidence = raises(ValueError, lambda: fail(ValueError("width must be even\nand more")))
    assert evidence.holds
    assert str(evidence) == "ValueError: width must be even is a ValueError"
    assert raises(ArithmeticError, lambda: fail(ZeroDivisionError("0"))).holds
    assert not raises(ValueError, lambda: None).holds
    with pytest.raises(TypeError):
        raises(ValueError, lambda: fail(TypeError("another")))


def test_all_of_names_failed_parts() -> None:
    evidence = all_of(first=TRUE, the_second=FALSE, third=TRUE)
    assert not evidence.holds
    assert evidence.measured == "2 of 3 hold, not: the second"
    assert [name for name, _ in evidence.parts] == ["first", "the second", "third"]
    assert all_of(first=TRUE, second=TRUE).holds
    assert not all_of(first=TRUE, second=all_of(inner=FALSE)).holds


def test_empty_all_of_raises_value_error() -> None:
    with pytest.raises(ValueError, match="at least one"):
        all_of()


@pytest.mark.parametrize(("printed", "corrected"), [(TRUE, TRUE), (FALSE, FALSE), (TRUE, FALSE)])
def test_correction_requires_a_failing_print_and_a_correct_formula(printed: Evidence, corrected: Evidence) -> None:
    assert not Correction(printed=printed, corrected=corrected).holds


def test_correction_holds() -> None:
    assert Correction(printed=FALSE, corrected=TRUE).holds


def agreement(evidence: Evidence) -> Agreement:
    assert isinstance(evidence.compared, Agreement)
    return evidence.compared


def bound(evidence: Evidence) -> Bound:
    assert isinstance(evidence.compared, Bound)
    return evidence.compared


def test_compared_elements_are_stored() -> None:
    compared = agreement(close(torch.tensor([[1.0, 2.0], [3.5, 4.0]]), array([1.0, 2.0]), atol=0.25, rtol=0.5))
    assert compared.measured == (1.0, 2.0, 3.5, 4.0)
    assert compared.predicted == (1.0, 2.0, 1.0, 2.0)
    assert compared.tolerance == (0.75, 1.25, 0.75, 1.25)
    assert (compared.places, compared.worst, compared.count) == ((0, 1, 2, 3), 2, 4)


@pytest.mark.parametrize("worst_index", [0, 12_345, 99_999])
def test_large_comparisons_keep_the_worst_and_an_even_subset(worst_index: int) -> None:
    measured = np.zeros((100, 1_000))
    measured.flat[worst_index] = 3.0
    for compared in (agreement(close(measured, 0.0, atol=1.0)), bound(less_equal(measured, 1.0))):
        assert (compared.measured[compared.worst], compared.places[compared.worst], compared.count) == (
            3.0,
            worst_index,
            100_000,
        )
        assert len(compared.measured) in (KEPT, KEPT + 1)
        evenly_spaced = [each for each in compared.places if each != worst_index or worst_index in (0, 99_999)]
        assert (evenly_spaced[0], evenly_spaced[-1]) == (0, 99_999)
        assert set(np.diff(evenly_spaced)) <= {502, 503}


def test_bounds_store_their_side() -> None:
    assert bound(less_equal(array([1.0, 3.0]), 2.0)) == Bound((1.0, 3.0), (2.0, 2.0), True, (0, 1), 1, 2)
    assert bound(greater_equal(1.0, 2.0)) == Bound((1.0,), (2.0,), False, (0,), 0, 1)


def test_distances_of_complex_numbers_are_stored() -> None:
    compared = bound(close(array([1 + 1j, 2.0]), array([1 - 1j, 2.0]), atol=0.5, rtol=1.0))
    assert compared.measured == (2.0, 0.0)
    assert compared.bound == pytest.approx((0.5 + 2**0.5, 2.5))
    assert compared.upper


def test_rate_stores_a_subset_of_points_and_the_centre_of_all() -> None:
    x = array([1.0, 2.0, 4.0])
    law = rate(x, array([1.0, 8.0, 16.0]), 1.5, atol=0.25).compared
    assert isinstance(law, PowerLaw)
    assert (law.x, law.y) == ((1.0, 2.0, 4.0), (1.0, 8.0, 16.0))
    assert (law.exponent, law.predicted, law.tolerance) == pytest.approx((2.0, 1.5, 0.25))
    assert law.centre == pytest.approx((2.0, 2 ** (7 / 3)))
    many = rate(np.geomspace(1, 1e4, 1_001), np.geomspace(3, 3e4, 1_001), 1.0, atol=0.1).compared
    assert isinstance(many, PowerLaw)
    assert len(many.x) == len(many.y) == KEPT
    assert many.centre == pytest.approx((1e2, 3e2))


def test_p_values_are_stored_with_their_level() -> None:
    assert rejects(1e-4).compared == PValue(1e-4, 1e-3, below=True)
    assert accepts(0.3, level=0.05).compared == PValue(0.3, 0.05, below=False)


def test_errors_and_composites_store_no_numbers() -> None:
    assert raises(ValueError, lambda: None).compared is None
    assert runs(lambda: None, unless=ValueError).compared is None
    assert all_of(first=TRUE).compared is None


@pytest.mark.parametrize(
    "evidence",
    [
        close(torch.ones(5, requires_grad=True), 1.0),
        close(array([nan, inf]), array([1.0, inf])),
        greater_equal(torch.arange(1_000), 0),
        rate(torch.arange(1, 9), torch.arange(1, 9), 1.0, atol=0.1),
        rejects(float(np.float32(0.25))),
    ],
)
def test_compared_numbers_are_plain_and_picklable(evidence: Evidence) -> None:
    assert evidence.compared is not None
    for each in astuple(evidence.compared):
        assert all(type(number) in (float, int, bool) for number in (each if isinstance(each, tuple) else (each,)))
    unpickled = pickle.loads(pickle.dumps(all_of(part=evidence)))
    assert repr(unpickled.parts[0][1].compared) == repr(evidence.compared)  # by repr, for nan is not nan
    assert unpickled == all_of(part=evidence)
    assert "compared" not in repr(evidence)
