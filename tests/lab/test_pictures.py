"""The images of the subjects are small SVGs without active content, and equal those that docs/pictures.py draws."""

import importlib.util
import re
import xml.etree.ElementTree as ET
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from parnassus.report.style import PALETTE

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "parnassus"
SUBJECTS = sorted(path.parent.name for path in PACKAGE.glob("*/room.toml"))
COLOURS = {"none", "var(--ink)", "var(--faint)", *PALETTE[:6]}
TAGS = {"svg", "g", "path", "circle", "rect"}
ATTRIBUTES = {
    *("viewBox", "fill", "stroke-linecap", "stroke-linejoin", "style"),
    *("d", "cx", "cy", "r", "x", "y", "width", "height", "rx"),
}
PROPERTIES = {"fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray"}


@cache
def program() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "docs" / "pictures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def drawn_images() -> dict[str, str]:
    pictures: dict[str, str] = program().pictures()
    return pictures


def elements(subject: str) -> list[ET.Element]:
    return list(ET.fromstring((PACKAGE / subject / "room.svg").read_text(encoding="utf-8")).iter())


def styles(element: ET.Element) -> dict[str, str]:
    declarations = filter(None, element.get("style", "").split(";"))
    return {name: value for name, _, value in (declaration.partition(":") for declaration in declarations)}


def test_exactly_the_subjects_have_images() -> None:
    assert sorted(path.parent.name for path in PACKAGE.glob("*/room.svg")) == SUBJECTS
    assert sorted(drawn_images()) == SUBJECTS


def test_committed_images_are_reproducible() -> None:
    changed = [name for name in SUBJECTS if drawn_images()[name].encode() != (PACKAGE / name / "room.svg").read_bytes()]
    assert changed == []


def test_images_are_small_svgs_without_fixed_size() -> None:
    for subject in SUBJECTS:
        root = elements(subject)[0]
        assert root.tag == "{http://www.w3.org/2000/svg}svg", subject
        assert root.get("viewBox") == "0 0 160 100", subject
        assert root.get("width") is None, subject
        assert root.get("height") is None, subject
        assert (PACKAGE / subject / "room.svg").stat().st_size < 6_000, subject


def test_images_contain_only_shapes_and_plain_attributes() -> None:
    """Scripts, links, ids, events and style sheets are not allowed."""
    for subject in SUBJECTS:
        for element in elements(subject):
            assert element.tag.removeprefix("{http://www.w3.org/2000/svg}") in TAGS, subject
            assert set(element.attrib) <= ATTRIBUTES, subject
            assert set(styles(element)) <= PROPERTIES, subject
            assert not (element.text or "").strip(), subject
        source = (PACKAGE / subject / "room.svg").read_text(encoding="utf-8")
        assert not re.search(r"<script|href|\son\w+=|<style|<!|<\?|url\(|\bid=", source), subject


def test_images_use_the_colours_and_line_widths_of_the_style() -> None:
    for subject in SUBJECTS:
        used = set()
        for element in elements(subject):
            style = styles(element)
            assert element.get("fill", "none") == "none", subject
            used |= {style[name] for name in ("fill", "stroke") if name in style}
            assert 1 <= float(style.get("stroke-width", 1)) <= 2, subject
        assert used <= COLOURS, subject
        assert 2 <= len(used & set(PALETTE)) <= 3, subject


def test_coordinates_are_inside_the_canvas() -> None:
    """Inside 160 × 100: absolute points of paths, centres with their radius, corners of rectangles."""
    assert [subject for subject in SUBJECTS if not all(map(is_inside, elements(subject)))] == []


def is_inside(element: ET.Element) -> bool:
    numbers = {name: float(value) for name, value in element.attrib.items() if name in {"cx", "cy", "r", "x", "y"}}
    margins = {"cx": numbers.get("r", 0.0), "cy": numbers.get("r", 0.0)}
    corners = [(numbers[name], margins[name], size) for name, size in (("cx", 160), ("cy", 100)) if "r" in numbers]
    is_within = all(margin <= centre <= size - margin for centre, margin, size in corners)
    if "x" in numbers and "r" not in numbers:
        is_within &= 0 <= numbers["x"] <= 160 - float(element.attrib["width"])
        is_within &= 0 <= numbers["y"] <= 100 - float(element.attrib["height"])
    for subpath in re.findall(r"M([-\d. ]+)", element.get("d", "")):
        points = [float(value) for value in subpath.split()]
        is_within &= all(0 <= x <= 160 for x in points[::2]) and all(0 <= y <= 100 for y in points[1::2])
    return is_within


def test_transport_matching_is_optimal_for_any_two_pairs() -> None:
    """No exchange of two partners shortens the matching in the image of transport, read from its lines and dots."""
    lines = next(element.attrib["d"] for element in elements("transport") if element.get("d"))
    ends = [[float(value) for value in subpath.split()] for subpath in lines.split("M")[1:]]
    dots = [complex(float(e.attrib["cx"]), float(e.attrib["cy"])) for e in elements("transport") if e.get("r") == "3.2"]

    def nearest(x: float, y: float) -> complex:
        return min(dots, key=lambda dot: abs(dot - complex(x, y)))

    pairs = [(nearest(x, y), nearest(u, v)) for x, y, u, v in ends]
    assert len({dot for pair in pairs for dot in pair}) == 16
    for a, b in pairs:
        for c, d in pairs:
            assert abs(a - b) + abs(c - d) <= abs(a - d) + abs(c - b) + 0.2


def test_shapley_waterfall_is_efficient() -> None:
    """The Shapley values sum to v(N) − v(∅)."""
    bars = [element for element in elements("shapley") if element.get("rx")]
    signed = [float(bar.attrib["width"]) * (1 if bar.attrib["style"] == "fill:#0072b2" else -1) for bar in bars]
    total = 4.0 - 2.0 + 2.0 + 1.5 - 1.0 - 1.0 + 1.0 + 1.5 - 0.6
    first, last = signed[0], sum(signed)
    assert last / first == pytest.approx(total / (4.0 - 0.5 - 0.3), abs=0.01)
