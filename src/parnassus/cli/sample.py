"""`parnassus sample RUN`: draw from a trained generative model, or let it write; or hand it to other programs."""

import importlib
import json
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import tyro

from parnassus.atlas.index import Atlas
from parnassus.cli.places import RUNS
from parnassus.cli.seeds import demand_a_seed
from parnassus.runs.errors import RunError
from parnassus.runs.folder import find_run
from parnassus.train.trained import Trained

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor, nn

    Stepwise = Callable[[nn.Module], Iterable[Tensor]]


class Drawer(Protocol):
    """The `Sample` of an experiment: settings that know how to draw, and maybe how many `columns` the picture has.

    One that draws step by step may have a `path(model)`, which yields every state on the way and last the samples.
    """

    def __call__(self, model: "nn.Module", /) -> "Tensor": ...


@runtime_checkable
class Writer(Protocol):
    """The `Sample` of an experiment whose samples are text: it yields pieces as they come."""

    def write(self, model: "nn.Module", /) -> Iterable[str]: ...


@runtime_checkable
class Joins(Protocol):
    """A model whose operations torch.compile can join, so that writing on takes less time."""

    def join_operations(self) -> None: ...


@dataclass(frozen=True)
class Draw:
    """How to draw, whatever the model."""

    seed: int = 0  # another seed, other samples
    device: str = "auto"  # where to compute
    out: Path | None = None  # where to write NAME.npy and its picture, or NAME.txt; unless told RUN/samples/seed-N
    film: bool = False  # also write NAME.gif, how the samples come out of the noise, where they come step by step
    compile: bool = False  # let torch.compile join the operations of a language model: slow to begin, then faster
    export: Path | None = None  # draw nothing: write weights and config.json for other programs into this folder


def sample(arguments: list[str]) -> int:
    """Rebuild the model of a run, load its weights, draw, and write an array and a picture, or a text."""
    if not arguments or arguments[0].startswith("-"):
        asked = bool({"-h", "--help"} & set(arguments))
        usage = "usage: parnassus sample RUN [flags]    (RUN may be `last`; flags: parnassus sample RUN --help)"
        print(usage, file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 2
    folder = find_run(RUNS, arguments[0])
    entry = Atlas().experiment(str(folder.read_json("run.json")["experiment"]))
    if not entry.generative:
        raise RunError(f"{folder.path.name} is a run of {entry.name}, which has nothing to draw samples from")
    module = importlib.import_module(entry.module)
    command = make_dataclass(
        "Command", [("sample", module.Sample, field(default=module.Sample())), ("draw", Draw, field(default=Draw()))]
    )
    given: Any = tyro.cli(
        command,
        prog=f"parnassus sample {folder.path.name}",
        description=f"Draw from: {entry.title}",
        args=arguments[1:],
        config=(tyro.conf.OmitArgPrefixes,),
    )
    trained = Trained.open(folder)
    if given.draw.export is not None:
        print(f"exported: {export(trained, given.draw.export)}")
        return 0
    path = draw_samples(trained, given.sample, given.draw)
    if not isinstance(given.sample, Writer):
        print(f"samples: {path}.npy\npicture: {path}.png" + (f"\nfilm:    {path}.gif" if given.draw.film else ""))
    return 0


def draw_samples(trained: Trained, how: Drawer | Writer, draw: Draw) -> Path:
    """Draw as `how` says and write the samples beside the run; returns their path without ending."""
    demand_a_seed(draw.seed)
    path = draw.out or trained.folder.path / "samples" / f"seed-{draw.seed}"
    if path.suffix in (".npy", ".png", ".svg", ".gif", ".txt"):
        path = path.with_suffix("")
    return write_text(trained, how, draw, path) if isinstance(how, Writer) else draw_pictures(trained, how, draw, path)


def write_text(trained: Trained, how: Writer, draw: Draw, path: Path) -> Path:
    """Let the model write to standard output, each piece as soon as it is there, and keep the whole as PATH.txt."""
    import torch

    from parnassus.train.devices import choose_device

    if draw.film:
        raise RunError("there is no film to make: this model writes text")
    model = trained.model.to(choose_device(draw.device))
    if draw.compile:
        join_operations(model)
    torch.manual_seed(draw.seed)
    pieces: list[str] = []
    try:
        with torch.no_grad():
            for piece in how.write(model):
                pieces.append(piece)
                print(piece, end="", flush=True)
    except torch._dynamo.exc.TorchDynamoException as error:
        reason = str(error).strip().splitlines()[0]
        raise RunError(f"torch.compile does not work here, write without --compile; it says: {reason}") from None
    finally:  # also what was written before somebody had read enough
        text = "".join(pieces)
        if text and not text.endswith("\n"):
            text += "\n"
            print(flush=True)
        if text:
            path.parent.mkdir(parents=True, exist_ok=True)
            Path(f"{path}.txt").write_text(text, encoding="utf-8")
            print(f"text: {path}.txt", file=sys.stderr)  # the text itself is all that goes to standard output
    return path


def join_operations(model: "nn.Module") -> None:
    """Compile whatever of the model can be; a sentence where nothing can."""
    joining = [part for part in model.modules() if isinstance(part, Joins)]
    if not joining:
        raise RunError("there is nothing to compile: this model is not one that torch.compile makes faster here")
    for part in joining:
        part.join_operations()


def draw_pictures(trained: Trained, how: Drawer, draw: Draw, path: Path) -> Path:
    """Draw, and write an array and pictures of it, maybe a film."""
    import numpy as np
    import torch

    from parnassus.report import image_grid, save_figure, save_film, scatter
    from parnassus.train.devices import choose_device

    if draw.compile:
        raise RunError("there is nothing to compile: this model writes no text")
    if getattr(how, "count", 1) < 1:
        raise RunError(f"count must be at least 1; got {getattr(how, 'count', 1)}")
    stepwise: Stepwise | None = getattr(how, "path", None)
    if draw.film and stepwise is None:
        raise RunError("there is no film to make: this model draws its samples at once, not step by step")
    model = trained.model.to(choose_device(draw.device))
    torch.manual_seed(draw.seed)
    with torch.no_grad():
        states = [state.cpu() for state in stepwise(model)] if draw.film and stepwise else [how(model).cpu()]
    path.parent.mkdir(parents=True, exist_ok=True)
    array = states[-1].numpy()
    columns = getattr(how, "columns", None)
    np.save(f"{path}.npy", array)
    save_figure(image_grid(array, columns=columns) if array.ndim == 4 else scatter(array[:, :2]), path)
    if draw.film:
        save_film(torch.stack(states), path, columns=columns)
    return path


def export(trained: Trained, folder: Path) -> Path:
    """Write weights.safetensors and config.json: the experiment, its settings, and what its model was built from."""
    _ = trained.model  # so that weights that are damaged or missing are told, not copied
    about = trained.folder.read_json("run.json")
    config = {key: about[key] for key in ("experiment", "title", "settings")}
    config["model"] = trained.folder.read_json("model.json")
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(trained.folder.path / "weights.safetensors", folder / "weights.safetensors")
    written = json.dumps(config, indent=2, ensure_ascii=False)
    (folder / "config.json").write_text(written + "\n", encoding="utf-8")
    return folder
