"""Figures in one style, and the HTML report of a run."""

from parnassus.report.animations import save_animation
from parnassus.report.block_diagrams import draw_blocks
from parnassus.report.evidence import evidence_figure
from parnassus.report.network_diagrams import draw_network, network_diagram
from parnassus.report.plots import (
    bar_chart,
    confusion_matrix,
    curves,
    heatmap,
    histograms,
    image_grid,
    scatter,
    show_image,
    surface,
)
from parnassus.report.style import FAINT, INK, PALETTE, save_figure, subplots

__all__ = [
    "FAINT",
    "INK",
    "PALETTE",
    "bar_chart",
    "confusion_matrix",
    "curves",
    "draw_blocks",
    "draw_network",
    "evidence_figure",
    "heatmap",
    "histograms",
    "image_grid",
    "network_diagram",
    "save_animation",
    "save_figure",
    "scatter",
    "show_image",
    "subplots",
    "surface",
]
