"""The figure of a piece of evidence: what was measured, what was predicted, and what would have been accepted."""

from textwrap import fill
from typing import TYPE_CHECKING, TypeAlias

from parnassus.atlas.evidence import Agreement, Bound, Correction, Evidence, PowerLaw, PValue
from parnassus.report.comparisons import (
    KEYS,
    draw_agreement,
    draw_bound,
    draw_one_agreement,
    draw_one_bound,
    draw_p_value,
    draw_power_law,
)
from parnassus.report.ink import house_style, subplots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Named: TypeAlias = tuple[str, Evidence]
SHOWN = 6  # panels in a figure
TALL, FLAT = 2.8, 1.3  # inches


def evidence_figure(evidence: Evidence | Correction) -> "Figure | None":
    """A panel for each comparison of numbers, those of an erratum as printed and as is right; None where none is.

    Of more than six, those that fail are among the ones shown.
    """
    if isinstance(evidence, Correction):
        return _erratum(evidence)
    panels = _comparisons(evidence, "")
    return _figure(_rows(panels[:SHOWN]), len(panels)) if panels else None


def _erratum(erratum: Correction) -> "Figure | None":
    """The printed side beside the right one where they have as many panels, else above it."""
    printed, right = _comparisons(erratum.printed, "printed"), _comparisons(erratum.corrected, "right")
    if not printed and not right:
        return None
    printed, right = printed or [("printed", erratum.printed)], right or [("right", erratum.corrected)]
    count = len(printed) + len(right)
    printed, right = printed[: SHOWN // 2], right[: SHOWN // 2]
    if len(printed) == len(right):
        return _figure([list(pair) for pair in zip(printed, right, strict=True)], count)
    return _figure(_rows(printed) + _rows(right), count)


def _comparisons(evidence: Evidence, name: str) -> list[Named]:
    """The parts of `evidence` that compare numbers, each with its name; first those that fail."""
    if not evidence.parts:
        return [(name, evidence)] if evidence.compared else []
    named = [(f"{name}: {inner}".lstrip(": "), part) for inner, part in evidence.parts]
    return sorted((each for inner, part in named for each in _comparisons(part, inner)), key=lambda each: each[1].holds)


def _rows(panels: list[Named]) -> list[list[Named]]:
    """Rows of two or three panels, number lines apart from what is taller."""
    rows = []
    for group in ([panel for panel in panels if not _flat(panel)], [panel for panel in panels if _flat(panel)]):
        wide = 2 if len(group) == 4 else 3
        rows += [group[start : start + wide] for start in range(0, len(group), wide)]
    return rows


def _flat(panel: Named) -> bool:
    compared = panel[1].compared
    return not isinstance(compared, PowerLaw) and not (isinstance(compared, Agreement | Bound) and compared.count > 1)


def _figure(rows: list[list[Named]], count: int) -> "Figure":
    """Rows of panels over one legend, which tells when `count` is more than they are."""
    from matplotlib import rc_context

    shown = sum(map(len, rows))
    heights = [FLAT if all(map(_flat, row)) else TALL for row in rows]
    characters = [90 if shown > 1 else 66, 54, 35]  # in a line of one of so many columns
    figure, axes = subplots(len(rows), size=(6.4 if shown == 1 else 9.6, sum(heights) + 0.35))
    axes[0, 0].get_gridspec().set_height_ratios(heights)
    with house_style(), rc_context({"font.size": 9.0}):
        for line, row in zip(axes[:, 0], rows, strict=True):
            places = line.get_subplotspec().subgridspec(1, len(row), wspace=0.05)
            line.remove()
            for column, (name, evidence) in enumerate(row):
                _panel(figure.add_subplot(places[0, column]), name, evidence, wide=characters[len(row) - 1])
        keys = {
            label: key
            for ax in reversed(figure.axes)
            for key, label in zip(*ax.get_legend_handles_labels(), strict=True)
        }
        names = [name for name in KEYS if name in keys]
        title = f"{shown} of {count} comparisons" if shown < count else None
        figure.legend([keys[name] for name in names], names, loc="outside lower center", ncols=len(names), title=title)
    return figure


def _panel(ax: "Axes", name: str, evidence: Evidence, *, wide: int) -> None:
    """One comparison with its name, its verdict and the numbers that decide, in lines of `wide` characters."""
    verdict = "✓\xa0holds" if evidence.holds else "✗\xa0fails"
    ax.set_title(fill(f"{name} {verdict}".strip(), wide), loc="left")
    sentence = fill(_sentence(evidence).replace("± ", "±\xa0").replace(" %", "\xa0%"), wide)
    match evidence.compared:
        case Agreement(count=1) as found:
            draw_one_agreement(ax, found, sentence, holds=evidence.holds)
        case Agreement() as found:
            draw_agreement(ax, found, sentence)
        case Bound(count=1) as found:
            draw_one_bound(ax, found, sentence, holds=evidence.holds)
        case Bound() as found:
            draw_bound(ax, found, sentence)
        case PowerLaw() as found:
            draw_power_law(ax, found)
        case PValue() as found:
            draw_p_value(ax, found, sentence, holds=evidence.holds)
        case None:
            ax.set_axis_off()
            ax.text(0.0, 0.9, sentence, va="top")


def _sentence(evidence: Evidence) -> str:
    """The numbers that decide."""
    match evidence.compared:
        case Agreement(measured, predicted, worst=worst, count=count) if (
            count > 1 and measured[worst] == predicted[worst]
        ):
            return f"all {count:,} exactly equal"
        case Agreement(count=count) | Bound(count=count) if count > 1:
            return f"worst of {count:,}: {evidence}"
    return str(evidence)
