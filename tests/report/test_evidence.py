"""Figures of evidence show the compared numbers and the accepted ranges."""

from math import inf, log, nan

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from parnassus.atlas import (
    Correction,
    Evidence,
    accepts,
    all_of,
    close,
    greater_equal,
    less_equal,
    raises,
    rate,
    rejects,
    runs,
)
from parnassus.atlas.index import Atlas, run_mark
from parnassus.report import evidence_figure
from parnassus.report.style import render_svg

NOISE = np.random.default_rng(0).normal(size=100)
NO_NUMBERS = raises(ValueError, lambda: int("x"))
IDS = (
    *("B13.2.3-1", "B13.2.1-1", "B13.2.1-3", "B13.2.5-1", "B13.2.4-4", "B4.5-5", "B4.3-11", "Z5.5", "B1.4-11"),
    *("B1.4-5", "Z3.4", "B1.4-15"),
)


def draw_evidence(evidence: Evidence | Correction) -> Figure:
    figure = evidence_figure(evidence)
    assert figure is not None
    return figure


def find_line(ax: Axes, label: str) -> Line2D:
    (result,) = (line for line in ax.lines if line.get_label() == label)
    return result


def points(ax: Axes, label: str) -> list[tuple[float, float]]:
    x, y = (np.asarray(values, dtype=float).tolist() for values in find_line(ax, label).get_data())
    return list(zip(x, y, strict=True))


def interval(ax: Axes, label: str) -> tuple[float, float]:
    """The limits of a shaded interval."""
    (area,) = (patch for patch in ax.patches if patch.get_label() == label)
    assert isinstance(area, Rectangle)
    return area.get_x(), area.get_x() + area.get_width()


def heights(ax: Axes, label: str) -> list[float]:
    """The heights of all vertices of a shaded area."""
    (patch,) = (collection for collection in ax.collections if collection.get_label() == label)
    assert isinstance(patch, PolyCollection)
    return sorted({round(float(y), 9) for path in patch.get_paths() for _, y in np.asarray(path.vertices)})


def panel_titles(figure: Figure) -> list[str]:
    return [title.replace("\xa0", " ") for ax in figure.axes if (title := ax.get_title(loc="left"))]


def test_single_number_is_drawn_with_prediction_and_tolerance() -> None:
    (ax,) = draw_evidence(close(2.1, 2.0, atol=0.25)).axes
    assert interval(ax, "accepted") == pytest.approx((1.75, 2.25))
    assert points(ax, "predicted")[0][0] == 2.0
    assert points(ax, "measured") == [(2.1, 0.5)]
    assert "2.1 ≈ 2 ±\xa00.25" in ax.get_xlabel()
    left, right = ax.get_xlim()
    assert left < 1.75
    assert right > 2.25


def test_relatively_small_deviations_are_in_units_of_the_tolerance() -> None:
    (ax,) = draw_evidence(close(1e6 + 3e-6, 1e6, atol=1e-5)).axes
    assert interval(ax, "accepted") == (-1.0, 1.0)
    assert points(ax, "measured")[0][0] == pytest.approx(0.3, rel=1e-3)
    assert ax.get_xlabel().startswith("deviation / tolerance\n")


def test_exact_numbers_have_no_band_and_failures_are_crosses() -> None:
    (ax,) = draw_evidence(close(2.0, 5.0)).axes
    assert [patch.get_label() for patch in ax.patches] == []
    assert points(ax, "measured, outside") == [(2.0, 0.5)]
    assert find_line(ax, "measured, outside").get_marker() == "x"
    assert panel_titles(draw_evidence(close(2.0, 5.0))) == ["✗ fails"]


def test_cross_follows_the_verdict_at_the_border() -> None:
    """1 + 0.1 exceeds 1 ± 0.1 by a rounding error; p = level does not reject."""
    for evidence in (close(1.1, 1.0, atol=0.1), rejects(1e-3)):
        assert not evidence.holds
        assert len(points(draw_evidence(evidence).axes[0], "measured, outside")) == 1


@pytest.mark.parametrize("upper", [True, False])
def test_forbidden_side_of_a_bound_is_shaded(upper: bool) -> None:
    compare = less_equal if upper else greater_equal
    (ax,) = draw_evidence(compare(2.0, 3.0)).axes
    left, right = ax.get_xlim()
    assert interval(ax, "forbidden") == ((3.0, right) if upper else (left, 3.0))
    (ax,) = draw_evidence(compare(np.array([1.0, 2.0, 4.0]), np.array([2.0, 2.0, 3.0]))).axes
    bottom, top = ax.get_ylim()
    assert heights(ax, "forbidden") == pytest.approx([2.0, 3.0, top] if upper else [bottom, 2.0, 3.0])
    assert points(ax, "measured, outside") == [(2.0, 4.0) if upper else (0.0, 1.0)]
    assert len(points(ax, "measured")) == 2


def test_widely_spread_numbers_have_a_log_scale_with_correct_ticks() -> None:
    figure = draw_evidence(less_equal(np.array([1e-7, 1e-3, 0.5]), 1e4))
    (ax,) = figure.axes
    assert ax.get_yscale() == "log"
    figure.draw_without_rendering()
    labels = [label.get_text() for label in ax.get_yticklabels()]
    powers = {f"{10.0**power:g}": power for power in range(-2, 3)}
    superscripts = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
    exponents = [powers[text] if text in powers else int(text[2:].translate(superscripts)) for text in labels]
    assert exponents == pytest.approx(np.log10(ax.get_yticks()).tolist())
    assert draw_evidence(less_equal(3.0, 4.0)).axes[0].get_xscale() == "linear"


def test_many_numbers_are_drawn_with_prediction_and_band() -> None:
    wave = np.sin(np.linspace(0, 6, 60))
    (ax,) = draw_evidence(close(wave + 0.05, wave, atol=0.2)).axes
    assert np.array(points(ax, "predicted")) == pytest.approx(np.column_stack([np.arange(60), wave]))
    assert len(points(ax, "measured")) == 60
    edges = heights(ax, "accepted")
    assert (edges[0], edges[-1]) == pytest.approx((wave.min() - 0.2, wave.max() + 0.2))


def test_narrow_band_adds_a_panel_of_deviations() -> None:
    wave = np.sin(np.linspace(0, 6, 60))
    deviations = np.full(60, 2e-13)
    deviations[7] = -5e-13
    above, below = draw_evidence(close(wave + deviations, wave, atol=1e-12)).axes
    assert points(above, "predicted")[7][1] == pytest.approx(wave[7])
    assert [y for _, y in points(below, "measured")] == pytest.approx(deviations / 1e-12, abs=1e-3)
    assert points(below, "worst")[0] == pytest.approx((7.0, -0.5), abs=1e-3)
    bottom, top = below.get_ylim()
    assert (bottom, top) == (-1.25, 1.25)


def test_small_deviations_that_fail_are_visible() -> None:
    wave = np.sin(np.linspace(0, 6, 60))
    _, below = draw_evidence(close(wave + 3e-9, wave, atol=1e-9)).axes
    assert [y for _, y in points(below, "measured, outside")] == pytest.approx(np.full(60, 3.0), rel=1e-3)
    assert below.get_ylim()[1] > 3.0
    assert panel_titles(draw_evidence(close(wave + 3e-9, wave, atol=1e-9))) == ["✗ fails"]


def test_numbers_about_a_large_constant_are_in_units_of_the_tolerance() -> None:
    (ax,) = draw_evidence(close(1e6 + np.array([1e-6, -2e-6]), 1e6, atol=1e-5)).axes
    assert [y for _, y in points(ax, "measured")] == pytest.approx([0.1, -0.2], rel=1e-2)


def test_noisy_predictions_are_plotted_on_the_diagonal() -> None:
    (ax,) = draw_evidence(close(NOISE + 0.1, NOISE, atol=1.0)).axes
    assert np.array(points(ax, "predicted")) == pytest.approx(np.sort(NOISE)[:, None].repeat(2, axis=1))
    assert [y - x for x, y in points(ax, "measured")] == pytest.approx(np.full(100, 0.1))


def test_equal_numbers_have_no_worst_element() -> None:
    (ax,) = draw_evidence(close(np.arange(50), np.arange(50))).axes
    assert "worst" not in [line.get_label() for line in ax.lines]
    assert ax.get_xlabel().endswith("all 50 exactly equal")


def test_rate_lines_meet_in_the_centre_with_their_slopes() -> None:
    x = np.array([1.0, 10.0, 100.0])
    (ax,) = draw_evidence(rate(x, 7 * x**-0.5, -0.6, atol=0.25)).axes
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    fitted, predicted = (line.get_xydata() for line in ax.lines if len(np.asarray(line.get_xdata())) == 50)
    for line, slope in ((np.asarray(fitted), -0.5), (np.asarray(predicted), -0.6)):
        (x0, y0), (x1, y1) = line[0], line[-1]
        assert log(y1 / y0) / log(x1 / x0) == pytest.approx(slope)
        assert np.interp(log(10), np.log(line[:, 0]), np.log(line[:, 1])) == pytest.approx(log(7 * 10**-0.5))
    edges = heights(ax, "accepted")
    assert edges[-1] == pytest.approx(7 * 10**-0.5 * 10**0.85)  # exponent −0.6 − 0.25, a decade to the left
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["fitted: exponent -0.5", "predicted: -0.6 ± 0.25"]


def test_p_values_are_drawn_with_their_level() -> None:
    (ax,) = draw_evidence(accepts(0.25, level=1e-3)).axes
    assert (ax.get_xscale(), ax.get_xlim()[1]) == ("log", 1.0)
    assert interval(ax, "forbidden")[1] == 1e-3
    assert points(ax, "measured")[0][0] == 0.25
    (ax,) = draw_evidence(rejects(0.0)).axes
    assert interval(ax, "forbidden") == (1e-3, 1.0)
    assert find_line(ax, "measured").get_marker() == "<"  # zero is outside of any logarithmic scale


def test_each_part_has_a_panel_with_its_name_and_verdict() -> None:
    figure = draw_evidence(all_of(one=close(1.0, 1.0), two=all_of(inner=less_equal(3.0, 2.0)), three=NO_NUMBERS))
    assert panel_titles(figure) == ["two: inner ✗ fails", "one ✓ holds"]


def test_at_most_six_parts_are_shown_including_failures() -> None:
    parts = {f"part_{index}": close(1.0, 1.0, atol=0.1) for index in range(7)}
    figure = draw_evidence(all_of(**parts, last=close(2.0, 1.0, atol=0.1)))
    assert len(panel_titles(figure)) == 6
    assert "last ✗ fails" in panel_titles(figure)
    (legend,) = figure.legends
    assert legend.get_title().get_text() == "6 of 8 comparisons"
    assert [text.get_text() for text in legend.get_texts()] == [
        "measured",
        "measured, outside",
        "predicted",
        "accepted",
    ]


def test_erratum_shows_both_sides_with_their_verdicts() -> None:
    printed, corrected = close(3.0, 1.0, atol=0.1), close(1.05, 1.0, atol=0.1)
    side_by_side = draw_evidence(Correction(printed=printed, corrected=corrected))
    assert panel_titles(side_by_side) == ["printed ✗ fails", "corrected ✓ holds"]
    left, right = (ax.get_position() for ax in side_by_side.axes)
    assert (left.x0 < right.x0, left.y0 == right.y0) == (True, True)
    stacked = draw_evidence(Correction(printed=printed, corrected=all_of(a=corrected, b=corrected)))
    assert panel_titles(stacked) == ["printed ✗ fails", "corrected: a ✓ holds", "corrected: b ✓ holds"]


def test_side_without_numbers_is_shown_as_text() -> None:
    failing = runs(lambda: int("x"), unless=ValueError)
    figure = draw_evidence(Correction(printed=failing, corrected=close(1.0, 1.0)))
    assert panel_titles(figure) == ["printed ✗ fails", "corrected ✓ holds"]
    assert "ValueError" in figure.axes[0].texts[0].get_text()


def test_no_figure_without_numbers() -> None:
    assert evidence_figure(NO_NUMBERS) is None
    assert evidence_figure(all_of(first=NO_NUMBERS, second=NO_NUMBERS)) is None
    assert evidence_figure(Correction(printed=NO_NUMBERS, corrected=NO_NUMBERS)) is None


@pytest.mark.parametrize(
    "evidence",
    [
        close(nan, 1.0, atol=1.0),
        close(1.0, nan),
        close(inf, inf),
        close(inf, 1.0, atol=0.5),
        close(1.0, 3.0, atol=inf),
        close(1e306, -1e306, rtol=0.1),
        close(np.array([1.0, nan, inf, 3.0]), np.array([1.0, 2.0, inf, 3.1]), atol=0.2),
        close(np.full(30, nan), 1.0),
        close(np.array([1.0, 2.0]), 3.0, atol=inf),
        close(np.array([1 + 1j, 2.0]), np.array([1.0, 2.0]), atol=1e-6),
        close(10.0 ** np.arange(-5, 5), 10.0 ** np.arange(-5, 5), rtol=1.5),
        less_equal(inf, inf),
        less_equal(-inf, 0.0),
        greater_equal(inf, 1e300),
        greater_equal(9e-305, 1e-305),
        greater_equal(np.array([1e-40, 1e-6]), 1e-300),
        greater_equal(np.array([nan, 1.0]), 0.0),
        less_equal(np.zeros(3), 0.0),
        less_equal(NOISE - 1, NOISE),
        accepts(nan),
        rejects(1e-320),
        rate(np.array([1.0, 1e200]), np.array([1.0, 1e-200]), -1.0, atol=0.0),
    ],
)
def test_any_numbers_can_be_drawn(evidence: Evidence) -> None:
    svg = render_svg(draw_evidence(all_of(part=evidence, whole=evidence)))
    assert ("✓" if evidence.holds else "✗") in svg


@pytest.mark.parametrize("row", IDS)
def test_claims_and_errata_have_figures(row: str) -> None:
    outcomes = [run_mark(mark) for mark in Atlas().marks_of(row)]
    figures = [(outcome, figure) for outcome in outcomes if (figure := evidence_figure(outcome)) is not None]
    assert figures
    for outcome, figure in figures:
        verdicts = [title.split()[-2] for title in panel_titles(figure)]
        assert set(verdicts) == ({"✓", "✗"} if isinstance(outcome, Correction) else {"✓"})
        assert len(verdicts) <= 6
        svg = render_svg(figure)
        assert "var(--ink)" in svg
        assert len(svg) < 500_000
