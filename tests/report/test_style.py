"""Style of figures: theme colours, reproducible files, no global settings."""

import re
import xml.etree.ElementTree as ET
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb

from parnassus.report import FAINT, INK, PALETTE, curves, save_figure, subplots
from parnassus.report.style import as_array, colours, render_svg, rgb, use_theme_colours


def test_components_of_colours_agree_with_matplotlib() -> None:
    for colour in PALETTE:
        assert rgb(colour) == tuple(round(255 * part) for part in to_rgb(colour))


def draw_svg(tmp_path: Path) -> str:
    figure = curves({"a": ([1, 2, 3], [3, 1, 2]), "b < c": ([1, 2, 3], [1, 2, 4])}, x_label="x & y", y_label="z")
    save_figure(figure, tmp_path / "figure")
    return (tmp_path / "figure.svg").read_text(encoding="utf-8")


def test_svg_text_colour_is_a_css_variable(tmp_path: Path) -> None:
    svg = draw_svg(tmp_path)
    body = re.sub(r"<style>svg\{.*?</style>", "", svg, count=1)  # the definition of the variables
    assert body != svg
    assert "var(--ink)" in body
    assert "var(--faint)" in body
    for literal in (INK, FAINT, "#000000", "#ffffff"):
        assert literal not in body.lower()


def test_svg_is_self_contained(tmp_path: Path) -> None:
    svg = draw_svg(tmp_path)
    assert svg.startswith("<svg")
    assert ET.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"
    assert "metadata" not in svg
    assert re.findall(r"https?://[^\"]*", re.sub(r'xmlns(:\w+)?="[^"]*"', "", svg)) == []
    assert ">x &amp; y<" in svg  # text is not converted to paths


def test_saved_figures_are_reproducible(tmp_path: Path) -> None:
    first = draw_svg(tmp_path)
    assert draw_svg(tmp_path) == first


def test_saving_keeps_the_layout_engine(tmp_path: Path) -> None:
    """A figure that is changed after saving is laid out again."""
    figure, _ = subplots()
    layout = figure.get_layout_engine()
    save_figure(figure, tmp_path / "figure")
    assert layout is not None
    assert figure.get_layout_engine() is layout


def test_explicit_black_text_gets_the_theme_colour(tmp_path: Path) -> None:
    figure, axes = subplots()
    axes[0, 0].plot([1, 2], label="line")
    axes[0, 0].text(0.5, 1.5, "black before", color="black")
    axes[0, 0].legend()
    save_figure(figure, tmp_path / "figure")
    written = (tmp_path / "figure.svg").read_text()
    assert re.search(r'<text style="[^"]*fill: var\(--ink\)[^"]*"[^>]*>black before<', written)
    assert axes[0, 0].get_legend().get_frame_on() is False


def test_dots_in_names_are_kept(tmp_path: Path) -> None:
    figure, _ = subplots()
    save_figure(figure, tmp_path / "noise 0.5")
    save_figure(figure, tmp_path / "noise 0.7")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"noise 0.{tenth}.{kind}" for tenth in (5, 7) for kind in ("png", "svg")
    ]


def test_png_has_a_white_background(tmp_path: Path) -> None:
    figure, _ = subplots(size=(2.0, 1.0))
    save_figure(figure, tmp_path / "figure")
    image = mpl.image.imread(tmp_path / "figure.png")
    assert image.shape[:2] == (160, 320)
    assert image[0, 0, :3] == pytest.approx([1.0, 1.0, 1.0])


def test_rc_params_are_unchanged(tmp_path: Path) -> None:
    before = dict(mpl.rcParams)
    draw_svg(tmp_path)
    assert dict(mpl.rcParams) == before


def test_subplots_returns_a_two_dimensional_array() -> None:
    assert subplots()[1].shape == (1, 1)
    assert subplots(2, 3)[1].shape == (2, 3)
    assert subplots(three_d=True)[1][0, 0].name == "3d"


def luminance(colour: str) -> float:
    """Relative luminance after WCAG 2.1."""
    linear = [
        channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4 for channel in to_rgb(colour)
    ]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


@pytest.mark.parametrize("colour", PALETTE)
def test_palette_has_contrast_on_white_and_black(colour: str) -> None:
    white, black = 1.05 / (luminance(colour) + 0.05), (luminance(colour) + 0.05) / 0.05
    assert min(white, black) > 2.2


def test_palette_repeats_after_ten_colours() -> None:
    assert list(colours(12)) == [*PALETTE, *PALETTE[:2]]
    assert len(set(PALETTE)) == 10


def test_as_array_converts_tensors_and_lists() -> None:
    assert as_array(torch.ones(2, requires_grad=True)).dtype == np.float64
    assert as_array([1, 2]).tolist() == [1.0, 2.0]
    assert as_array(torch.ones(2, dtype=torch.bfloat16).float()).tolist() == [1.0, 1.0]


def test_theme_colours_are_inserted_into_the_svg() -> None:
    svg = use_theme_colours(f'<?xml version="1.0"?><!DOCTYPE svg><svg width="1"><path stroke="{INK}"/></svg>')
    assert svg.startswith('<svg width="1"><style>svg{--ink:')
    assert svg.endswith('<path stroke="var(--ink)"/></svg>')


def test_slow_drawing_of_a_legend_gives_no_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matplotlib warns if the search for the best position of a legend takes more than a second."""
    import matplotlib.legend

    ticks = count(step=2)
    monkeypatch.setattr(matplotlib.legend, "time", SimpleNamespace(perf_counter=lambda: next(ticks)))
    figure, axes = subplots()
    axes[0, 0].plot([0, 1], [0, 1], label="line")
    axes[0, 0].legend()
    assert "line" in render_svg(figure)
