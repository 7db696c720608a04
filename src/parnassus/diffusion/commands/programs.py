"""The programs of exported diffusion models: the network, and the step of a sampler."""

from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

from parnassus.diffusion.chain.forward_process import extract
from parnassus.diffusion.chain.gaussian_posterior import posterior_variance
from parnassus.diffusion.models.ddpm import DDPM
from parnassus.diffusion.models.score_model import ScoreModel
from parnassus.diffusion.models.score_sde import ScoreSDE
from parnassus.diffusion.models.variational_diffusion import VariationalDiffusion
from parnassus.train.export import Program, Programs, ProgramsOf

if TYPE_CHECKING:
    from parnassus.train.trained import TrainedRun


def ddpm_programs(model: DDPM, _: "TrainedRun") -> Programs:
    """The predicted noise, and a step of the DDPM sampler; t counts from 0."""
    x, steps = torch.randn(2, *model.shape), len(model.schedule)
    t = torch.tensor([steps - 1, steps // 2])
    label = {"label": torch.tensor([0, model.classes])} if model.classes else {}
    given = f"; label {model.classes} is the unconditional model" if model.classes else ""
    alpha, alpha_bar = model.schedule.alpha, model.schedule.alpha_bar
    x_factor, std = alpha.rsqrt(), posterior_variance(model.schedule).sqrt()
    noise_factor = -(1 - alpha) / ((1 - alpha_bar) * alpha).sqrt()

    def step(x: Tensor, t: Tensor, z: Tensor, *label: Tensor) -> Tensor:
        noise: Tensor = model.denoiser(x, t, *label)
        mean = extract(x_factor, t, x) * x + extract(noise_factor, t, x) * noise
        return mean + extract(std, t, x) * z

    walk = (
        f"x_t, t from {steps - 1} to 0, z from N(0, I) (0 in the last step) → x_(t − 1): begin with x from N(0, I), "
        f"{steps} steps lead to a new example{given}"
    )
    return {
        "noise": Program(model.denoiser, {"x": x, "t": t, **label}, ("noise",), f"x_t and t → the noise in x_t{given}"),
        "step": Program(step, {"x": x, "t": t, "z": torch.randn_like(x), **label}, ("x_next",), walk),
    }


def score_model_programs(model: ScoreModel, _: "TrainedRun") -> Programs:
    inputs = {"x": torch.randn(2, *model.shape), "t": torch.tensor([len(model.levels) - 1, 0])}
    levels = ", ".join(f"{level:.4g}" for level in model.levels.tolist())
    about = f"x and the index t of its noise level → score; the noise levels are {levels}"
    return {"score": Program(model.score, inputs, ("score",), about)}


def score_sde_programs(model: ScoreSDE, _: "TrainedRun") -> Programs:
    inputs = {"x": torch.randn(2, *model.shape), "t": torch.tensor([1.0, 0.5])}
    about = f"x and its time from {model.t_min:.4g} to 1 → score"
    return {"score": Program(model.score, inputs, ("score",), about)}


def variational_diffusion_programs(model: VariationalDiffusion, _: "TrainedRun") -> Programs:
    t = torch.tensor([1.0, 0.5])

    def noise(z: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
        level = model.level(t)[0]
        return model.denoiser(z, level), level

    about = "z_t and t in [0, 1] → the noise in z_t, and the logarithm γ(t) of its noise-to-signal ratio"
    return {"noise": Program(noise, {"z": torch.randn(2, *model.shape), "t": t}, ("noise", "gamma"), about)}


PROGRAMS = cast(
    "dict[type[nn.Module], ProgramsOf]",
    {
        DDPM: ddpm_programs,
        ScoreModel: score_model_programs,
        ScoreSDE: score_sde_programs,
        VariationalDiffusion: variational_diffusion_programs,
    },
)
