"""`parnassus evaluate RUN ...`: evaluate trained runs on other data, or over episodes."""

from dataclasses import dataclass
from pathlib import Path

from parnassus.cli.tables import print_rows
from parnassus.cli.trained_run_command import parse_run_command, print_usage
from parnassus.errors import convert_value_errors
from parnassus.runs.folder import RUNS
from parnassus.train.trained import TrainedRun


@dataclass(frozen=True)
class EvaluateOptions:
    """Output options."""

    json: bool = False  # print JSON only
    out: Path | None = None  # also write the results to this .csv or .json file
    folder: Path = RUNS  # folder that contains the runs


def evaluate(arguments: list[str]) -> int:
    """Evaluate one or more runs whose experiments share the implementation of `Evaluate`."""
    code = print_usage("evaluate", arguments, EvaluateOptions(), "RUN")
    if code is not None:
        return code
    command = parse_run_command("evaluate", arguments, EvaluateOptions(), follows="RUN")
    with convert_value_errors():
        rows = command.how([TrainedRun.open(folder) for folder in command.folders])
    print_rows(rows, as_json=command.options.json, out=command.options.out)
    return 0
