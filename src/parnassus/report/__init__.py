"""Figures in one style, and the page that shows a run."""

from parnassus.report.blocks import draw_blocks
from parnassus.report.diagrams import draw_network, network_diagram
from parnassus.report.evidence import evidence_figure
from parnassus.report.films import save_film
from parnassus.report.ink import FAINT, INK, PALETTE, save_figure, subplots
from parnassus.report.plots import (
    arrows,
    bars,
    confusion,
    curves,
    heatmap,
    histograms,
    image_grid,
    scatter,
    show_image,
    surface,
)

__all__ = [
    "FAINT",
    "INK",
    "PALETTE",
    "arrows",
    "bars",
    "confusion",
    "curves",
    "draw_blocks",
    "draw_network",
    "evidence_figure",
    "heatmap",
    "histograms",
    "image_grid",
    "network_diagram",
    "save_figure",
    "save_film",
    "scatter",
    "show_image",
    "subplots",
    "surface",
]
