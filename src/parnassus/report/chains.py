"""A chain of pictures: states in a row, with arrows there and back (book fig. 13.4)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from parnassus.report.formulas import with_scripts
from parnassus.report.ink import INK, PALETTE, as_array, plain, subplots
from parnassus.report.plots import show_image

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

APART = 1.45  # from one picture to the next, in widths of a picture


def chain_of_images(images: object, *, names: Sequence[str], forward: str, backward: str) -> "Figure":
    """Pictures (n, channels, height, width) in a row; `forward` and `backward` say what the two kinds of arrow do."""
    pictures = as_array(images)
    if pictures.ndim != 4 or len(pictures) < 2 or len(names) != len(pictures):
        raise ValueError(
            f"need two pictures (n, channels, height, width) or more, a name for each; got {pictures.shape} "
            f"and {len(names)} names"
        )
    tall = pictures.shape[2] / pictures.shape[3]
    across = APART * (len(pictures) - 1) + 1
    figure, axes = subplots(size=(9.0, 9.0 / (across + 0.2) * (tall + 1.9)))
    ax = axes[0, 0]
    plain(ax)
    for index, (picture, name) in enumerate(zip(pictures, names, strict=True)):
        inset = ax.inset_axes((APART * index, 0, 1, tall), transform=ax.transData)
        show_image(inset, picture)
        plain(inset)
        ax.text(APART * index + 0.5, -0.08, with_scripts(name), ha="center", va="top")
    for index in range(len(pictures) - 1):
        left, right = APART * index + 0.5, APART * (index + 1) + 0.5
        _arrow(ax, (left, tall + 0.06), (right, tall + 0.06), PALETTE[0])
        _arrow(ax, (right, -0.42), (left, -0.42), PALETTE[1])
    ax.text(across / 2, tall + 0.56, with_scripts(forward), ha="center", va="bottom", color=INK)
    ax.text(across / 2, -0.92, with_scripts(backward), ha="center", va="top", color=INK)
    ax.set_xlim(-0.1, across + 0.1)
    ax.set_ylim(-1.15, tall + 0.75)
    ax.set_aspect("equal")
    return figure


def _arrow(ax: "Axes", start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
    """An arc to the left of its direction of travel."""
    style = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.4, "connectionstyle": "arc3,rad=-0.35"}
    ax.annotate("", xy=end, xytext=start, arrowprops=style)
