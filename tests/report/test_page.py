"""The report is self-contained, keeps the order of items, and escapes text."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from matplotlib.figure import Figure as MplFigure

from parnassus.atlas.bands import MeasuredValue
from parnassus.report import curves, save_figure
from parnassus.report.formatting import column_names, display_name
from parnassus.report.formulas import Formula
from parnassus.report.page import Page, inline_svg, render, render_metric_charts

HTML_TEXT = "<script>alert('x')</script> & <b>bold</b>"


@pytest.fixture
def page(tmp_path: Path) -> str:
    save_figure(curves({"a": ([1, 2], [2, 1])}, x_label="x", y_label="y"), tmp_path / "first 0.5")
    save_figure(curves({"a": ([1, 2], [1, 2])}, x_label="x", y_label="y"), tmp_path / "second")
    content: list[dict[str, object]] = [
        {"kind": "figure", "name": "first 0.5", "caption": "A caption with x < y."},
        {"kind": "note", "name": "a_remark", "text": f"One paragraph.\n\n{HTML_TEXT}"},
        {
            "kind": "table",
            "name": "sizes",
            "rows": [{"a": 1, "b": 0.123456}, {"a": 2_000, "c": HTML_TEXT}],
            "caption": HTML_TEXT,
        },
        {"kind": "figure", "name": "second", "caption": ""},
    ]
    report_page = Page(
        title=f"A title {HTML_TEXT}",
        name="run-1",
        formulas=[Formula("A formula", "book eq. 1.1", "x_t < y & z")],
        values=[
            MeasuredValue("inside_the_band", 1.5, "≤ 2", True),
            MeasuredValue("outside", 2.5, "≤ 2", False),
            MeasuredValue("free", 12_345.0),
            MeasuredValue("unjudged", 0.25, "≤ 1"),
        ],
        content=content,
        metrics={"train_loss": ([0, 1], [2.0, 1.0]), "test_loss": ([1], [1.5]), "accuracy": ([0, 1], [0.1, 0.9])},
        settings={"steps": 4_000, "data": HTML_TEXT},
        facts={"seconds": 1.5},
        commands={"The same run": "parnassus run <x>"},
    )
    return render(report_page, tmp_path)


class TagCollector(HTMLParser):
    """Collects tags and attributes, and checks that tags are closed in order."""

    EMPTY = frozenset({"meta", "link", "img", "br", "hr", "input"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.collected: list[tuple[str, str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.collected += [(tag, name, value or "") for name, value in attrs] or [(tag, "", "")]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.collected += [(tag, name, value or "") for name, value in attrs]


def parse(html: str) -> TagCollector:
    tags = TagCollector()
    tags.feed(html)
    tags.close()
    assert tags.open == []
    return tags


def test_page_is_self_contained(page: str) -> None:
    tags = parse(page)
    assert not {"script", "link", "iframe", "img", "b"} & {tag for tag, _, _ in tags.collected}
    resources = [value for _, name, value in tags.collected if name.split(":")[-1] in ("src", "href", "data", "srcset")]
    assert all(value.startswith(("#", "data:")) for value in resources)
    assert all(link.startswith(("#", "data:")) for link in re.findall(r"url\(([^)]*)\)", page))
    assert "@import" not in page
    assert re.findall(r"https?://", re.sub(r'xmlns(:\w+)?="[^"]*"', "", page)) == []


def test_text_is_escaped(page: str) -> None:
    assert "<script>" not in page
    assert page.count("&lt;script&gt;") == 5  # title, note, table's cell and caption, setting
    assert "x<sub>t</sub> &lt; y &amp; z" in page
    assert "parnassus run &lt;x&gt;" in page


def test_ids_are_unique_and_references_resolve(page: str) -> None:
    tags = parse(page)
    ids = [value for _, name, value in tags.collected if name == "id"]
    assert len(ids) == len(set(ids))
    references = re.findall(r"url\(#([^)]*)\)", page)
    references += [value[1:] for _, name, value in tags.collected if name.endswith("href") and value.startswith("#")]
    assert references
    assert set(references) <= set(ids)


def test_items_are_in_order(page: str) -> None:
    positions = [
        page.index(text) for text in ("A caption with", "<h2>a remark</h2>", "One paragraph.", "<h2>sizes</h2>")
    ]
    positions += [page.index('<figure id="second">'), page.index("<h2>Curves</h2>"), page.index("<h2>Settings</h2>")]
    assert positions == sorted(positions)


def test_table_columns_are_all_keys(page: str) -> None:
    table = page[page.index("<th>a</th>") : page.index("</table>")]
    assert re.findall(r"<th>(.*?)</th>", table) == ["a", "b", "c"]
    rows = [re.findall(r"<td>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", table)]
    assert rows[0] == ["1", "0.1235", ""]
    assert rows[1][:2] == ["2,000", ""]


def test_results_have_their_expected_ranges(page: str) -> None:
    cards = re.findall(
        r'<div class="card (\w*)">\s*<div class="name">(.*?)</div>\s*<div class="value">(.*?)</div>', page
    )
    assert cards == [
        ("good", "inside the band", "1.5"),
        ("bad", "outside", "2.5"),
        ("", "free", "12,345"),
        ("", "unjudged", "0.25"),
    ]
    assert page.count("expected ≤ 2") == 2
    assert "✗ outside" in page


def test_svg_text_colours_are_set_by_the_page(page: str) -> None:
    assert page.count("<svg") == 4
    assert "<style>svg{" not in page
    for name in ("--ink", "--faint"):
        assert page.count(f"{name}:") == 2  # light and dark
    assert "prefers-color-scheme: dark" in page


def test_empty_run_has_a_page(tmp_path: Path) -> None:
    html = render(Page(title="Nothing yet", name="run"), tmp_path)
    parse(html)
    assert "Nothing yet" in html
    assert "Curves" not in html


def test_inlined_svgs_have_unique_ids() -> None:
    svg = (
        '<svg width="10pt" height="5pt" viewBox="0 0 10 5"><style>svg{--ink:#000}</style>'
        '<g id="a"/><g clip-path="url(#a)"/><use xlink:href="#a"/><rect width="3" height="4"/></svg>'
    )
    inlined = inline_svg(svg, "f1")
    assert 'id="f1-a"' in inlined
    assert "url(#f1-a)" in inlined
    assert 'xlink:href="#f1-a"' in inlined
    assert "--ink" not in inlined
    assert inlined.startswith('<svg style="width:10pt" viewBox="0 0 10 5">')
    assert '<rect width="3" height="4"/>' in inlined


def test_metrics_of_a_group_share_a_chart(tmp_path: Path) -> None:
    metrics = {
        "loss": ([0, 1], [2.0, 1.0]),
        "test_loss": ([1], [1.5]),
        "train_accuracy": ([0, 1], [0.1, 0.9]),
        "elbo": ([0, 1], [-5.0, -1.0]),
    }
    charts = render_metric_charts(metrics, tmp_path)
    assert len(charts) == 3
    assert ">test loss<" in charts[0]
    assert sorted(path.stem for path in tmp_path.glob("*.svg")) == ["metric-accuracy", "metric-elbo", "metric-loss"]
    assert render_metric_charts(metrics, tmp_path, figure_names=["loss", "samples"]) == charts[1:]


@pytest.mark.parametrize(("low", "scale"), [(0.001, "log"), (0.0, "linear"), (-1.0, "linear")])
def test_positive_losses_have_a_logarithmic_scale(
    low: float, scale: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scales = {}

    def save(figure: MplFigure, path: Path) -> None:
        scales[path.name] = figure.axes[0].get_yscale()
        save_figure(figure, path)

    monkeypatch.setattr("parnassus.report.page.save_figure", save)
    render_metric_charts({"test_loss": ([0, 1], [100.0, low]), "score": ([0], [-1.0])}, tmp_path)
    assert scales == {"metric-loss": scale, "metric-score": "linear"}


def test_names_are_displayed_with_spaces() -> None:
    assert display_name("test_nll_in_bits") == "test nll in bits"


def test_columns_are_all_keys_in_order() -> None:
    assert column_names([{"a": 1, "b": 2}, {"c": 3, "a": 4}]) == ["a", "b", "c"]
    assert column_names([]) == []
