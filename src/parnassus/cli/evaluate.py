"""`parnassus evaluate RUN ...`: evaluate trained runs on other data, or over episodes."""

from parnassus.cli.tables import TableOptions, check_output, print_rows
from parnassus.cli.trained_run_command import parse_run_command, print_usage
from parnassus.errors import convert_computation_errors
from parnassus.train.trained import TrainedRun


def evaluate(arguments: list[str]) -> int:
    """Evaluate one or more runs whose experiments share the implementation of `Evaluate`."""
    code = print_usage("evaluate", arguments, TableOptions(), "RUN")
    if code is not None:
        return code
    command = parse_run_command("evaluate", arguments, TableOptions(), follows="RUN")
    check_output(command.options)
    with convert_computation_errors():
        rows = command.how([TrainedRun.open(folder) for folder in command.folders])
    print_rows(rows, command.options)
    return 0
