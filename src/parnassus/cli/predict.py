"""`parnassus predict RUN INPUT ...`: the trained model's answers for new input."""

from dataclasses import dataclass
from pathlib import Path

from parnassus.cli.tables import print_rows
from parnassus.cli.trained_run_command import parse_run_command, print_usage
from parnassus.runs.folder import RUNS
from parnassus.train.sample_predict_evaluate import find_inputs
from parnassus.train.trained import Trained


@dataclass(frozen=True)
class PredictOptions:
    """Where the answers go."""

    json: bool = False  # print JSON and nothing else
    out: Path | None = None  # also write the answers to this .csv or .json file
    folder: Path = RUNS  # where the runs are


def predict(arguments: list[str]) -> int:
    """Answer for files, for the files of a folder, or for standard input (`-`, the default)."""
    code = print_usage("predict", arguments, "INPUT")
    if code is not None:
        return code
    command = parse_run_command("predict", arguments, PredictOptions(), follows="INPUT")
    inputs = find_inputs(command.inputs or ("-",), command.how.suffixes)
    rows = command.how(Trained.open(command.folders[0]), inputs)
    print_rows(rows, as_json=command.options.json, out=command.options.out)
    return 0
