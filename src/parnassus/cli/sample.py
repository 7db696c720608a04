"""`parnassus sample RUN`: draw from a trained generative model."""

import importlib
import sys
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import tyro

from parnassus.atlas.index import Atlas
from parnassus.cli.places import RUNS
from parnassus.cli.run import experiment_from
from parnassus.train.errors import RunError
from parnassus.train.folder import RunFolder, find_run

if TYPE_CHECKING:
    from torch import Tensor, nn


class Drawer(Protocol):
    """The `Sample` of an experiment: settings that know how to draw."""

    def __call__(self, model: "nn.Module", /) -> "Tensor": ...


class Builder(Protocol):
    """An experiment that can build its model again."""

    def model(self, **facts: object) -> "nn.Module": ...


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
    about = folder.read_json("run.json")
    entry = Atlas().experiment(str(about["experiment"]))
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
    path = draw_samples(folder, experiment_from(module, about), given.sample, given.draw)
    print(f"samples: {path}.npy\npicture: {path}.png")
    return 0


def draw_samples(folder: RunFolder, experiment: object, how: Drawer, draw: Draw) -> Path:
    """Draw as `how` says and write the samples beside the run; returns their path without ending."""
    import numpy as np
    import torch

    from parnassus.report import image_grid, save_figure, scatter
    from parnassus.train.devices import choose_device

    model = load_model(folder, experiment).to(choose_device(draw.device))
    torch.manual_seed(draw.seed)
    with torch.no_grad():
        samples = how(model)
    path = draw.out or folder.path / "samples" / f"seed-{draw.seed}"
    if path.suffix in (".npy", ".png", ".svg"):
        path = path.with_suffix("")
    path.parent.mkdir(parents=True, exist_ok=True)
    array = samples.cpu().numpy()
    np.save(f"{path}.npy", array)
    save_figure(image_grid(array) if array.ndim == 4 else scatter(array[:, :2]), path)
    return path


def load_model(folder: RunFolder, experiment: object) -> "nn.Module":
    """The trained model of a finished run, in evaluation mode."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    weights = folder.path / "weights.safetensors"
    if not weights.exists():
        raise RunError(
            f"{folder.path.name} has no weights yet: it is {folder.status}; parnassus resume {folder.path.name}"
        )
    model = cast("Builder", experiment).model(**folder.read_json("model.json"))
    try:
        model.load_state_dict(load_file(weights))
    except (SafetensorError, RuntimeError) as error:
        raise RunError(f"{weights} does not fit the model: {str(error).splitlines()[0]}") from None
    return model.eval()
