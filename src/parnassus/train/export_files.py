"""The files of an exported model: one program each, and config.json with everything needed to use them."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from parnassus.errors import MissingExtraError
from parnassus.runs.errors import RunError
from parnassus.train.export import Program, Programs, as_tuple
from parnassus.train.trained import TrainedRun

if TYPE_CHECKING:
    from collections.abc import Sequence

ExportFormat = Literal["torch", "onnx"]
SUFFIXES: dict[ExportFormat, str] = {"torch": ".pt2", "onnx": ".onnx"}
TRACED_ROWS = 11
"""Rows of the traced examples: a number that other axes rarely have, so that the batch is not taken for one."""
TOLERANCE = 1e-5
"""Maximal difference between an exported program and the model, relative to 1 + |value|."""


def write_programs(trained: TrainedRun, programs: Programs, folder: Path, form: ExportFormat) -> dict[Path, float]:
    """Write the programs and config.json; returns for each file its largest difference from the model.

    Every file is loaded again and compared with the model on other inputs, of another batch size; a difference above
    `TOLERANCE` raises a RunError.
    """
    if form == "onnx":
        check_onnx()
    folder.mkdir(parents=True, exist_ok=True)
    differences: dict[Path, float] = {}
    for name, program in programs.items():
        path = folder / f"{name}{SUFFIXES[form]}"
        try:
            exported = trace(trained.model, program)
            save_onnx(exported, program, path) if form == "onnx" else torch.export.save(exported, path)
        except RuntimeError as error:
            raise RunError(f"torch cannot export {path}: {str(error).strip().splitlines()[0]}") from error
        differences[path] = compare(program, load_program(path))
        if not differences[path] <= TOLERANCE:
            raise RunError(
                f"an exported program must reproduce its model to {TOLERANCE:g}; {path} differs by "
                f"{differences[path]:.1e}: report this as an error of parnassus"
            )
    text = json.dumps(describe(trained, programs), indent=2, ensure_ascii=False)
    (folder / "config.json").write_text(text + "\n", encoding="utf-8")
    return differences


def trace(model: nn.Module, program: Program) -> ExportedProgram:
    """The program as a graph of torch operations with its weights."""
    shapes = tuple(
        {axis: Dim.DYNAMIC for axis in program.dynamic_axes(name)}  # noqa: C420 - a value for each axis
        for name in program.inputs
    )
    examples = tuple(torch.cat([value] * TRACED_ROWS)[:TRACED_ROWS] for value in program.inputs.values())
    with torch.no_grad():
        return torch.export.export(_Function(model, program.function), examples, dynamic_shapes=(shapes,), strict=True)


def save_onnx(exported: ExportedProgram, program: Program, path: Path) -> None:
    """Write a traced program as one ONNX file."""
    torch.onnx.export(
        exported,
        (),
        path,
        input_names=list(program.inputs),
        output_names=list(program.outputs),
        external_data=False,
        verbose=False,
    )


def load_program(path: Path) -> Callable[[Mapping[str, Tensor]], tuple[Tensor, ...]]:
    """An exported program as a function of its inputs by name."""
    if path.suffix == SUFFIXES["torch"]:
        module = torch.export.load(path).module()
        return lambda inputs: as_tuple(module(*inputs.values()))
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def run(inputs: Mapping[str, Tensor]) -> tuple[Tensor, ...]:
        outputs = session.run(None, {name: value.numpy() for name, value in inputs.items()})
        return tuple(map(torch.from_numpy, outputs))

    return run


def compare(program: Program, loaded: Callable[[Mapping[str, Tensor]], tuple[Tensor, ...]]) -> float:
    """The largest |exported − model| / (1 + |model|) over all outputs, on other inputs than the examples."""
    inputs = program.other_inputs()
    largest = 0.0
    with torch.no_grad():
        for ours, theirs in zip(program.compute(inputs), loaded(inputs), strict=True):
            if ours.shape != theirs.shape:
                raise RunError(f"an exported program must keep shapes; got {(*theirs.shape,)} for {(*ours.shape,)}")
            expected = ours.double()
            largest = max(largest, float(((theirs.double() - expected).abs() / (1 + expected.abs())).max()))
    return largest


def describe(trained: TrainedRun, programs: Programs) -> dict[str, object]:
    """The experiment, its settings, the arguments of its model (classes, alphabet, columns) and all programs."""
    about = trained.folder.read_json("run.json")
    return {
        **{key: about[key] for key in ("experiment", "title", "settings")},
        "model": trained.folder.read_json("model.json"),
        "programs": {
            name: {
                "about": program.about,
                "inputs": {
                    each: {"shape": program.shape(each), "dtype": str(value.dtype).removeprefix("torch.")}
                    for each, value in program.inputs.items()
                },
                "outputs": list(program.outputs),
            }
            for name, program in programs.items()
        },
    }


def check_onnx() -> None:
    """Raise a MissingExtraError unless the packages for ONNX are installed."""
    try:
        import onnx
        import onnxruntime
        import onnxscript
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"--format onnx needs the package {error.name}: pip install 'parnassus[export]'"
        ) from None
    del onnx, onnxruntime, onnxscript


class _Function(nn.Module):
    """A function of a model as the forward pass of a module that holds the weights."""

    def __init__(self, model: nn.Module, function: "Callable[..., Tensor | Sequence[Tensor]]") -> None:
        super().__init__()
        self.model, self.function = model, function

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        return as_tuple(self.function(*inputs))
