"""`parnassus predict RUN INPUT ...`: predictions of a trained model for new input."""

from dataclasses import dataclass
from pathlib import Path

from parnassus.cli.tables import print_rows
from parnassus.cli.trained_run_command import parse_run_command, print_usage
from parnassus.errors import convert_value_errors
from parnassus.runs.folder import RUNS
from parnassus.train.sample_predict_evaluate import find_inputs
from parnassus.train.trained import TrainedRun


@dataclass(frozen=True)
class PredictOptions:
    """Output options."""

    json: bool = False  # print JSON only
    out: Path | None = None  # also write the predictions to this .csv or .json file
    folder: Path = RUNS  # folder that contains the runs


def predict(arguments: list[str]) -> int:
    """Predict for files, for the files of a folder, or for standard input (`-`)."""
    code = print_usage("predict", arguments, PredictOptions(), "INPUT")
    if code is not None:
        return code
    command = parse_run_command("predict", arguments, PredictOptions(), follows="INPUT")
    inputs = find_inputs(command.inputs, command.how.suffixes)
    with convert_value_errors():
        rows = list(command.how(TrainedRun.open(command.folders[0]), inputs))
    print_rows(rows, as_json=command.options.json, out=command.options.out)
    return 0
