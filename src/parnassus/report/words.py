"""Pictures of words: which words a model expects in a gap, and which words look at which."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from parnassus.report.ink import PALETTE, SEQUENTIAL, as_array, subplots

if TYPE_CHECKING:
    from matplotlib.figure import Figure

READABLE = 0.09  # share of the width from which a bar has room for its word


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
