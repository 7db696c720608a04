"""The result of `parnassus explain`: rows, predictions and the attributions of their features."""

from dataclasses import dataclass
from math import isnan

from jaxtyping import Float
from torch import Tensor

from parnassus.shapley.attributions.attribution import Attribution
from parnassus.shapley.commands.feature_table import FeatureTable
from parnassus.shapley.estimators.stopping import max_standard_error


@dataclass(frozen=True)
class Explanation:
    """Predictions of one output for some rows, and their attributions."""

    predictor: str
    features: FeatureTable
    rows: list[int]
    """Row numbers, from 1."""
    output: str
    attribution: Attribution
    prediction: Float[Tensor, " rows"]
    background: str
    """The rows, or the distribution, over which the base value is a mean."""
    model_rows: int
    """Number of inputs evaluated by the model."""
    is_closed_form: bool
    """Whether the values were computed in closed form from the trees, without evaluating the model."""
    is_conditional: bool
    """Whether coalition values are means over sampled features, and therefore have sampling errors."""
    tolerance: float | None

    @property
    def is_exact(self) -> bool:
        enumerated = self.attribution.evaluations >= 2 ** self.attribution.values.shape[-1]
        return self.is_closed_form or (enumerated and not self.is_conditional)

    @property
    def gap(self) -> float:
        """The maximum difference between a prediction and the sum of its attributions."""
        return float((self.attribution.prediction[:, 0] - self.prediction).abs().max())

    @property
    def x(self) -> Float[Tensor, "rows features"]:
        return self.features.rows[[number - 1 for number in self.rows]]

    def to_dict(self) -> dict[str, object]:
        """JSON-compatible representation of all results."""
        attribution = self.attribution
        rows = [
            {
                "row": number,
                "prediction": float(self.prediction[index]),
                "base_value": float(attribution.base_values[index, 0]),
                "features": [
                    {"name": name, "value": None if isnan(value) else value, "shap_value": shap_value, "error": error}
                    for name, value, shap_value, error in zip(
                        self.features.columns,
                        self.x[index].tolist(),
                        attribution.values[index, 0].tolist(),
                        attribution.errors[index, 0].tolist(),
                        strict=True,
                    )
                ],
            }
            for index, number in enumerate(self.rows)
        ]
        return {
            "model": self.predictor,
            "data": self.features.source,
            "output": self.output,
            "exact": self.is_exact,
            "tolerance": self.tolerance,
            "max_standard_error": max_standard_error(attribution),
            "evaluations": attribution.evaluations,
            "model_rows": self.model_rows,
            "gap": self.gap,
            "rows": rows,
        }


def format_count(number: int, noun: str) -> str:
    """1 row, 2,000 rows."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
