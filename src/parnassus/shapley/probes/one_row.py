"""One patient to touch: move a measurement, see the prediction and every part of it move (book sec. 17.3)."""

from functools import cache
from itertools import combinations_with_replacement
from typing import Annotated, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.atlas.marks import probe
from parnassus.data import diabetes
from parnassus.layers import Standardiser
from parnassus.shapley.attribution import explain_exactly
from parnassus.shapley.masking import Interventional
from parnassus.touch import Answer, Bars, Curves, Numbers, Pick, Real, Whole

MEASURED = {
    "age": "age in years",
    "bmi": "body mass index in kg/m²",
    "bp": "blood pressure in mmHg",
    "s3": "HDL in mg/dl",
    "s5": "log of triglycerides",
    "s6": "blood sugar in mg/dl",
}
"""Six of the ten columns, and what they are."""
NAMES = tuple(MEASURED.values())
RIDGE, OTHERS, FINE = 3.0, 40, 25


class Fitted(NamedTuple):
    """Patients, and how far a model says the disease goes in a year."""

    patients: Float[Tensor, "patients 6"]
    outcome: Float[Tensor, " patients"]
    value: Interventional

    def predict(self, x: Float[Tensor, "rows 6"]) -> Float[Tensor, " rows"]:
        return self.value.model(x)[:, 0]


@cache
def fitted() -> Fitted:
    """Ridge regression on the measurements, their squares and their products: pairs act together."""
    data = diabetes(scaled=False)
    columns = [data.columns.index(name) for name in MEASURED]
    x, y = data.train.x[:, columns].double(), data.train.y
    assert y is not None
    scaled = Standardiser.fit(x)
    terms, mean = quadratic(scaled.apply(x)), y.double().mean(0)
    penalty = RIDGE * torch.eye(terms.shape[1], dtype=torch.float64)
    weight = torch.linalg.solve(terms.mT @ terms + penalty, terms.mT @ (y.double() - mean))

    def model(rows: Float[Tensor, "rows 6"]) -> Float[Tensor, "rows 1"]:
        said: Tensor = mean + quadratic(scaled.apply(rows)) @ weight
        return said

    return Fitted(x, y[:, 0], Interventional(model, x[:OTHERS]))


def quadratic(x: Float[Tensor, "rows features"]) -> Float[Tensor, "rows terms"]:
    """1, x_j and x_i x_j for i ≤ j."""
    first, second = zip(*combinations_with_replacement(range(x.shape[1]), 2), strict=True)
    return torch.cat([torch.ones_like(x[:, :1]), x, x[:, first] * x[:, second]], 1)


@probe()
@torch.no_grad()
def why_this_row(
    patient: Annotated[int, Whole("patient", 1, 354)] = 1,
    followed: Annotated[int, Pick("measurement to follow", NAMES)] = 1,
    *,
    age: Annotated[float, Real("age, moved by years", -40.0, 40.0)] = 0.0,
    index: Annotated[float, Real("body mass index, moved by kg/m²", -15.0, 15.0)] = 0.0,
    pressure: Annotated[float, Real("blood pressure, moved by mmHg", -40.0, 40.0)] = 0.0,
    hdl: Annotated[float, Real("HDL, moved by mg/dl", -40.0, 40.0)] = 0.0,
    triglycerides: Annotated[float, Real("log of triglycerides, moved by", -1.5, 1.5)] = 0.0,
    sugar: Annotated[float, Real("blood sugar, moved by mg/dl", -30.0, 30.0)] = 0.0,
) -> list[Answer]:
    """What each of six measurements adds to how far a model says a patient's diabetes goes in a year (book sec. 17.3).

    Begin with a patient as measured. Move the body mass index: its part moves, and the others too, for the model knows
    products of measurements. Whatever you move, the parts and the base sum to the prediction. Follow a measurement over
    its range: where its part crosses 0 it speaks neither for nor against.
    """
    found = fitted()
    measured = found.patients[patient - 1]
    moves = torch.tensor([age, index, pressure, hdl, triglycerides, sugar], dtype=torch.float64)
    low, high = found.patients.amin(0), found.patients.amax(0)
    now = (measured + moves).clamp(low, high)
    reach = torch.linspace(0, 1, FINE, dtype=torch.float64) * (high - low)[followed] + low[followed]
    along = now.repeat(FINE, 1)
    along[:, followed] = reach
    parts = explain_exactly(found.value, torch.cat([torch.stack([now, measured]), along]))
    values, said, base = parts.values[:, 0], parts.prediction[:, 0], float(parts.base[0, 0])
    labels = [f"{name}: {number:.4g}" for name, number in zip(NAMES, now.tolist(), strict=True)]
    numbers: dict[str, float | str] = {
        "base, the mean over the background": base,
        "sum of the parts": float(values[0].sum()),
        "prediction": float(said[0]),
        "prediction before anything was moved": float(said[1]),
        "what became of this patient": float(found.outcome[patient - 1]),
    }
    lines = {
        "prediction less base": (reach.tolist(), (said[2:] - base).tolist()),
        f"part of {NAMES[followed].split(' in ')[0]}": (reach.tolist(), values[2:, followed].tolist()),
    }
    return [
        Bars("What each measurement adds", labels, values[0].float(), marked=int(values[0].abs().argmax())),
        Bars("Before anything was moved", NAMES, values[1].float()),
        Curves(
            "Over its range, the others as they are",
            lines,
            x_label=NAMES[followed],
            y_label="score of the disease",
            marked=float(now[followed]),
        ),
        Numbers("In numbers", numbers, about="The score counts how far the disease went; measurements stay in range."),
    ]
