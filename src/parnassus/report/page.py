"""The report of a run: one self-contained HTML file with a light and a dark colour scheme."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from parnassus.atlas.bands import MeasuredValue
from parnassus.report.formatting import column_names, display_name, format_number
from parnassus.report.formulas import Formula, formula_html
from parnassus.report.plots import curves
from parnassus.report.style import save_figure


@dataclass(frozen=True)
class Page:
    """The content of a report."""

    title: str
    name: str
    formulas: Sequence[Formula] = ()
    values: Sequence[MeasuredValue] = ()
    remark: str = ""  # on the expected ranges
    content: Sequence[Mapping[str, object]] = ()  # figures, notes and tables in the order in which they were added
    metrics: Mapping[str, tuple[Sequence[int], Sequence[float]]] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    facts: Mapping[str, object] = field(default_factory=dict)
    commands: Mapping[str, str] = field(default_factory=dict)


def render(page: Page, figures: Path) -> str:
    """The report as HTML; `figures` is the folder of the SVG files of the content."""
    from jinja2 import Environment, PackageLoader, select_autoescape

    environment = Environment(
        loader=PackageLoader("parnassus.report", "templates"),
        autoescape=select_autoescape(["html"]),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = format_number
    environment.filters["display_name"] = display_name
    environment.filters["columns"] = column_names
    environment.filters["formula"] = formula_html
    environment.filters["heading"] = split_title
    items = [
        {**item, "svg": inline_svg((figures / f"{item['name']}.svg").read_text(encoding="utf-8"), f"f{index}")}
        if item["kind"] == "figure"
        else item
        for index, item in enumerate(page.content)
    ]
    figure_names = [str(item["name"]) for item in page.content if item["kind"] == "figure"]
    charts = render_metric_charts(page.metrics, figures, figure_names)
    charts = [inline_svg(svg, f"m{index}") for index, svg in enumerate(charts)]
    return environment.get_template("run.html").render(page=page, content=items, charts=charts)


def group_metrics(
    metrics: Mapping[str, tuple[Sequence[int], Sequence[float]]],
) -> dict[str, dict[str, tuple[Sequence[int], Sequence[float]]]]:
    """Metrics grouped by chart: `train_loss` with `test_loss`, `accuracy/relu` with `accuracy/tanh`."""
    groups: dict[str, dict[str, tuple[Sequence[int], Sequence[float]]]] = {}
    for name, series in metrics.items():
        group, _, line = name.rpartition("/")
        groups.setdefault(group or name.rsplit("_", 1)[-1], {})[display_name(line)] = series
    return groups


def are_positive(lines: Mapping[str, tuple[Sequence[int], Sequence[float]]]) -> bool:
    """Whether all values are positive, so that a logarithmic axis can show them."""
    return all(value > 0 for _, values in lines.values() for value in values)


def render_metric_charts(
    metrics: Mapping[str, tuple[Sequence[int], Sequence[float]]], folder: Path, figure_names: Collection[str] = ()
) -> list[str]:
    """One chart per group of metrics as an SVG, saved in `folder`; groups with a figure of that name are skipped."""
    charts = []
    for group, lines in group_metrics(metrics).items():
        if group in figure_names:
            continue
        log_y = group.endswith("loss") and are_positive(lines)
        figure = curves(lines, x_label="step", y_label=display_name(group), log_y=log_y, smooth=True)
        path = folder / f"metric-{group.replace('/', '-')}"
        save_figure(figure, path)
        charts.append(path.with_name(f"{path.name}.svg").read_text(encoding="utf-8"))
    return charts


def inline_svg(svg: str, prefix: str) -> str:
    """An SVG with a prefix for its ids, which must be unique on a page, and a width that fits its column."""
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r"url\(#", f"url(#{prefix}-", svg)
    svg = re.sub(r'href="#', f'href="#{prefix}-', svg)
    svg = re.sub(r"<style>svg\{.*?</style>", "", svg, count=1, flags=re.DOTALL)  # the page defines these colours
    return re.sub(r'<svg ([^>]*?)width="([\d.]+)pt" height="[\d.]+pt"', r'<svg \1style="width:\2pt"', svg, count=1)


def split_title(title: str) -> tuple[str, str]:
    """The first line of a docstring as a title and a reference: `A title (book sec. 1.4).`"""
    match = re.fullmatch(r"(.*?) \(([^()]*)\)\.?", title)
    return (match[1], match[2]) if match else (title.rstrip("."), "")
