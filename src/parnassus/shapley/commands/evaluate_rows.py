"""`parnassus evaluate` for runs whose model predicts from rows of a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import torch

from parnassus.data import DataError, Dataset
from parnassus.data.files.cells import is_number
from parnassus.setting_types import TableData
from parnassus.shapley.commands.feature_table import FeatureTable, features_of_test_rows, open_features
from parnassus.shapley.commands.predictors import Predictor, from_run
from parnassus.train.sample_predict_evaluate import ResultRow
from parnassus.train.trained import TrainedRun


class TableExperiment(Protocol):
    """An experiment with a table."""

    @property
    def data(self) -> str: ...

    def load_data(self) -> Dataset: ...


@dataclass(frozen=True)
class EvaluateRows:
    data: TableData | None = None  # all rows of a .csv file, or test rows of a data set; by default the run's test rows

    def __call__(self, runs: Sequence[TrainedRun]) -> list[ResultRow]:
        return [self.evaluate(trained) for trained in runs]

    def evaluate(self, trained: TrainedRun) -> ResultRow:
        """The accuracy of a classifier, or the fraction of variance explained and the root mean squared error."""
        predictor = from_run(trained.folder, "cpu")
        experiment = cast("TableExperiment", trained.experiment)
        name = self.data or experiment.data
        rows = open_features(name, predictor) if self.data else features_of_test_rows(experiment.load_data(), predictor)
        scores = score_classes(predictor, rows) if predictor.outputs else score_quantity(predictor, rows)
        return {"run": trained.folder.path.name, "data": name, "rows": len(rows), **scores}


def score_classes(predictor: Predictor, rows: FeatureTable) -> dict[str, float]:
    """The accuracy, for rows whose true classes the model knows."""
    targets = [_class_name(target) for target in _known_targets(rows)]
    unknown = sorted(set(targets) - {*predictor.outputs})
    if unknown:
        raise DataError(f"{rows.source} has the class {unknown[0]!r}, which {predictor.name} was not trained on")
    with torch.no_grad():
        predicted = predictor.model(rows.rows).argmax(1).tolist()
    correct = [predictor.outputs[index] == target for index, target in zip(predicted, targets, strict=True)]
    return {"accuracy": sum(correct) / len(correct)}


def score_quantity(predictor: Predictor, rows: FeatureTable) -> dict[str, float]:
    """The fraction of variance explained, and the root mean squared error in units of the target."""
    words = [target for target in _known_targets(rows) if not is_number(target)]
    if words:
        raise DataError(f"{rows.source} has the target {words[0]!r}, which is not a number")
    y = torch.tensor([float(target) for target in rows.targets], dtype=torch.float64)
    with torch.no_grad():
        residuals = predictor.model(rows.rows)[:, 0].double() - y
    variance = y.var(correction=0)
    explained = 1 - float(residuals.square().mean() / variance) if variance > 0 else float("nan")
    return {"r2": explained, "rmse": float(residuals.square().mean().sqrt())}


def _class_name(cell: str) -> str:
    """The name of a class, without the decimals of an integer."""
    return str(int(float(cell))) if is_number(cell) and float(cell).is_integer() else cell


def _known_targets(rows: FeatureTable) -> tuple[str, ...]:
    if not rows.targets or not all(rows.targets):
        raise DataError(f"{rows.source} must have the target column, without missing cells, for an evaluation")
    return rows.targets
