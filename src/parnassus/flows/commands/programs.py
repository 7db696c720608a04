"""The programs of exported flows and pixel models: log-densities, samples from noise, logits of pixels."""

from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

from parnassus.flows.flow import Flow, InverseTransform
from parnassus.flows.images.dequantisation import DequantisedFlow, dequantise
from parnassus.flows.pixels.pixel_model import PixelModel
from parnassus.flows.residual.continuous_flow import ContinuousTransform
from parnassus.flows.residual.residual_flow import InvertibleResidual
from parnassus.train.export import Program, Programs, ProgramsOf

if TYPE_CHECKING:
    from torch.distributions import Distribution

    from parnassus.train.trained import TrainedRun


def flow_programs(model: Flow, _: "TrainedRun") -> Programs:
    """Samples T(z) for noise z of the base, and log p(x).

    The loops of continuous and of residual flows end by a tolerance: their programs are the networks inside the loops.
    """
    if isinstance(model.transform, ContinuousTransform):
        return velocity_programs(model.transform, model)
    modules = list(cast("nn.Module", model.transform).modules())
    residuals = [each for each in modules if isinstance(each, InvertibleResidual)]
    if residuals:
        return residual_programs(residuals, model)
    base: Distribution = model.base()
    z = base.sample(torch.Size([2]))
    with torch.no_grad():
        x, _log_det = model.transform(z)

    def sample(z: Tensor) -> Tensor:
        return model.transform(z)[0]

    return {
        "sample": Program(sample, {"z": z}, ("x",), "samples of the base, by default N(0, I) → new examples"),
        "log_prob": Program(model.log_prob, {"x": x}, ("log_prob",), "examples → logarithm of their density, in nats"),
    }


def velocity_programs(transform: ContinuousTransform, model: Flow) -> Programs:
    z = model.base().sample(torch.Size([2]))

    def velocity(z: Tensor, t: Tensor) -> Tensor:
        found: Tensor = transform.field.network(torch.cat([z, t], 1))  # type: ignore[operator]  # a TimeDependentField
        return found

    about = "z and its time t → dz/dt; from samples of N(0, I) at t = 0 a solver reaches new examples at t = 1"
    inputs = {"z": z, "t": torch.tensor([[0.25], [0.75]])}
    return {"velocity": Program(velocity, inputs, ("velocity",), about)}


def residual_programs(residuals: list[InvertibleResidual], model: Flow) -> Programs:
    z = model.base().sample(torch.Size([2]))
    about = "g of a residual map z → z + g(z); its inverse is the limit of z ← x − g(z)"
    order = "data to noise" if isinstance(model.transform, InverseTransform) else "noise to data"
    return {
        f"residual_{index}": Program(each.branch, {"z": z}, ("g",), f"{about}; number {index} from {order}")
        for index, each in enumerate(residuals)
    }


def dequantised_flow_programs(model: DequantisedFlow, trained: "TrainedRun") -> Programs:
    x = torch.rand(2, *model.shape)

    def log_prob(x: Tensor, uniform: Tensor) -> Tensor:
        return model.flow.log_prob(dequantise(x, uniform, levels=model.levels))

    about = "pixels in [0, 1] and uniform random numbers → logarithm of the density on the unit cube, in nats"
    return {
        "sample": flow_programs(model.flow, trained)["sample"],
        "log_prob": Program(log_prob, {"x": x, "uniform": torch.rand_like(x)}, ("log_prob",), about),
    }


def pixel_model_programs(model: PixelModel, _: "TrainedRun") -> Programs:
    x = torch.arange(2 * model.shape[0] * model.shape[1]).view(2, *model.shape) % model.levels
    about = f"images of integers from 0 to {model.levels - 1} → logits of each pixel given those before it"
    return {"logits": Program(model, {"x": x}, ("logits",), about)}


PROGRAMS = cast(
    "dict[type[nn.Module], ProgramsOf]",
    {Flow: flow_programs, DequantisedFlow: dequantised_flow_programs, PixelModel: pixel_model_programs},
)
