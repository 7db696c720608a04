"""The style of all figures: one palette for light and dark pages.

Figures have a transparent background. In an SVG the text colour is a CSS variable, so that the same file is readable
on light and dark pages; a PNG has a white background.
"""

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from parnassus.report.formulas import to_mathtext

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#2b2e33"
FAINT = "#9aa1ab"
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#7f5fc4", "#8c8c8c", "#a65628", "#00868b")
"""Ten colours that readers with colour blindness can distinguish (after Okabe and Ito 2008), on white and on black."""

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
def figure_style() -> Iterator[None]:
    """A context with the style of all figures; global settings are not changed."""
    import matplotlib as mpl
    from cycler import cycler

    with mpl.rc_context({**_STYLE, "axes.prop_cycle": cycler(color=PALETTE)}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", 'Creating legend with loc="best"')  # given when drawing takes over a second
        yield


def subplots(
    rows: int = 1, columns: int = 1, *, size: tuple[float, float] = (6.4, 3.8), three_d: bool = False
) -> "tuple[Figure, NDArray[Any]]":
    """A figure of `size` inches and its axes as an array (rows, columns)."""
    from matplotlib.figure import Figure

    with figure_style():
        figure = Figure(figsize=size, layout="constrained")
        options = {"projection": "3d"} if three_d else {}
        axes = figure.subplots(rows, columns, squeeze=False, subplot_kw=options)
    for ax in axes.flat if three_d else ():
        for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
            axis.set_pane_color((0, 0, 0, 0))  # transparent, for dark pages
    return figure, axes


def save_figure(figure: "Figure", path: Path) -> None:
    """Write PATH.svg, with the text colour of the page, and PATH.png on white; each is written atomically.

    A dot in the name of PATH (`noise 0.5`) is part of the name.
    """
    _apply_style(figure)
    with _fixed_layout(figure):
        write_atomically(path.with_name(f"{path.name}.svg"), _draw_svg(figure).encode())
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=160, facecolor="white", pil_kwargs={"compress_level": 3})
        write_atomically(path.with_name(f"{path.name}.png"), buffer.getvalue())


def render_svg(figure: "Figure") -> str:
    """The figure as an SVG with the text colour of the page."""
    _apply_style(figure)
    with _fixed_layout(figure):
        return _draw_svg(figure)


@contextmanager
def _fixed_layout(figure: "Figure") -> Iterator[None]:
    """A context in the style of all figures, with the layout computed once: an engine computes it twice per file."""
    with figure_style():
        engine = figure.get_layout_engine()
        if engine is not None:
            engine.execute(figure)
            figure.set_layout_engine(None)  # keeps the positions
        yield
        if engine is not None:
            figure.set_layout_engine(engine)


def _draw_svg(figure: "Figure") -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    return use_theme_colours(buffer.getvalue().decode())


def use_theme_colours(svg: str) -> str:
    """The SVG with CSS variables for its text colours, set by the page or by the colour scheme."""
    svg = svg[svg.index("<svg") :]
    svg = svg.replace(INK, "var(--ink)").replace(FAINT, "var(--faint)")
    opening = svg.index(">") + 1
    return svg[:opening] + _THEME + svg[opening:]


def as_array(values: object) -> "NDArray[np.float64]":
    """Tensors, lists or arrays as a float64 array on the CPU."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    return np.asarray(values, dtype=np.float64)


def remove_frame(axes: "Axes") -> None:
    """Remove ticks, frame and grid."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def colours(count: int) -> Sequence[str]:
    """`count` colours of the palette, repeated after ten."""
    return [PALETTE[index % len(PALETTE)] for index in range(count)]


def rgb(colour: str) -> tuple[int, int, int]:
    """Red, green and blue from 0 to 255 of a colour such as "#0072b2"."""
    red, green, blue = bytes.fromhex(colour.removeprefix("#"))
    return red, green, blue


def _apply_style(figure: "Figure") -> None:
    """Typeset the indices in all text, and apply the style to text and legends created outside `figure_style`."""
    from matplotlib.colors import to_hex
    from matplotlib.legend import Legend
    from matplotlib.text import Text

    for artist in figure.findobj():
        if isinstance(artist, Text):
            artist.set_text(to_mathtext(artist.get_text()))
            if to_hex(artist.get_color()) == "#000000":
                artist.set_color(INK)
        elif isinstance(artist, Legend):
            artist.set_frame_on(False)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a temporary file and rename it, so that readers never see an incomplete file."""
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)  # a leftover, or a link: "x" follows none
    with new.open("xb") as file:
        file.write(content)
    new.replace(path)
