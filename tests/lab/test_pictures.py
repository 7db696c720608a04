"""The rooms' pictures: there, small, harmless on any page, and what docs/pictures.py draws today."""

import importlib.util
import re
import xml.etree.ElementTree as ET
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from parnassus.report.ink import PALETTE

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "src" / "parnassus" / "lab" / "pictures"
HOUSE = (
    "layers losses autodiff optim expressivity probability information latent convolution vision audio recurrent text "
    "music attention adversarial transport flows diffusion kernels transfer shapley reinforcement games"
)
SUBJECTS = HOUSE.split()
COLOURS = {"none", "var(--ink)", "var(--faint)", *PALETTE[:6]}
TAGS = {"svg", "g", "path", "circle", "rect"}
ATTRIBUTES = {
    *("viewBox", "fill", "stroke-linecap", "stroke-linejoin", "style"),
    *("d", "cx", "cy", "r", "x", "y", "width", "height", "rx"),
}
PROPERTIES = {"fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray"}

subjects = pytest.mark.parametrize("subject", SUBJECTS)


@cache
def program() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "docs" / "pictures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def drawn() -> dict[str, str]:
    pictures: dict[str, str] = program().pictures()
    return pictures


def elements(subject: str) -> list[ET.Element]:
    return list(ET.fromstring((FOLDER / f"{subject}.svg").read_text(encoding="utf-8")).iter())


def styles(element: ET.Element) -> dict[str, str]:
    declarations = filter(None, element.get("style", "").split(";"))
    return {name: value for name, _, value in (declaration.partition(":") for declaration in declarations)}


def test_every_subject_has_a_picture_and_nothing_else_has() -> None:
    assert sorted(path.name for path in FOLDER.glob("*.svg")) == sorted(f"{subject}.svg" for subject in SUBJECTS)
    assert list(drawn()) == SUBJECTS


@subjects
def test_the_program_draws_the_committed_file_byte_for_byte(subject: str) -> None:
    assert drawn()[subject].encode() == (FOLDER / f"{subject}.svg").read_bytes()


@subjects
def test_it_is_a_small_svg_that_takes_its_size_from_the_page(subject: str) -> None:
    root = elements(subject)[0]
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.get("viewBox") == "0 0 160 100"
    assert root.get("width") is None
    assert root.get("height") is None
    assert (FOLDER / f"{subject}.svg").stat().st_size < 6_000


@subjects
def test_it_holds_only_shapes_and_plain_attributes(subject: str) -> None:
    """No script, link, id, event or style sheet can pass: what is not on the list is not allowed."""
    for element in elements(subject):
        assert element.tag.removeprefix("{http://www.w3.org/2000/svg}") in TAGS
        assert set(element.attrib) <= ATTRIBUTES
        assert set(styles(element)) <= PROPERTIES
        assert not (element.text or "").strip()
    source = (FOLDER / f"{subject}.svg").read_text(encoding="utf-8")
    assert not re.search(r"<script|href|\son\w+=|<style|<!|<\?|url\(|\bid=", source)


@subjects
def test_it_uses_the_house_colours_and_strokes(subject: str) -> None:
    used = set()
    for element in elements(subject):
        style = styles(element)
        assert element.get("fill", "none") == "none"
        used |= {style[name] for name in ("fill", "stroke") if name in style}
        assert 1 <= float(style.get("stroke-width", 1)) <= 2
    assert used <= COLOURS
    assert 2 <= len(used & set(PALETTE)) <= 3


@subjects
def test_every_number_is_drawn_on_the_canvas(subject: str) -> None:
    """Finite, and inside 160 × 100: absolute points of paths, centres with their radius, corners of boxes."""
    for element in elements(subject):
        numbers = {name: float(value) for name, value in element.attrib.items() if name in {"cx", "cy", "r", "x", "y"}}
        if "r" in numbers:
            assert numbers["r"] <= numbers["cx"] <= 160 - numbers["r"]
            assert numbers["r"] <= numbers["cy"] <= 100 - numbers["r"]
        elif "x" in numbers:
            assert 0 <= numbers["x"] <= 160 - float(element.attrib["width"])
            assert 0 <= numbers["y"] <= 100 - float(element.attrib["height"])
        for piece in re.findall(r"M([-\d. ]+)", element.get("d", "")):
            points = [float(value) for value in piece.split()]
            assert all(0 <= x <= 160 for x in points[::2])
            assert all(0 <= y <= 100 for y in points[1::2])


def test_the_matching_is_optimal_for_any_two_pairs() -> None:
    """No exchange of two partners shortens the picture of transport, read back from its lines and dots."""
    lines = next(element.attrib["d"] for element in elements("transport") if element.get("d"))
    ends = [[float(value) for value in piece.split()] for piece in lines.split("M")[1:]]
    dots = [complex(float(e.attrib["cx"]), float(e.attrib["cy"])) for e in elements("transport") if e.get("r") == "3.2"]

    def nearest(x: float, y: float) -> complex:
        return min(dots, key=lambda dot: abs(dot - complex(x, y)))

    pairs = [(nearest(x, y), nearest(u, v)) for x, y, u, v in ends]
    assert len({dot for pair in pairs for dot in pair}) == 16
    for a, b in pairs:
        for c, d in pairs:
            assert abs(a - b) + abs(c - d) <= abs(a - d) + abs(c - b) + 0.2


def test_the_waterfall_is_efficient() -> None:
    """The shares add up to what the whole team is worth: the bars end at v(N) − v(∅)."""
    bars = [element for element in elements("shapley") if element.get("rx")]
    signed = [float(bar.attrib["width"]) * (1 if bar.attrib["style"] == "fill:#0072b2" else -1) for bar in bars]
    worth = 4.0 - 2.0 + 2.0 + 1.5 - 1.0 - 1.0 + 1.0 + 1.5 - 0.6
    first, last = signed[0], sum(signed)
    assert last / first == pytest.approx(worth / (4.0 - 0.5 - 0.3), abs=0.01)
