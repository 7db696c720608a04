"""Line charts side by side, over a common axis of sizes in powers of two."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from parnassus.report.style import as_array, colours, subplots

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray


def panels(
    charts: Mapping[str, Mapping[str, object]], sizes: object, *, x_label: str, log_y: bool = False
) -> tuple["Figure", "NDArray[Any]"]:
    """A chart per title with a line per name, over a logarithmic axis of base 2; the first chart has the legend.

    Returns the figure and its axes (1, charts).
    """
    if not charts:
        raise ValueError("panels must have at least one chart; got none")
    figure, axes = subplots(1, len(charts), size=(1.0 + 10.0 / 3 * len(charts), 3.4))
    points = as_array(sizes)
    for ax, (title, lines) in zip(axes[0], charts.items(), strict=True):
        for (name, line), colour in zip(lines.items(), colours(len(lines)), strict=True):
            ax.plot(points, as_array(line), color=colour, marker="o", markersize=3.5, label=name)
        ax.set_xscale("log", base=2)
        ax.set(xlabel=x_label, title=title, yscale="log" if log_y else "linear")
    axes[0, 0].legend()
    return figure, axes
