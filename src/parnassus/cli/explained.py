"""An explanation told to a person: a table with bars, a picture; or JSON."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jaxtyping import Float
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from torch import Tensor

from parnassus.cli.rows import Features
from parnassus.report.attributions import signed
from parnassus.report.numbers import number
from parnassus.shapley.attribution import Attribution
from parnassus.shapley.stopping import largest_error

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BAR = 16
"""Letters of the longest bar."""


@dataclass(frozen=True)
class Explained:
    """Rows, what a model says of them, and the parts of their features in one of its outputs."""

    predictor: str
    features: Features
    numbers: list[int]
    output: str
    parts: Attribution
    said: Float[Tensor, " rows"]
    base_is: str
    model_rows: int
    closed: bool
    """Whether the parts came from a closed form, which asks nothing."""
    guessed: bool
    """Whether worths of coalitions are means over guesses of what is not known, and so have errors of their own."""
    wished: float | None

    @property
    def exact(self) -> bool:
        return self.closed or (not self.guessed and self.parts.coalitions >= 2 ** self.parts.values.shape[-1])

    @property
    def gap(self) -> float:
        """The largest distance between a prediction and the sum of its parts."""
        return float((self.parts.prediction[:, 0] - self.said).abs().max())

    @property
    def x(self) -> Float[Tensor, "rows features"]:
        return self.features.rows[[number - 1 for number in self.numbers]]


def say(explained: Explained, *, top: int, out: Path | None, as_json: bool) -> None:
    """Draw the picture, then print the table, or JSON."""
    from parnassus.report import save_figure

    path = out or Path(f"explanation-{explained.numbers[0]}" if len(explained.numbers) == 1 else "explanation")
    path = path.with_suffix("") if path.suffix in (".png", ".svg") else path
    path.parent.mkdir(parents=True, exist_ok=True)
    save_figure(picture(explained, top), path)
    if as_json:
        print(
            json.dumps({**as_data(explained), "picture": f"{path}.png"}, indent=2, ensure_ascii=False, allow_nan=False)
        )
        return
    console = Console(highlight=False)
    headline(explained, console)
    console.print(of_one(explained, top) if len(explained.numbers) == 1 else of_many(explained, top))
    small_print(explained, console)
    console.print(f"picture: {path}.png", soft_wrap=True, markup=False)


def headline(explained: Explained, console: Console) -> None:
    features, numbers = explained.features, explained.numbers
    what = f" for {explained.output}" if explained.output else ""
    if len(numbers) > 1:
        console.print(f"{features.about}, {len(numbers)} rows: what {explained.predictor} says{what}", markup=False)
        return
    place = numbers[0] - 1
    line = f" (line {features.lines[place]})" if features.lines else ""
    truth = f"; the data say {features.truths[place]}" if features.truths and features.truths[place] else ""
    base, said = float(explained.parts.base[0, 0]), float(explained.said[0])
    console.print(
        f"{features.about}, row {numbers[0]}{line}: {explained.predictor} says {number(said)}{what}{truth}\n"
        f"base {number(base)}, the mean over {explained.base_is}; "
        f"the features add {signed(said - base, said)}:\n",
        markup=False,
    )


def of_one(explained: Explained, top: int) -> Table:
    """A line for each feature: its value, its part with the standard error, a bar."""
    parts, errors = explained.parts.values[0, 0], explained.parts.errors[0, 0]
    table = _table("feature", "value", "part", "" if explained.exact else "± error")
    order = parts.abs().argsort(descending=True).tolist()
    longest = float(parts.abs().max()) or 1.0
    largest = max(longest, float(explained.parts.base[0, 0].abs()))
    for place in order[:top]:
        part, name = float(parts[place]), explained.features.columns[place]
        doubt = "" if explained.exact else f"± {float(errors[place]):.2g}"
        value = number(float(explained.x[0, place]), 5)
        table.add_row(escape(name), value, signed(part, largest), doubt, _bar(part, longest))
    if order[top:]:
        rest = float(parts[order[top:]].sum())
        table.add_row(f"[dim]{counted(len(order) - top, 'other')}[/]", "", signed(rest, largest), "", "")
    return table


def of_many(explained: Explained, top: int) -> Table:
    """A line for each feature: the mean of its parts without their signs, and their range."""
    parts, importance = explained.parts.values[:, 0], explained.parts.importance[0]
    table = _table("feature", "mean |part|", "least", "most")
    longest = float(importance.max()) or 1.0
    for place in importance.argsort(descending=True).tolist()[:top]:
        low, high, mean = float(parts[:, place].min()), float(parts[:, place].max()), float(importance[place])
        name = escape(explained.features.columns[place])
        table.add_row(name, number(mean), signed(low, longest, 3), signed(high, longest, 3), _bar(mean, longest))
    return table


def small_print(explained: Explained, console: Console) -> None:
    """How exact it is, and what it took."""
    found = explained.parts
    error = largest_error(found)
    players = found.values.shape[-1]
    how = (
        "exact, by the closed form of trees"
        if explained.closed
        else f"exact, from all {found.coalitions:,} coalitions of {counted(players, 'feature')}"
        if explained.exact
        else f"{found.coalitions:,} coalitions of {counted(players, 'feature')} asked"
        f"{' and the unknown guessed' * explained.guessed}, largest standard error {error:.2g}"
    )
    if explained.wished is not None and not explained.exact:
        met = error <= explained.wished
        how += f", below {explained.wished:g} as wished" if met else f", not below {explained.wished:g}"
        how += "" if met or explained.guessed else ": raise --budget"
    console.print(
        f"\n{how}; {explained.model_rows:,} rows went through the model; "
        f"the parts sum to the prediction{f' within {explained.gap:.1g}' if explained.gap else ''}",
        markup=False,
    )


def counted(number: int, noun: str) -> str:
    """1 row, 2,000 rows."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def picture(explained: Explained, top: int) -> "Figure":
    """One row as a waterfall, several as a swarm."""
    from parnassus.report.attributions import swarm, waterfall

    found, x, columns = explained.parts, explained.x, explained.features.columns
    label = f"answer for {explained.output}" if explained.output else "prediction"
    if len(x) > 1:
        return swarm(found.values[:, 0], x, columns, most=top, x_label=f"part of the {label}")
    names = [f"{name} = {number(value)}" for name, value in zip(columns, x[0].tolist(), strict=True)]
    errors = None if explained.exact else found.errors[0, 0]
    return waterfall(float(found.base[0, 0]), found.values[0, 0], names, errors=errors, most=top, x_label=label)


def as_data(explained: Explained) -> dict[str, object]:
    """All of it, for other programs."""
    found, columns = explained.parts, explained.features.columns
    rows = [
        {
            "row": number,
            "prediction": float(explained.said[place]),
            "base": float(found.base[place, 0]),
            "features": [
                {"name": name, "value": value, "part": part, "error": error}
                for name, value, part, error in zip(
                    columns,
                    explained.x[place].tolist(),
                    found.values[place, 0].tolist(),
                    found.errors[place, 0].tolist(),
                    strict=True,
                )
            ],
        }
        for place, number in enumerate(explained.numbers)
    ]
    return {
        "model": explained.predictor,
        "wished": explained.wished,
        "largest_error": largest_error(found),
        "data": explained.features.about,
        "output": explained.output,
        "exact": explained.exact,
        "coalitions": found.coalitions,
        "model_rows": explained.model_rows,
        "gap": explained.gap,
        "rows": rows,
    }


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for place, name in enumerate(columns):
        table.add_column(name, justify="left" if place == 0 else "right", no_wrap=place > 0)
    table.add_column("", no_wrap=True)
    return table


def _bar(part: float, longest: float) -> str:
    """As long as the part is large, in the colours of the pictures: orange adds, blue takes away."""
    length = round(abs(part) / longest * BAR)
    return f"[{'dark_orange' if part > 0 else 'blue'}]{'█' * length or '▏'}[/]"
