"""Figures of evidence: measured and predicted values with the accepted ranges."""

from textwrap import fill
from typing import TYPE_CHECKING, TypeAlias

from parnassus.atlas.evidence import Agreement, Bound, Correction, Evidence, PowerLaw, PValue
from parnassus.report.comparison_plots import (
    KEYS,
    draw_agreement,
    draw_bound,
    draw_one_agreement,
    draw_one_bound,
    draw_p_value,
    draw_power_law,
)
from parnassus.report.style import figure_style, subplots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Named: TypeAlias = tuple[str, Evidence]
MAX_PANELS = 6
PLOT_HEIGHT, LINE_HEIGHT = 2.8, 1.3  # of a panel, in inches


def evidence_figure(evidence: Evidence | Correction) -> "Figure | None":
    """A panel for each comparison of numbers, of both sides for an erratum; None without a comparison.

    A figure has up to six panels; comparisons that fail come first.
    """
    if isinstance(evidence, Correction):
        return _erratum(evidence)
    panels = _comparisons(evidence, "")
    return _figure(_rows(panels[:MAX_PANELS]), len(panels)) if panels else None


def _erratum(erratum: Correction) -> "Figure | None":
    """The printed side next to the corrected one if both have the same number of panels, otherwise above it."""
    printed, right = _comparisons(erratum.printed, "printed"), _comparisons(erratum.corrected, "corrected")
    if not printed and not right:
        return None
    printed, right = printed or [("printed", erratum.printed)], right or [("corrected", erratum.corrected)]
    count = len(printed) + len(right)
    printed, right = printed[: MAX_PANELS // 2], right[: MAX_PANELS // 2]
    if len(printed) == len(right):
        return _figure([list(pair) for pair in zip(printed, right, strict=True)], count)
    return _figure(_rows(printed) + _rows(right), count)


def _comparisons(evidence: Evidence, name: str) -> list[Named]:
    """The parts of `evidence` that compare numbers, each with its name; those that fail come first."""
    if not evidence.parts:
        return [(name, evidence)] if evidence.compared else []
    named = [(f"{name}: {inner}".lstrip(": "), part) for inner, part in evidence.parts]
    return sorted((each for inner, part in named for each in _comparisons(part, inner)), key=lambda each: each[1].holds)


def _rows(panels: list[Named]) -> list[list[Named]]:
    """Rows of two or three panels; number lines and plots are in different rows."""
    rows = []
    plots = [panel for panel in panels if not _is_number_line(panel)]
    number_lines = [panel for panel in panels if _is_number_line(panel)]
    for group in (plots, number_lines):
        columns = 2 if len(group) == 4 else 3
        rows += [group[start : start + columns] for start in range(0, len(group), columns)]
    return rows


def _is_number_line(panel: Named) -> bool:
    compared = panel[1].compared
    return not isinstance(compared, PowerLaw) and not (isinstance(compared, Agreement | Bound) and compared.count > 1)


def _figure(rows: list[list[Named]], count: int) -> "Figure":
    """Rows of panels with one legend, whose title includes `count` if not all comparisons are shown."""
    from matplotlib import rc_context

    panels = sum(map(len, rows))
    heights = [LINE_HEIGHT if all(map(_is_number_line, row)) else PLOT_HEIGHT for row in rows]
    characters = [90 if panels > 1 else 66, 54, 35]  # per line, by the number of columns
    figure, axes = subplots(len(rows), size=(6.4 if panels == 1 else 9.6, sum(heights) + 0.35))
    axes[0, 0].get_gridspec().set_height_ratios(heights)
    with figure_style(), rc_context({"font.size": 9.0}):
        for line, row in zip(axes[:, 0], rows, strict=True):
            cells = line.get_subplotspec().subgridspec(1, len(row), wspace=0.05)
            line.remove()
            for column, (name, evidence) in enumerate(row):
                _draw_panel(figure.add_subplot(cells[0, column]), name, evidence, width=characters[len(row) - 1])
        keys = {
            label: key
            for ax in reversed(figure.axes)
            for key, label in zip(*ax.get_legend_handles_labels(), strict=True)
        }
        names = [name for name in KEYS if name in keys]
        title = f"{panels} of {count} comparisons" if panels < count else None
        figure.legend([keys[name] for name in names], names, loc="outside lower center", ncols=len(names), title=title)
    return figure


def _draw_panel(ax: "Axes", name: str, evidence: Evidence, *, width: int) -> None:
    """One comparison with its name, its verdict and the decisive numbers, in lines of `width` characters."""
    verdict = "✓\xa0holds" if evidence.holds else "✗\xa0fails"
    ax.set_title(fill(f"{name} {verdict}".strip(), width), loc="left")
    sentence = fill(_sentence(evidence).replace("± ", "±\xa0").replace(" %", "\xa0%"), width)
    match evidence.compared:
        case Agreement(count=1) as comparison:
            draw_one_agreement(ax, comparison, sentence, holds=evidence.holds)
        case Agreement() as comparison:
            draw_agreement(ax, comparison, sentence)
        case Bound(count=1) as comparison:
            draw_one_bound(ax, comparison, sentence, holds=evidence.holds)
        case Bound() as comparison:
            draw_bound(ax, comparison, sentence)
        case PowerLaw() as comparison:
            draw_power_law(ax, comparison)
        case PValue() as comparison:
            draw_p_value(ax, comparison, sentence, holds=evidence.holds)
        case None:
            ax.set_axis_off()
            ax.text(0.0, 0.9, sentence, va="top")


def _sentence(evidence: Evidence) -> str:
    """The decisive numbers as text."""
    match evidence.compared:
        case Agreement(measured, predicted, worst=worst, count=count) if (
            count > 1 and measured[worst] == predicted[worst]
        ):
            return f"all {count:,} exactly equal"
        case Agreement(count=count) | Bound(count=count) if count > 1:
            return f"worst of {count:,}: {evidence}"
    return str(evidence)
