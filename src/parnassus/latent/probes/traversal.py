"""Latent traversal: one coordinate of a VAE's code is varied (book sec. 5.2)."""

from typing import Annotated, Protocol, cast, runtime_checkable

import torch
from torch import Tensor

from parnassus.atlas.decorators import probe
from parnassus.data import open_images
from parnassus.latent.latent_space.interpolation import latent_traversal
from parnassus.latent.variational.aggregated_posterior import model_rate_per_unit
from parnassus.latent.variational.vae import VAE
from parnassus.train.trained import TrainedRun
from parnassus.widgets import Answer, Bars, FloatSlider, Images, IntSlider, Numbers

COUNT = 7  # images of a traversal


@runtime_checkable
class _Settings(Protocol):
    data: str
    image_size: int | None
    use_gaussian_decoder: bool


def _settings(trained: TrainedRun) -> _Settings:
    return cast("_Settings", trained.experiment)


def _vae(trained: TrainedRun) -> VAE:
    return cast("VAE", trained.model)


def _test_images(trained: TrainedRun) -> Tensor:
    """Test images as the model was trained on them: binary, or grey."""
    x = open_images(_settings(trained).data, _settings(trained).image_size).test.x[:500]
    if _settings(trained).use_gaussian_decoder:
        return x
    return torch.bernoulli(x, generator=torch.Generator().manual_seed(0))


def _num_examples(trained: TrainedRun) -> int:
    return len(trained.compute_once(_test_images))


def _rates(trained: TrainedRun) -> Tensor:
    """The mean rate of each coordinate over the test images, in nats."""
    return model_rate_per_unit(trained.compute_once(_vae), trained.compute_once(_test_images))


def _latent_dim(trained: TrainedRun) -> int:
    return trained.compute_once(_vae).latent_dim


@probe("vae")
@torch.no_grad()
def traverse_code(
    trained: TrainedRun,
    example: Annotated[int, IntSlider("test image", 1, _num_examples)] = 1,
    rank: Annotated[int, IntSlider("coordinate, by decreasing rate", 1, _latent_dim)] = 1,
    value: Annotated[float, FloatSlider("its value, in standard deviations of the prior", -4.0, 4.0)] = 0.0,
) -> list[Answer]:
    """A test image with one coordinate of its code varied from −3 to 3, the others fixed (book sec. 5.2).

    The coordinates with the largest rates change slant, stroke weight or topology. A coordinate that changes nothing
    has collapsed; its rate is 0.
    """
    model, rates = trained.compute_once(_vae), trained.compute_once(_rates)
    unit = int(rates.argsort(descending=True)[rank - 1])
    image = trained.compute_once(_test_images)[example - 1 : example]
    mean, log_variance = model.posterior_parameters(image)
    code = mean[0]
    changed = code.clone()
    changed[unit] = value
    traversal = latent_traversal(code, unit, count=COUNT)
    images = torch.cat([image, model.decode(torch.stack([code, changed]))])
    name = _coordinate_name(unit)
    captions = ["image", f"reconstruction, {name} = {float(code[unit]):.2f}", f"{name} = {value:.2f}"]
    steps = [f"{float(each):g}" for each in traversal[:, unit]]
    values: dict[str, float | str] = {
        "rate of this coordinate": f"{float(rates[unit]):.2f} nats",
        "rate of the code": f"{float(rates.sum()):.2f} nats",
        "μ of this image": float(mean[0, unit]),
        "σ of this image": float((log_variance[0, unit] / 2).exp()),
    }
    order = rates.argsort(descending=True)[:20]
    bars = Bars(
        "Rate of each coordinate, nats", [_coordinate_name(each) for each in order.tolist()], rates[order],
        marked=rank - 1 if rank <= len(order) else None,
    )  # fmt: skip
    return [
        Images("Image and reconstructions", images, captions),
        Images(f"Coordinate {name} from −3 to 3", model.decode(traversal), steps),
        bars,
        Numbers("Rate and posterior", values),
    ]


def _coordinate_name(unit: int) -> str:
    """The name z with its index as a subscript, counted from 1."""
    return "z" + str(unit + 1).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))
