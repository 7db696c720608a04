"""Evidence holds exactly when the relation does, and shows the number that decides."""

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


def test_runs_holds_without_the_error_and_lets_others_pass() -> None:
    fails, works = runs(lambda: int("x"), unless=ValueError), runs(lambda: int("1"), unless=ValueError)
    assert (fails.holds, works.holds) == (False, True)
    assert "ValueError" in str(fails.measured)
    with pytest.raises(ZeroDivisionError):
        runs(lambda: 1 // 0, unless=ValueError)


def test_close_without_tolerance_means_equal() -> None:
    assert close(0.5, 0.5).holds
    assert not close(1.0, 1.0 + 2**-52).holds
    assert close(torch.arange(3), array([0, 1, 2])).relation == "="


def test_tolerances_add_and_the_border_belongs_to_them() -> None:
    assert close(1.5, 1.0, atol=0.5).holds
    assert not close(1.5, 1.0, atol=0.5 - 2**-50).holds
    assert close(110.0, 100.0, rtol=0.1).holds
    assert close(111.0, 100.0, rtol=0.1, atol=1.0).holds
    assert not close(111.0, 100.0, rtol=0.1).holds


def test_the_relative_tolerance_is_of_the_prediction() -> None:
    assert close(0.0, 1.0, rtol=1.0).holds
    assert not close(1.0, 0.0, rtol=1.0).holds


@pytest.mark.parametrize(("measured", "predicted"), [(nan, nan), (nan, 1.0), (1.0, nan), (array([1.0, nan]), 1.0)])
def test_nan_is_close_to_nothing(measured: float, predicted: float) -> None:
    evidence = close(measured, predicted, atol=inf)
    assert not evidence.holds
    assert "nan" in str(evidence)


def test_infinity_equals_itself_and_nothing_else() -> None:
    assert close(inf, inf).holds
    assert close(array([inf, -inf, 1.0]), array([inf, -inf, 1.0]), rtol=1e-3).holds
    assert not close(inf, -inf, rtol=1e-3).holds
    assert not close(1.0, inf, rtol=1e-3).holds
    assert not close(inf, 1.0, rtol=1e-3).holds


def test_the_worst_element_is_shown_with_its_tolerance() -> None:
    evidence = close(torch.tensor([[1.0, 2.0], [3.5, 4.1]]), torch.tensor([[1.0, 2.0], [3.0, 4.0]]), atol=0.25)
    assert (evidence.measured, evidence.relation, evidence.predicted) == ("3.5", "≈", "3 ± 0.25")
    assert str(evidence) == "3.5 ≈ 3 ± 0.25"
    assert not evidence.holds


def test_worst_means_furthest_beyond_its_own_tolerance() -> None:
    assert close(array([1000.5, 1.4]), array([1000.0, 1.0]), rtol=0.01).measured == "1.4"


def test_shapes_broadcast_and_nothing_is_not_evidence() -> None:
    assert close(np.ones((4, 3)), 1.0).holds
    for bad in (close, less_equal, greater_equal):
        with pytest.raises(ValueError, match="at least one number"):
            bad(torch.empty(0), 1.0)


def test_complex_numbers_are_compared_as_such() -> None:
    assert close(array([1 + 1j]), array([1 + 1j])).holds
    assert not close(array([1 + 1j]), array([1 - 1j]), atol=1.9).holds


def test_a_tensor_that_needs_a_gradient_can_be_measured() -> None:
    assert close(torch.ones(2, requires_grad=True), 1.0).holds


def test_bounds_include_their_border_and_show_the_nearest_element() -> None:
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


@pytest.mark.parametrize("bounded", [less_equal, greater_equal])
@pytest.mark.parametrize(("measured", "bound"), [(nan, 1.0), (array([0.0, nan]), 0.0), (1.0, nan)])
def test_nan_keeps_no_bound(bounded: Callable[..., Evidence], measured: float, bound: float) -> None:
    evidence = bounded(measured, bound)
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
def test_what_has_no_exponent_is_not_finite(x: list[float], y: list[float]) -> None:
    assert not isfinite(exponent(x, y))


@pytest.mark.parametrize("y", [[1.0, 0.0], [1.0, -1.0], [1.0, nan], [1.0], [[1.0], [2.0]]])
def test_rate_refuses_what_has_no_slope(y: list[float]) -> None:
    with pytest.raises(ValueError, match="rate needs"):
        rate(array([1.0, 2.0]), array(y), 1.0, atol=1.0)


def test_rate_needs_two_different_places() -> None:
    with pytest.raises(ValueError, match="two or more"):
        rate(array([2.0, 2.0]), array([1.0, 3.0]), 1.0, atol=1.0)


def test_a_test_rejects_below_its_level_and_accepts_otherwise() -> None:
    assert rejects(1e-4).holds
    assert not rejects(1e-3).holds
    assert accepts(1e-3).holds
    assert not accepts(1e-4).holds
    assert not rejects(nan).holds
    assert not accepts(nan).holds


def fail(error: Exception) -> object:
    raise error


def test_raises_wants_this_kind_of_error() -> None:
    evidence = raises(ValueError, lambda: fail(ValueError("width must be even\nand more")))
    assert evidence.holds
    assert str(evidence) == "ValueError: width must be even is a ValueError"
    assert raises(ArithmeticError, lambda: fail(ZeroDivisionError("0"))).holds
    assert not raises(ValueError, lambda: None).holds
    with pytest.raises(TypeError):
        raises(ValueError, lambda: fail(TypeError("another")))


def test_all_of_names_what_fails() -> None:
    evidence = all_of(first=TRUE, the_second=FALSE, third=TRUE)
    assert not evidence.holds
    assert evidence.measured == "2 of 3 hold, not: the second"
    assert [name for name, _ in evidence.parts] == ["first", "the second", "third"]
    assert all_of(first=TRUE, second=TRUE).holds
    assert not all_of(first=TRUE, second=all_of(inner=FALSE)).holds


def test_all_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        all_of()


@pytest.mark.parametrize(("printed", "corrected"), [(TRUE, TRUE), (FALSE, FALSE), (TRUE, FALSE)])
def test_a_correction_needs_both_sides(printed: Evidence, corrected: Evidence) -> None:
    assert not Correction(printed=printed, corrected=corrected).holds


def test_a_correction_holds_when_the_print_fails_and_the_right_one_holds() -> None:
    assert Correction(printed=FALSE, corrected=TRUE).holds


def agreement(evidence: Evidence) -> Agreement:
    assert isinstance(evidence.compared, Agreement)
    return evidence.compared


def bound(evidence: Evidence) -> Bound:
    assert isinstance(evidence.compared, Bound)
    return evidence.compared


def test_what_was_compared_is_kept_element_by_element() -> None:
    kept = agreement(close(torch.tensor([[1.0, 2.0], [3.5, 4.0]]), array([1.0, 2.0]), atol=0.25, rtol=0.5))
    assert kept.measured == (1.0, 2.0, 3.5, 4.0)
    assert kept.predicted == (1.0, 2.0, 1.0, 2.0)
    assert kept.tolerance == (0.75, 1.25, 0.75, 1.25)
    assert (kept.places, kept.worst, kept.count) == ((0, 1, 2, 3), 2, 4)


@pytest.mark.parametrize("place", [0, 12_345, 99_999])
def test_of_many_numbers_the_worst_is_kept_among_an_even_few(place: int) -> None:
    measured = np.zeros((100, 1_000))
    measured.flat[place] = 3.0
    for kept in (agreement(close(measured, 0.0, atol=1.0)), bound(less_equal(measured, 1.0))):
        assert (kept.measured[kept.worst], kept.places[kept.worst], kept.count) == (3.0, place, 100_000)
        assert len(kept.measured) in (KEPT, KEPT + 1)
        even = [each for each in kept.places if each != place or place in (0, 99_999)]
        assert (even[0], even[-1]) == (0, 99_999)
        assert set(np.diff(even)) <= {502, 503}


def test_bounds_know_their_side() -> None:
    assert bound(less_equal(array([1.0, 3.0]), 2.0)) == Bound((1.0, 3.0), (2.0, 2.0), True, (0, 1), 1, 2)
    assert bound(greater_equal(1.0, 2.0)) == Bound((1.0,), (2.0,), False, (0,), 0, 1)


def test_of_complex_numbers_the_distances_are_kept() -> None:
    kept = bound(close(array([1 + 1j, 2.0]), array([1 - 1j, 2.0]), atol=0.5, rtol=1.0))
    assert kept.measured == (2.0, 0.0)
    assert kept.bound == pytest.approx((0.5 + 2**0.5, 2.5))
    assert kept.upper


def test_a_rate_keeps_its_points_and_the_centre_of_all() -> None:
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


def test_a_p_value_is_kept_with_its_level() -> None:
    assert rejects(1e-4).compared == PValue(1e-4, 1e-3, below=True)
    assert accepts(0.3, level=0.05).compared == PValue(0.3, 0.05, below=False)


def test_errors_and_sums_of_parts_compare_no_numbers() -> None:
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
def test_only_plain_numbers_are_kept_and_they_travel(evidence: Evidence) -> None:
    assert evidence.compared is not None
    for each in astuple(evidence.compared):
        assert all(type(number) in (float, int, bool) for number in (each if isinstance(each, tuple) else (each,)))
    there = pickle.loads(pickle.dumps(all_of(part=evidence)))
    assert repr(there.parts[0][1].compared) == repr(evidence.compared)  # by repr, for nan is not nan
    assert there == all_of(part=evidence)
    assert "compared" not in repr(evidence)
