"""`parnassus predict` for runs whose model predicts from rows of a table."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch

from parnassus.data.files.csv_table import CsvTable
from parnassus.data.files.idx import read_gzipped
from parnassus.data.table_settings import TABLE_SUFFIXES
from parnassus.shapley.commands.feature_table import FeatureTable
from parnassus.shapley.commands.predictors import from_run
from parnassus.train.sample_predict_evaluate import Input, ResultRow
from parnassus.train.trained import TrainedRun


@dataclass(frozen=True)
class PredictRows:
    suffixes: ClassVar[tuple[str, ...]] = TABLE_SUFFIXES

    def __call__(self, trained: TrainedRun, inputs: Sequence[Input]) -> Iterator[ResultRow]:
        """The most probable class of each row and its probability, or the predicted quantity."""
        predictor = from_run(trained.folder, "cpu")
        for each in inputs:
            content = each.read_bytes() if each.path is None else read_gzipped(each.path)
            features = FeatureTable.from_csv(CsvTable.parse(content, Path(each.name)), predictor)
            with torch.no_grad():
                outputs = predictor.model(features.rows)
            for line, output in zip(features.lines, outputs, strict=True):
                if predictor.outputs:
                    best = int(output.argmax())
                    answer: ResultRow = {"class": predictor.outputs[best], "probability": float(output[best])}
                else:
                    answer = {"prediction": float(output[0])}
                yield {"file": each.name, "line": line, **answer}
