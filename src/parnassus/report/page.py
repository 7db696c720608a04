"""The run's page: one HTML file that needs nothing else, light or dark as the reader's screen is."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from parnassus.report.formulas import Formula, formula_html
from parnassus.report.ink import save_figure
from parnassus.report.numbers import number
from parnassus.report.plots import curves


@dataclass(frozen=True)
class Figure:
    """A number the run returned, beside what was expected of it."""

    name: str
    value: float
    band: str = ""
    holds: bool | None = None  # None: nothing was expected
    about: str = ""  # what it is


@dataclass(frozen=True)
class Page:
    """Everything a report shows, ready to be laid out."""

    title: str
    name: str
    formulas: Sequence[Formula] = ()
    figures: Sequence[Figure] = ()
    remark: str = ""  # how to read the bands
    story: Sequence[Mapping[str, object]] = ()  # figures, notes and tables in the order they were made
    metrics: Mapping[str, tuple[Sequence[int], Sequence[float]]] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    facts: Mapping[str, object] = field(default_factory=dict)
    commands: Mapping[str, str] = field(default_factory=dict)


def render(page: Page, figures: Path) -> str:
    """The page as HTML; `figures` is the folder with the SVG files that the story names."""
    from jinja2 import Environment, PackageLoader, select_autoescape

    environment = Environment(
        loader=PackageLoader("parnassus.report", "templates"),
        autoescape=select_autoescape(["html"]),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = number
    environment.filters["words"] = words
    environment.filters["columns"] = columns
    environment.filters["formula"] = formula_html
    environment.filters["heading"] = heading
    drawn = [
        {**item, "svg": inline_svg((figures / f"{item['name']}.svg").read_text(encoding="utf-8"), f"f{index}")}
        if item["kind"] == "figure"
        else item
        for index, item in enumerate(page.story)
    ]
    told = [str(item["name"]) for item in page.story if item["kind"] == "figure"]
    charts = metric_charts(page.metrics, figures, told)
    charts = [inline_svg(svg, f"m{index}") for index, svg in enumerate(charts)]
    return environment.get_template("run.html").render(page=page, story=drawn, charts=charts)


def families(
    metrics: Mapping[str, tuple[Sequence[int], Sequence[float]]],
) -> dict[str, dict[str, tuple[Sequence[int], Sequence[float]]]]:
    """Metrics that share a chart: `train_loss` with `test_loss`, `accuracy/relu` with `accuracy/tanh`."""
    found: dict[str, dict[str, tuple[Sequence[int], Sequence[float]]]] = {}
    for name, series in metrics.items():
        family, _, line = name.rpartition("/")
        found.setdefault(family or name.rsplit("_", 1)[-1], {})[words(line)] = series
    return found


def metric_charts(
    metrics: Mapping[str, tuple[Sequence[int], Sequence[float]]], folder: Path, told: Collection[str] = ()
) -> list[str]:
    """One chart for each family of metrics, drawn into `folder`; none for those that a figure has `told` of."""
    charts = []
    for family, lines in families(metrics).items():
        if family in told:
            continue
        positive = all(value > 0 for _, values in lines.values() for value in values)
        log_y = family.endswith("loss") and positive
        figure = curves(lines, x_label="step", y_label=words(family), log_y=log_y, smooth=True)
        path = folder / f"metric-{family.replace('/', '-')}"
        save_figure(figure, path)
        charts.append(path.with_name(f"{path.name}.svg").read_text(encoding="utf-8"))
    return charts


def inline_svg(svg: str, prefix: str) -> str:
    """An SVG whose ids cannot meet those of another on the same page, at the width of its column."""
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r"url\(#", f"url(#{prefix}-", svg)
    svg = re.sub(r'href="#', f'href="#{prefix}-', svg)
    svg = re.sub(r"<style>svg\{.*?</style>", "", svg, count=1, flags=re.DOTALL)  # the page sets the ink
    return re.sub(r'<svg ([^>]*?)width="([\d.]+)pt" height="[\d.]+pt"', r'<svg \1style="width:\2pt"', svg, count=1)


def heading(title: str) -> tuple[str, str]:
    """A docstring's first line as a headline and where it stands: `It learns (book sec. 1.4).`"""
    found = re.fullmatch(r"(.*?) \(([^()]*)\)\.?", title)
    return (found[1], found[2]) if found else (title.rstrip("."), "")


def columns(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Every key of any row, in the order of their first appearance."""
    return list(dict.fromkeys(key for row in rows for key in row))


def words(name: str) -> str:
    return name.replace("_", " ")
