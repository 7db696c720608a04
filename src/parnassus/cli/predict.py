"""`parnassus predict RUN INPUT ...`: predictions of a trained model for new input."""

from parnassus.cli.tables import TableOptions, check_output, print_rows
from parnassus.cli.trained_run_command import parse_run_command, print_usage
from parnassus.errors import convert_computation_errors
from parnassus.train.sample_predict_evaluate import find_inputs
from parnassus.train.trained import TrainedRun


def predict(arguments: list[str]) -> int:
    """Predict for files, for the files of a folder, or for standard input (`-`)."""
    code = print_usage("predict", arguments, TableOptions(), "INPUT")
    if code is not None:
        return code
    command = parse_run_command("predict", arguments, TableOptions(), follows="INPUT")
    check_output(command.options)
    inputs = find_inputs(command.inputs, command.how.suffixes)
    with convert_computation_errors():
        rows = list(command.how(TrainedRun.open(command.folders[0]), inputs))
    print_rows(rows, command.options)
    return 0
