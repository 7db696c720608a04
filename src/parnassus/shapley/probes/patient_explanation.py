"""SHAP values of one patient's prediction as measurements change (book sec. 17.3)."""

from functools import cache
from itertools import combinations_with_replacement
from typing import Annotated, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.atlas.decorators import probe
from parnassus.data import diabetes
from parnassus.layers import Standardiser
from parnassus.shapley.attributions.attribution import explain_exactly
from parnassus.shapley.attributions.interventional import InterventionalValue
from parnassus.widgets import Answer, Bars, Curves, FloatSlider, IntSlider, Numbers, Select

MEASURED = {
    "age": "age in years",
    "bmi": "body mass index in kg/m²",
    "bp": "blood pressure in mmHg",
    "s3": "HDL in mg/dl",
    "s5": "log of triglycerides",
    "s6": "blood sugar in mg/dl",
}
"""Six of the ten columns, with names and units."""
NAMES = tuple(MEASURED.values())
RIDGE_PENALTY = 3.0
NUM_BACKGROUND, NUM_POINTS = 40, 25  # patients in the background, and points of the curve


class FittedModel(NamedTuple):
    """Patients, their outcomes, and a model of the progression of diabetes after a year."""

    patients: Float[Tensor, "patients 6"]
    outcome: Float[Tensor, " patients"]
    value: InterventionalValue

    def predict(self, x: Float[Tensor, "rows 6"]) -> Float[Tensor, " rows"]:
        return self.value.model(x)[:, 0]


@cache
def fit_model() -> FittedModel:
    """Ridge regression on the measurements, their squares and their products."""
    data = diabetes(scaled=False)
    columns = [data.columns.index(name) for name in MEASURED]
    x, y = data.train.x[:, columns].double(), data.train.y
    assert y is not None
    scaled = Standardiser.fit(x)
    terms, mean = quadratic_terms(scaled.transform(x)), y.double().mean(0)
    penalty = RIDGE_PENALTY * torch.eye(terms.shape[1], dtype=torch.float64)
    weight = torch.linalg.solve(terms.mT @ terms + penalty, terms.mT @ (y.double() - mean))

    def model(rows: Float[Tensor, "rows 6"]) -> Float[Tensor, "rows 1"]:
        predicted: Tensor = mean + quadratic_terms(scaled.transform(rows)) @ weight
        return predicted

    return FittedModel(x, y[:, 0], InterventionalValue(model, x[:NUM_BACKGROUND]))


def quadratic_terms(x: Float[Tensor, "rows features"]) -> Float[Tensor, "rows terms"]:
    """1, x_j and x_i x_j for i ≤ j."""
    first, second = zip(*combinations_with_replacement(range(x.shape[1]), 2), strict=True)
    return torch.cat([torch.ones_like(x[:, :1]), x, x[:, first] * x[:, second]], 1)


@probe()
@torch.no_grad()
def explain_patient(
    patient: Annotated[int, IntSlider("patient", 1, 354)] = 1,
    measurement: Annotated[int, Select("measurement of the curve", NAMES)] = 1,
    *,
    age: Annotated[float, FloatSlider("change of age in years", -40.0, 40.0)] = 0.0,
    bmi: Annotated[float, FloatSlider("change of body mass index in kg/m²", -15.0, 15.0)] = 0.0,
    pressure: Annotated[float, FloatSlider("change of blood pressure in mmHg", -40.0, 40.0)] = 0.0,
    hdl: Annotated[float, FloatSlider("change of HDL in mg/dl", -40.0, 40.0)] = 0.0,
    triglycerides: Annotated[float, FloatSlider("change of the log of triglycerides", -1.5, 1.5)] = 0.0,
    sugar: Annotated[float, FloatSlider("change of blood sugar in mg/dl", -30.0, 30.0)] = 0.0,
) -> list[Answer]:
    """SHAP values of six measurements for the predicted progression of a patient's diabetes (book sec. 17.3).

    Changing one measurement changes the SHAP values of the others too, since the model has products of measurements.
    The base value and the SHAP values always sum to the prediction. The curve shows the SHAP value of one measurement
    over its range.
    """
    model = fit_model()
    measured = model.patients[patient - 1]
    changes = torch.tensor([age, bmi, pressure, hdl, triglycerides, sugar], dtype=torch.float64)
    low, high = model.patients.amin(0), model.patients.amax(0)
    current = (measured + changes).clamp(low, high)
    curve_x = torch.linspace(0, 1, NUM_POINTS, dtype=torch.float64) * (high - low)[measurement] + low[measurement]
    curve_rows = current.repeat(NUM_POINTS, 1)
    curve_rows[:, measurement] = curve_x
    attribution = explain_exactly(model.value, torch.cat([torch.stack([current, measured]), curve_rows]))
    values, prediction = attribution.values[:, 0], attribution.prediction[:, 0]
    base_value = float(attribution.base_values[0, 0])
    labels = [f"{name}: {number:.4g}" for name, number in zip(NAMES, current.tolist(), strict=True)]
    numbers: dict[str, float | str] = {
        "base value, the mean over the background": base_value,
        "sum of the SHAP values": float(values[0].sum()),
        "prediction": float(prediction[0]),
        "prediction for the measured values": float(prediction[1]),
        "true outcome of this patient": float(model.outcome[patient - 1]),
    }
    lines = {
        "prediction minus base value": (curve_x.tolist(), (prediction[2:] - base_value).tolist()),
        f"SHAP value of {NAMES[measurement].split(' in ')[0]}": (curve_x.tolist(), values[2:, measurement].tolist()),
    }
    return [
        Bars("SHAP values", labels, values[0].float(), marked=int(values[0].abs().argmax())),
        Bars("SHAP values for the measured values", NAMES, values[1].float()),
        Curves(
            "Over the range of one measurement",
            lines,
            x_label=NAMES[measurement],
            y_label="progression score",
            marked=float(current[measurement]),
        ),
        Numbers(
            "Values",
            numbers,
            about="The score measures the progression of the disease; measurements stay within their range.",
        ),
    ]
