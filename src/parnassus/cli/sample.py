"""`parnassus sample RUN`: draw from a trained generative model."""

import importlib
import sys
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import tyro

from parnassus.atlas.index import Atlas
from parnassus.cli.places import RUNS
from parnassus.runs.errors import RunError
from parnassus.runs.folder import find_run
from parnassus.train.trained import Trained

if TYPE_CHECKING:
    from torch import Tensor, nn


class Drawer(Protocol):
    """The `Sample` of an experiment: settings that know how to draw, and maybe how many `columns` the picture has."""

    def __call__(self, model: "nn.Module", /) -> "Tensor": ...


@dataclass(frozen=True)
class Draw:
    """How to draw, whatever the model."""

    seed: int = 0  # another seed, other samples
    device: str = "auto"  # where to compute
    out: Path | None = None  # where to write NAME.npy, NAME.png and NAME.svg; by default RUN/samples/seed-N


def sample(arguments: list[str]) -> int:
    """Rebuild the model of a run, load its weights, draw, and write an array and a picture."""
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
    path = draw_samples(Trained.open(folder), given.sample, given.draw)
    print(f"samples: {path}.npy\npicture: {path}.png")
    return 0


def draw_samples(trained: Trained, how: Drawer, draw: Draw) -> Path:
    """Draw as `how` says and write the samples beside the run; returns their path without ending."""
    import numpy as np
    import torch

    from parnassus.report import image_grid, save_figure, scatter
    from parnassus.train.devices import choose_device

    model = trained.model.to(choose_device(draw.device))
    torch.manual_seed(draw.seed)
    with torch.no_grad():
        samples = how(model)
    path = draw.out or trained.folder.path / "samples" / f"seed-{draw.seed}"
    if path.suffix in (".npy", ".png", ".svg"):
        path = path.with_suffix("")
    path.parent.mkdir(parents=True, exist_ok=True)
    array = samples.cpu().numpy()
    np.save(f"{path}.npy", array)
    save_figure(
        image_grid(array, columns=getattr(how, "columns", None)) if array.ndim == 4 else scatter(array[:, :2]), path
    )
    return path
