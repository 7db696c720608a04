"""`parnassus evaluate RUN ...`: what trained runs reach on other data, or over episodes."""

from dataclasses import dataclass
from pathlib import Path

from parnassus.cli.tables import print_rows
from parnassus.cli.trained_run_command import parse_run_command, print_usage
from parnassus.runs.folder import RUNS
from parnassus.train.trained import Trained


@dataclass(frozen=True)
class EvaluateOptions:
    """Where the results go."""

    json: bool = False  # print JSON and nothing else
    out: Path | None = None  # also write the results to this .csv or .json file
    folder: Path = RUNS  # where the runs are


def evaluate(arguments: list[str]) -> int:
    """Measure one run or several of the same kind."""
    code = print_usage("evaluate", arguments, "RUN")
    if code is not None:
        return code
    command = parse_run_command("evaluate", arguments, EvaluateOptions(), follows="RUN")
    rows = command.how([Trained.open(folder) for folder in command.folders])
    print_rows(rows, as_json=command.options.json, out=command.options.out)
    return 0
