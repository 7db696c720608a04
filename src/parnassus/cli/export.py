"""`parnassus export RUN`: write the trained model as programs that run without this package."""

from pathlib import Path

from parnassus.runs.lookup import find_run
from parnassus.train.export import trained_programs
from parnassus.train.export_files import ExportFormat, write_programs
from parnassus.train.trained import TrainedRun


def export_run(name: str, root: Path, *, form: ExportFormat, out: Path | None) -> int:
    """Export the model of a run, and print how to load each program."""
    trained = TrainedRun.open(find_run(root, name))
    programs = trained_programs(trained)
    folder = out or trained.folder.path / "exported"
    for path, difference in write_programs(trained, programs, folder, form).items():
        program = programs[path.stem]
        inputs = ", ".join(f"{each} ({' × '.join(map(str, program.shape(each)))})" for each in program.inputs)
        print(f"{path}: {inputs} → {', '.join(program.outputs)}; differs from the model by {difference:.0e}")
        print(f"  {program.about}")
    example = next(iter(programs))
    if form == "torch":
        print(f"use it: torch.export.load({str(folder / f'{example}.pt2')!r}).module()(…)")
    else:
        print(f"use it: onnxruntime.InferenceSession({str(folder / f'{example}.onnx')!r}).run(None, {{…}})")
    return 0
