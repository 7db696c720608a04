"""`parnassus sample RUN`: draw samples from a trained generative model, generate text, or export the model."""

import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from parnassus.cli.trained_run_command import parse_run_command, print_usage
from parnassus.errors import convert_computation_errors
from parnassus.runs.errors import RunError
from parnassus.runs.folder import RUNS
from parnassus.setting_types import DeviceName, NonNegative
from parnassus.train.sample_predict_evaluate import CompilableTextSample, IterativeSample, Sample, TextSample
from parnassus.train.seeding import check_seed
from parnassus.train.trained import TrainedRun


@dataclass(frozen=True)
class SampleOptions:
    """Options common to all generative models."""

    seed: NonNegative[int] = 0  # seed of the samples
    device: DeviceName = "auto"  # device to use
    out: Path | None = None  # file for the samples, without suffix; by default RUN/samples/seed-N
    export: Path | None = None  # instead of sampling, write weights and config.json to this folder
    folder: Path = RUNS  # folder that contains the runs


@dataclass(frozen=True)
class CompileOptions(SampleOptions):
    """Options of models that can be compiled."""

    compile: bool = False  # compile the model with torch.compile: slower to start, then faster


@dataclass(frozen=True)
class AnimationOptions(SampleOptions):
    """Options of iterative samplers."""

    animation: bool = False  # also write a .gif of the sampling steps


def options_for(declared: type) -> SampleOptions:
    """The options that apply to a class of samplers."""
    if issubclass(declared, CompilableTextSample):
        return CompileOptions()
    return AnimationOptions() if issubclass(declared, IterativeSample) else SampleOptions()


def sample(arguments: list[str]) -> int:
    """Rebuild the model of a run, load its weights, and write samples as an array and a figure, or as text."""
    code = print_usage("sample", arguments, SampleOptions())
    if code is not None:
        return code
    command = parse_run_command("sample", arguments, SampleOptions(), options_for=options_for)
    if command.inputs:
        raise RunError(f"sample takes exactly one run; unexpected arguments: {', '.join(command.inputs)}")
    trained, options = TrainedRun.open(command.folders[0]), command.options
    if options.export is not None:
        print(f"exported: {export(trained, options.export)}")
        return 0
    with convert_computation_errors():
        path = draw_samples(trained, command.how, options)
    if not isinstance(command.how, TextSample):
        print(f"samples: {path}.npy\nfigure: {path}.png")
        if isinstance(options, AnimationOptions) and options.animation:
            print(f"animation: {path}.gif")
    return 0


def draw_samples(trained: TrainedRun, how: Sample | TextSample, options: SampleOptions) -> Path:
    """Draw samples and write them to the run's folder or to --out; returns their path without suffix."""
    check_seed(options.seed)
    path = options.out or trained.folder.file("samples") / f"seed-{options.seed}"
    for suffix in () if options.out else (".npy", ".txt"):
        trained.folder.file(f"samples/{path.name}{suffix}")  # rejects a link to a file outside
    if path.suffix in (".npy", ".png", ".svg", ".gif", ".txt"):
        path = path.with_suffix("")
    return (
        generate_text(trained, how, options, path)
        if isinstance(how, TextSample)
        else draw_arrays(trained, how, options, path)
    )


def generate_text(trained: TrainedRun, how: TextSample, options: SampleOptions, path: Path) -> Path:
    """Stream generated text to standard output, and write all of it to PATH.txt."""
    import torch

    from parnassus.train.devices import choose_device

    is_compiled = isinstance(options, CompileOptions) and options.compile
    model = trained.model.to(choose_device(options.device))
    if is_compiled and isinstance(how, CompilableTextSample):
        how.compile_layers(model)
    torch.manual_seed(options.seed)
    pieces: list[str] = []
    try:
        with torch.no_grad():
            for piece in how.write(model):
                pieces.append(piece)
                print(piece, end="", flush=True)
    except RuntimeError as error:
        if not is_compiled:
            raise
        reason = str(error).strip().splitlines()[0]
        raise RunError(f"torch.compile failed: {reason}; omit --compile") from None
    finally:  # also when the reader closed the pipe
        text = "".join(pieces)
        if text and not text.endswith("\n"):
            text += "\n"
            print(flush=True)
        if text:
            path.parent.mkdir(parents=True, exist_ok=True)
            Path(f"{path}.txt").write_text(text, encoding="utf-8")
            print(f"text: {path}.txt", file=sys.stderr)  # standard output receives only the text itself
    return path


def draw_arrays(trained: TrainedRun, how: Sample, options: SampleOptions, path: Path) -> Path:
    """Draw samples; write them as an array and a figure, and as an animation if requested."""
    import numpy as np
    import torch

    from parnassus.report import image_grid, save_animation, save_figure, scatter
    from parnassus.train.devices import choose_device

    is_animated = isinstance(options, AnimationOptions) and options.animation
    model = trained.model.to(choose_device(options.device))
    torch.manual_seed(options.seed)
    with torch.no_grad():
        path_or_samples = how.path(model) if is_animated and isinstance(how, IterativeSample) else [how(model)]
        states = [state.cpu() for state in path_or_samples]
    path.parent.mkdir(parents=True, exist_ok=True)
    array = states[-1].numpy()
    columns = getattr(how, "columns", None)
    np.save(f"{path}.npy", array)
    save_figure(image_grid(array, columns=columns) if array.ndim == 4 else scatter(array[:, :2]), path)
    if is_animated:
        save_animation(torch.stack(states), path, columns=columns)
    return path


def export(trained: TrainedRun, folder: Path) -> Path:
    """Write weights.safetensors and config.json: the experiment, its settings, and the arguments of its model."""
    _ = trained.model  # raises if the weights are damaged or missing
    about = trained.folder.read_json("run.json")
    config = {key: about[key] for key in ("experiment", "title", "settings")}
    config["model"] = trained.folder.read_json("model.json")
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(trained.folder.path / "weights.safetensors", folder / "weights.safetensors")
    written = json.dumps(config, indent=2, ensure_ascii=False)
    (folder / "config.json").write_text(written + "\n", encoding="utf-8")
    return folder
