"""`parnassus sample RUN`: draw samples from a trained generative model, generate text, or export the model."""

import json
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from parnassus.cli.trained_run_command import parse_run_command, print_usage
from parnassus.runs.errors import RunError
from parnassus.runs.folder import RUNS
from parnassus.train.sample_predict_evaluate import Sample, TextSample
from parnassus.train.seeding import check_seed
from parnassus.train.trained import Trained

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor, nn

    Stepwise = Callable[[nn.Module], Iterable[Tensor]]


@runtime_checkable
class Compilable(Protocol):
    """A model that can compile its layers with torch.compile, so that generation takes less time."""

    def compile_hidden(self) -> None: ...


@dataclass(frozen=True)
class SampleOptions:
    """How to draw, whatever the model."""

    seed: int = 0  # seed of the samples
    device: str = "auto"  # where to compute
    out: Path | None = None  # file for the samples, without suffix; by default RUN/samples/seed-N
    animation: bool = False  # also write a .gif of the sampling steps, where there are steps
    compile: bool = False  # compile a language model with torch.compile: slower to start, then faster
    export: Path | None = None  # draw nothing: write weights and config.json for other programs to this folder
    folder: Path = RUNS  # where the runs are


def sample(arguments: list[str]) -> int:
    """Rebuild the model of a run, load its weights, and write samples as an array and a figure, or as text."""
    code = print_usage("sample", arguments)
    if code is not None:
        return code
    command = parse_run_command("sample", arguments, SampleOptions())
    if command.inputs:
        raise RunError(f"sample takes one run; got {', '.join(command.inputs)} as well")
    trained, options = Trained.open(command.folders[0]), command.options
    if options.export is not None:
        print(f"exported: {export(trained, options.export)}")
        return 0
    path = draw_samples(trained, command.how, options)
    if not isinstance(command.how, TextSample):
        print(f"samples: {path}.npy\nfigure: {path}.png" + (f"\nanimation: {path}.gif" if options.animation else ""))
    return 0


def draw_samples(trained: Trained, how: Sample | TextSample, options: SampleOptions) -> Path:
    """Draw samples and write them beside the run; returns their path without suffix."""
    check_seed(options.seed)
    path = options.out or trained.folder.path / "samples" / f"seed-{options.seed}"
    if path.suffix in (".npy", ".png", ".svg", ".gif", ".txt"):
        path = path.with_suffix("")
    return (
        generate_text(trained, how, options, path)
        if isinstance(how, TextSample)
        else draw_arrays(trained, how, options, path)
    )


def generate_text(trained: Trained, how: TextSample, options: SampleOptions, path: Path) -> Path:
    """Generate text to standard output, piece by piece as it comes, and write all of it to PATH.txt."""
    import torch

    from parnassus.train.devices import choose_device

    if options.animation:
        raise RunError("--animation does not apply: this model generates text")
    model = trained.model.to(choose_device(options.device))
    if options.compile:
        compile_hidden(model)
    torch.manual_seed(options.seed)
    pieces: list[str] = []
    try:
        with torch.no_grad():
            for piece in how.write(model):
                pieces.append(piece)
                print(piece, end="", flush=True)
    except RuntimeError as error:
        if not options.compile:
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
            print(f"text: {path}.txt", file=sys.stderr)  # the text itself is all that goes to standard output
    return path


def compile_hidden(model: "nn.Module") -> None:
    """Compile the parts of the model that can be compiled."""
    compilable = [part for part in model.modules() if isinstance(part, Compilable)]
    if not compilable:
        raise RunError("--compile does not apply: this model has no layers to compile")
    for part in compilable:
        part.compile_hidden()


def draw_arrays(trained: Trained, how: Sample, options: SampleOptions, path: Path) -> Path:
    """Draw samples; write them as an array and a figure, and as an animation if requested."""
    import numpy as np
    import torch

    from parnassus.report import image_grid, save_animation, save_figure, scatter
    from parnassus.train.devices import choose_device

    if options.compile:
        raise RunError("--compile does not apply: this model generates no text")
    stepwise: Stepwise | None = getattr(how, "path", None)
    if options.animation and stepwise is None:
        raise RunError("--animation does not apply: this model draws its samples in one step")
    model = trained.model.to(choose_device(options.device))
    torch.manual_seed(options.seed)
    with torch.no_grad():
        states = [state.cpu() for state in stepwise(model)] if options.animation and stepwise else [how(model).cpu()]
    path.parent.mkdir(parents=True, exist_ok=True)
    array = states[-1].numpy()
    columns = getattr(how, "columns", None)
    np.save(f"{path}.npy", array)
    save_figure(image_grid(array, columns=columns) if array.ndim == 4 else scatter(array[:, :2]), path)
    if options.animation:
        save_animation(torch.stack(states), path, columns=columns)
    return path


def export(trained: Trained, folder: Path) -> Path:
    """Write weights.safetensors and config.json: the experiment, its settings, and what its model was built from."""
    _ = trained.model  # damaged or missing weights raise here
    about = trained.folder.read_json("run.json")
    config = {key: about[key] for key in ("experiment", "title", "settings")}
    config["model"] = trained.folder.read_json("model.json")
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(trained.folder.path / "weights.safetensors", folder / "weights.safetensors")
    written = json.dumps(config, indent=2, ensure_ascii=False)
    (folder / "config.json").write_text(written + "\n", encoding="utf-8")
    return folder
