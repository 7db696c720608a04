"""Formulas are typeset with indices and escaped."""

import pytest

from parnassus.atlas.index import Atlas
from parnassus.report.formulas import formula_html, to_mathtext


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("x_t", "x<sub>t</sub>"),
        ("√ᾱ_{t−1} x̂_0", "√ᾱ<sub>t−1</sub> x̂<sub>0</sub>"),
        ("∏_{i=1}^{n²} p", "∏<sub>i=1</sub><sup>n²</sup> p"),
        ("∇ log p_{σ_t}(x_t)", "∇ log p<sub>σ<sub>t</sub></sub>(x<sub>t</sub>)"),
        ("F_i^c", "F<sub>i</sub><sup>c</sup>"),
        ("a < b & c", "a &lt; b &amp; c"),
        ("<script>x_t</script>", "&lt;script&gt;x<sub>t</sub>&lt;/script&gt;"),
        ("σ_t² Σ_yx", "σ<sub>t</sub>² Σ<sub>yx</sub>"),
        ("softmax_i(z)", "softmax<sub>i</sub>(z)"),
        ("test_loss of ddim_50, mnist_mini", "test_loss of ddim_50, mnist_mini"),
    ],
)
def test_indices_are_subscripts_and_powers_superscripts(text: str, html: str) -> None:
    assert formula_html(text) == html


def test_mathtext_has_the_same_indices() -> None:
    assert to_mathtext("x_T, α_{t−1}, test_loss") == "x$_{T}$, α$_{t−1}$, test_loss"
    assert to_mathtext("$x_t$ and y_t") == "$x_t$ and y_t"


def test_every_index_in_the_formulas_of_the_atlas_is_typeset() -> None:
    unconverted = {
        row.id: row.formula
        for row in Atlas().rows.values()
        if "_{" in formula_html(row.formula) or "^{" in formula_html(row.formula)
    }
    assert unconverted == {}
