"""One coordinate of a VAE's code, moved by hand (book sec. 5.2)."""

from typing import Annotated, cast

import torch
from torch import Tensor

from parnassus.atlas.marks import probe
from parnassus.data import open_images
from parnassus.latent import walks
from parnassus.latent.aggregate import rate_by_unit
from parnassus.latent.experiments import vae
from parnassus.latent.vae import VAE
from parnassus.touch import Answer, Bars, Images, Numbers, Real, Whole
from parnassus.train.trained import Trained

COUNT = 7  # images along the walk


def _experiment(trained: Trained) -> vae.Experiment:
    return cast("vae.Experiment", trained.experiment)


def _model(trained: Trained) -> VAE:
    return cast("VAE", trained.model)


def _unseen(trained: Trained) -> Tensor:
    """Unseen images as the model knows them: black and white, unless it was trained on grey ones."""
    x = open_images(_experiment(trained).data, _experiment(trained).size).test.x[:500]
    if _experiment(trained).grey:
        return x
    return torch.bernoulli(x, generator=torch.Generator().manual_seed(0))


def _examples(trained: Trained) -> int:
    return len(trained.once(_unseen))


@torch.no_grad()
def _rates(trained: Trained) -> Tensor:
    """What each coordinate says of an unseen image on average, in nats."""
    return rate_by_unit(*trained.once(_model).moments(trained.once(_unseen)))


def _coordinates(trained: Trained) -> int:
    return trained.once(_model).latent


@probe("vae")
@torch.no_grad()
def traverse_a_code(
    trained: Trained,
    example: Annotated[int, Whole("unseen image", 1, _examples)] = 1,
    rank: Annotated[int, Whole("coordinate, the most telling first", 1, _coordinates)] = 1,
    value: Annotated[float, Real("its value, in prior deviations", -4.0, 4.0)] = 0.0,
) -> list[Answer]:
    """An unseen image with one coordinate of its code moved from −3 to 3, the others kept (book sec. 5.2).

    Find out what the most telling coordinates do: lean, thicken, close a loop. Then go down the list: a
    coordinate that does nothing at all has collapsed, and its rate is 0.
    """
    model, rates = trained.once(_model), trained.once(_rates)
    unit = int(rates.argsort(descending=True)[rank - 1])
    image = trained.once(_unseen)[example - 1 : example]
    mean, log_variance = model.moments(image)
    code = mean[0]
    changed = code.clone()
    changed[unit] = value
    walk = walks.traverse(code, unit, count=COUNT)
    seen = torch.cat([image, model.decode(torch.stack([code, changed]))])
    name = _name(unit)
    names = ["image", f"its copy, {name} = {float(code[unit]):.2f}", f"{name} = {value:.2f}"]
    steps = [f"{float(each):g}" for each in walk[:, unit]]
    numbers: dict[str, float | str] = {
        "this coordinate says": f"{float(rates[unit]):.2f} nats",
        "all say": f"{float(rates.sum()):.2f} nats",
        "for this image μ": float(mean[0, unit]),
        "for this image σ": float((log_variance[0, unit] / 2).exp()),
    }
    order = rates.argsort(descending=True)[:20]
    bars = Bars(
        "What each coordinate says, nats", [_name(each) for each in order.tolist()], rates[order],
        marked=rank - 1 if rank <= len(order) else None,
    )  # fmt: skip
    return [
        Images("The image and its copies", seen, names),
        Images(f"Coordinate {name} from −3 to 3", model.decode(walk), steps),
        bars,
        Numbers("How much it says", numbers),
    ]


def _name(unit: int) -> str:
    """The coordinate as z with its number, counted from 1, lowered."""
    return "z" + str(unit + 1).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))
