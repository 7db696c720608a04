"""Pictures of words: which a model expects in a gap, which look at which, and which made it say what it says."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from parnassus.report.attributions import LESS, MORE
from parnassus.report.ink import PALETTE, SEQUENTIAL, as_array, plain, subplots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

READABLE = 0.09  # share of the width from which a bar has room for its word
STRONGEST = (
    0.6  # cover of the colour behind a word: ink stays readable on it, dark on a light page, light on a dark one
)
WORTH_TELLING = 0.1  # share of the largest part from which a word's part is written below it


def guessed_words(
    gaps: Sequence[str], guesses: Sequence[Sequence[str]], probabilities: object, right: object
) -> "Figure":
    """A row for each gap, named by the word that stood there: bars as wide as each guess is likely, in their order.

    `probabilities` and `right` are (gap, guess); a guess that is right has another colour.
    """
    shares, hits = as_array(probabilities), as_array(right)
    if not len(gaps) == len(guesses) == len(shares) == len(hits):
        raise ValueError(
            f"each gap needs guesses and their probabilities; got {len(gaps)} gaps, {len(guesses)} lists of guesses, "
            f"{len(shares)} of probabilities, {len(hits)} of hits"
        )
    figure, axes = subplots(size=(7.2, 0.9 + 0.42 * len(gaps)))
    ax = axes[0, 0]
    for row, words in enumerate(guesses):
        left = 0.0
        for word, share, hit in zip(words, shares[row].tolist(), hits[row].tolist(), strict=True):
            ax.barh(row, share, left=left, height=0.7, color=PALETTE[1 if hit else 0], edgecolor="white", linewidth=0.8)
            if share > READABLE:
                ax.text(left + share / 2, row, word, ha="center", va="center", color="white", fontsize=9)
            left += share
    ax.set_yticks(range(len(gaps)), gaps)
    ax.invert_yaxis()
    ax.set(xlabel="probability", xlim=(0.0, 1.0))
    ax.grid(visible=False, axis="y")
    return figure


def alignment(weights: object, columns: Sequence[str], rows: Sequence[str]) -> "Figure":
    """Weights from 0 to 1 as colours: words of the source above, words of the target at the left."""
    shares = as_array(weights)
    if shares.shape != (len(rows), len(columns)):
        raise ValueError(f"weights must be rows × columns, {len(rows)} × {len(columns)}; got {shares.shape}")
    figure, axes = subplots(size=(1.6 + 0.42 * len(columns), 1.4 + 0.36 * len(rows)))
    ax = axes[0, 0]
    ax.imshow(shares, cmap=SEQUENTIAL, vmin=0.0, vmax=1.0, aspect="auto")
    ax.xaxis.tick_top()
    ax.set_xticks(range(len(columns)), columns, rotation=45, ha="left", rotation_mode="anchor")
    ax.set_yticks(range(len(rows)), rows)
    ax.grid(visible=False)
    return figure


def highlighted(words: Sequence[str], parts: object, *, title: str = "", wide: float = 8.0) -> "Figure":
    """A text whose words have colours behind them, as strong as their parts: what raises and what lowers.

    Below a word is its part, if it is not small; below the text is the scale. Lines break at `wide` inches.
    """
    numbers = as_array(parts)
    if len(words) != len(numbers) or not len(words):
        raise ValueError(
            f"each word needs its part, and there must be some; got {len(words)} words, {len(numbers)} parts"
        )
    most = float(abs(numbers).max()) or 1.0
    names = [word.strip() for word in words]
    told = [f"{part:+.2g}" if abs(part) >= WORTH_TELLING * most else "" for part in numbers.tolist()]
    widths = [max(inches(name, 11) + 0.12, inches(number, 7)) for name, number in zip(names, told, strict=True)]
    places, lines = _set_in_lines(widths, wide)
    tall = 0.5 * lines + 0.5 + 0.3 * bool(title)
    figure, axes = subplots(size=(wide + 0.2, tall + 0.1))
    ax = axes[0, 0]
    plain(ax)
    ax.set(xlim=(0.0, wide), ylim=(tall, 0.0))
    if title:
        ax.text(0.0, 0.12, title, ha="left", va="center", fontsize=10, fontweight="bold")
    for name, number, width, part, (left, line) in zip(names, told, widths, numbers.tolist(), places, strict=True):
        top = 0.3 * bool(title) + 0.5 * line
        ax.add_patch(_patch((left, top + 0.03), (width, 0.26), part / most, rounding=0.05))
        middle = left + width / 2
        ax.text(middle, top + 0.165, name, ha="center", va="center", fontsize=11)
        ax.text(middle, top + 0.37, number, ha="center", va="center", fontsize=7)
    _draw_scale(ax, tall - 0.28, most)
    return figure


def inches(text: str, size: float) -> float:
    """How wide a text is in the font of our figures, at so many points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    wide, _, _ = text_to_path.get_text_width_height_descent(text, FontProperties(size=size), False)
    return float(wide) / 72


def _set_in_lines(widths: Sequence[float], wide: float) -> tuple[list[tuple[float, int]], int]:
    """Where each word begins and in which line, and how many lines there are."""
    places, left, line = [], 0.0, 0
    for width in widths:
        if left and left + width > wide:
            left, line = 0.0, line + 1
        places.append((left, line))
        left += width + 0.05
    return places, line + 1


def _patch(corner: tuple[float, float], size: tuple[float, float], share: float, *, rounding: float) -> "Patch":
    """A field whose colour says raises or lowers, as strong as `share` is of the largest part."""
    from matplotlib.patches import FancyBboxPatch

    style = f"round,pad=0,rounding_size={rounding}"
    colour, cover = MORE if share > 0 else LESS, STRONGEST * min(1.0, abs(share))
    return FancyBboxPatch(corner, *size, style, facecolor=colour, alpha=cover, edgecolor="none")


def _draw_scale(ax: "Axes", top: float, most: float) -> None:
    """Colours from the part that lowers most to the one that raises most."""
    steps, wide, left = 11, 0.16, 1.1
    for step in range(steps):
        share = 2 * step / (steps - 1) - 1
        ax.add_patch(_patch((left + wide * step, top), (wide, 0.14), share, rounding=0.001))
    ax.text(left - 0.08, top + 0.07, f"lowers  −{most:.2g}", ha="right", va="center", fontsize=8.5)
    ax.text(left + wide * steps + 0.08, top + 0.07, f"+{most:.2g}  raises", ha="left", va="center", fontsize=8.5)
