"""The house style: one set of colours for light and dark pages, figures that follow the page they stand on.

A figure is drawn once, with ink on nothing. In the SVG the ink becomes a CSS variable, so the same file is
readable on white and on black; the PNG is for everywhere else and stands on white.
"""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from parnassus.report.formulas import with_scripts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#2b2e33"
FAINT = "#9aa1ab"
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#7f5fc4", "#8c8c8c", "#a65628", "#00868b")
"""Ten colours apart for the colour-blind too (after Okabe and Ito 2008), each readable on white and on black."""

SEQUENTIAL = "viridis"
DIVERGING = "RdBu_r"

_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 10.0,
    "axes.titlesize": 10.5,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.formatter.min_exponent": 3,  # 0.2 on a log axis, not 2 × 10⁻¹
    "grid.color": FAINT,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "lines.linewidth": 1.8,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "image.interpolation": "nearest",
    "svg.fonttype": "none",
    "svg.hashsalt": "parnassus",
}
_THEME = (
    "<style>svg{--ink:#2b2e33;--faint:#9aa1ab}"
    "@media (prefers-color-scheme:dark){svg{--ink:#e4e6ea;--faint:#7d8590}}</style>"
)


@contextmanager
def house_style() -> Iterator[None]:
    """Draw in the house style inside this context; nothing global changes."""
    import matplotlib as mpl
    from cycler import cycler

    with mpl.rc_context({**_STYLE, "axes.prop_cycle": cycler(color=PALETTE)}):
        yield


def subplots(
    rows: int = 1, columns: int = 1, *, size: tuple[float, float] = (6.4, 3.8), three_d: bool = False
) -> "tuple[Figure, NDArray[Any]]":
    """A figure of `size` inches and its axes as an array (rows, columns), in the house style."""
    from matplotlib.figure import Figure

    with house_style():
        figure = Figure(figsize=size, layout="constrained")
        options = {"projection": "3d"} if three_d else {}
        axes = figure.subplots(rows, columns, squeeze=False, subplot_kw=options)
    for ax in axes.flat if three_d else ():
        for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
            axis.set_pane_color((0, 0, 0, 0))  # nothing behind, so that it suits dark pages too
    return figure, axes


def save_figure(figure: "Figure", path: Path) -> None:
    """Write PATH.svg, whose ink follows the page, and PATH.png on white; each appears whole or not at all.

    A dot in PATH's name (`noise 0.5`) is part of the name.
    """
    write_whole(path.with_name(f"{path.name}.svg"), svg_of(figure).encode())
    with house_style():
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=160, facecolor="white")
        write_whole(path.with_name(f"{path.name}.png"), buffer.getvalue())


def svg_of(figure: "Figure") -> str:
    """The figure as an SVG whose ink follows the page."""
    _settle(figure)
    with house_style():
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    return themed(buffer.getvalue().decode())


def themed(svg: str) -> str:
    """The SVG with its ink as CSS variables, which a page or the reader's colour scheme may set."""
    svg = svg[svg.index("<svg") :]
    svg = svg.replace(INK, "var(--ink)").replace(FAINT, "var(--faint)")
    opening = svg.index(">") + 1
    return svg[:opening] + _THEME + svg[opening:]


def as_array(values: object) -> "NDArray[np.float64]":
    """Tensors, lists or arrays as a float64 array on the CPU."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    return np.asarray(values, dtype=np.float64)


def plain(axes: "Axes") -> None:
    """Only the picture: no ticks, no frame, no grid."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def colours(count: int) -> Sequence[str]:
    """`count` colours, repeating after ten."""
    return [PALETTE[index % len(PALETTE)] for index in range(count)]


def _settle(figure: "Figure") -> None:
    """Lower the indices in all text, and give what was drawn outside the house style our ink and no frames."""
    from matplotlib.colors import to_hex
    from matplotlib.legend import Legend
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        if isinstance(text, Text):
            text.set_text(with_scripts(text.get_text()))
            if to_hex(text.get_color()) == "#000000":
                text.set_color(INK)
    for legend in figure.findobj(Legend):
        if isinstance(legend, Legend):
            legend.set_frame_on(False)


def write_whole(path: Path, content: bytes) -> None:
    """Write under another name first: whoever looks finds all of it or nothing."""
    new = path.with_name(f".{path.name}.new")
    new.write_bytes(content)
    new.replace(path)
