"""The output of `parnassus explain`: a table with bars and a figure, or JSON."""

from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from parnassus.report.formatting import format_json, format_number
from parnassus.report.style import save_figure
from parnassus.shapley.commands.explanation import Explanation, format_count
from parnassus.shapley.estimators.stopping import max_standard_error
from parnassus.shapley.figures.beeswarm import plot_beeswarm
from parnassus.shapley.figures.waterfall import format_signed, plot_waterfall

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BAR_LENGTH = 16
"""Length of the longest bar in characters."""


def print_explanation(explanation: Explanation, *, max_display: int, out: Path | None, as_json: bool) -> None:
    """Write the figure, then print the table or JSON."""
    rows = explanation.rows
    path = out or Path(f"explanation-{rows[0]}" if len(rows) == 1 else "explanation")
    path = path.with_suffix("") if path.suffix in (".png", ".svg") else path
    path.parent.mkdir(parents=True, exist_ok=True)
    save_figure(plot_explanation(explanation, max_display), path)
    console = Console(highlight=False)
    if as_json:
        data = {**explanation.to_dict(), "figure": f"{path}.png"}
        console.out(format_json(data))
        return
    print_header(explanation, console)
    console.print(
        one_row_table(explanation, max_display) if len(rows) == 1 else summary_table(explanation, max_display)
    )
    print_accuracy(explanation, console)
    console.print(f"figure: {path}.png", soft_wrap=True, markup=False)


def plot_explanation(explanation: Explanation, max_display: int) -> "Figure":
    """One row as a waterfall plot, several as a beeswarm plot."""
    attribution, x, columns = explanation.attribution, explanation.x, explanation.features.columns
    target = explanation.output or "prediction"
    if len(x) > 1:
        return plot_beeswarm(
            attribution.values[:, 0], x, columns, max_display=max_display, x_label=f"SHAP value ({target})"
        )
    names = [f"{name} = {_feature(value)}" for name, value in zip(columns, x[0].tolist(), strict=True)]
    return plot_waterfall(
        float(attribution.base_values[0, 0]),
        attribution.values[0, 0],
        names,
        errors=None if explanation.is_exact else attribution.errors[0, 0],
        max_display=max_display,
        x_label=target,
    )


def print_header(explanation: Explanation, console: Console) -> None:
    features, rows = explanation.features, explanation.rows
    output = f" for {explanation.output}" if explanation.output else ""
    if len(rows) > 1:
        console.print(
            f"{features.source}, {len(rows)} rows: predictions of {explanation.predictor}{output}", markup=False
        )
        return
    index = rows[0] - 1
    line = f" (line {features.lines[index]})" if features.lines else ""
    target = f"; true value {features.targets[index]}" if features.targets and features.targets[index] else ""
    base_value = float(explanation.attribution.base_values[0, 0])
    prediction = float(explanation.prediction[0])
    console.print(
        f"{features.source}, row {rows[0]}{line}: "
        f"{explanation.predictor} predicts {format_number(prediction)}{output}{target}\n"
        f"base value {format_number(base_value)}, the mean over {explanation.background}; "
        f"the features add {format_signed(prediction - base_value, prediction)}:\n",
        markup=False,
    )


def one_row_table(explanation: Explanation, max_display: int) -> Table:
    """One line per feature: its value, its SHAP value with the standard error, a bar."""
    attribution = explanation.attribution
    values, errors = attribution.values[0, 0], attribution.errors[0, 0]
    table = _table("feature", "value", "SHAP value", "" if explanation.is_exact else "± error")
    order = values.abs().argsort(descending=True).tolist()
    longest = float(values.abs().max()) or 1.0
    largest = max(longest, float(attribution.base_values[0, 0].abs()))
    for index in order[:max_display]:
        value, name = float(values[index]), explanation.features.columns[index]
        error = "" if explanation.is_exact else f"± {float(errors[index]):.2g}"
        feature = _feature(float(explanation.x[0, index]), 5)
        table.add_row(escape(name), feature, format_signed(value, largest), error, _bar(value, longest))
    if order[max_display:]:
        rest = float(values[order[max_display:]].sum())
        others = f"[dim]{format_count(len(order) - max_display, 'other')}[/]"
        table.add_row(others, "", format_signed(rest, largest), "", "")
    return table


def _feature(value: float, digits: int = 4) -> str:
    return "missing" if isnan(value) else format_number(value, digits)


def summary_table(explanation: Explanation, max_display: int) -> Table:
    """One line per feature: the mean absolute SHAP value, and the range of its SHAP values."""
    values, importance = explanation.attribution.values[:, 0], explanation.attribution.importance[0]
    table = _table("feature", "mean |SHAP value|", "min", "max")
    longest = float(importance.max()) or 1.0
    for index in importance.argsort(descending=True).tolist()[:max_display]:
        low, high, mean = float(values[:, index].min()), float(values[:, index].max()), float(importance[index])
        name = escape(explanation.features.columns[index])
        low_text, high_text = format_signed(low, longest, 3), format_signed(high, longest, 3)
        table.add_row(name, format_number(mean), low_text, high_text, _bar(mean, longest))
    return table


def print_accuracy(explanation: Explanation, console: Console) -> None:
    """Accuracy of the SHAP values, and number of model evaluations."""
    attribution = explanation.attribution
    features = format_count(attribution.values.shape[-1], "feature")
    gap = f" within {explanation.gap:.1g}" if explanation.gap else ""
    console.print(
        f"\n{_method(explanation, features)}{_tolerance(explanation)}; "
        f"{explanation.model_rows:,} rows evaluated by the model; "
        f"the SHAP values sum to the prediction{gap}",
        markup=False,
    )


def _method(explanation: Explanation, features: str) -> str:
    evaluations = explanation.attribution.evaluations
    if explanation.is_closed_form:
        return "exact, by the closed form for trees"
    if explanation.is_exact:
        return f"exact, from all {evaluations:,} coalitions of {features}"
    sampled = ", unknown features sampled" * explanation.is_conditional
    error = max_standard_error(explanation.attribution)
    return f"{evaluations:,} coalitions of {features}{sampled}, largest standard error {error:.2g}"


def _tolerance(explanation: Explanation) -> str:
    tolerance = explanation.tolerance
    if tolerance is None or explanation.is_exact:
        return ""
    if max_standard_error(explanation.attribution) <= tolerance:
        return f", within the tolerance of {tolerance:g}"
    return f", above the tolerance of {tolerance:g}" + ("" if explanation.is_conditional else ": raise --max-evals")


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for index, name in enumerate(columns):
        table.add_column(name, justify="left" if index == 0 else "right", no_wrap=index > 0)
    table.add_column("", no_wrap=True)
    return table


def _bar(value: float, longest: float) -> str:
    """A bar proportional to the value in the colours of the figures: orange positive, blue negative."""
    length = round(abs(value) / longest * BAR_LENGTH)
    return f"[{'dark_orange' if value > 0 else 'blue'}]{'█' * length or '▏'}[/]"
