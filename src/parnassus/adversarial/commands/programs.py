"""The programs of exported generative adversarial networks."""

from typing import cast

import torch
from torch import nn

from parnassus.adversarial.gan import GAN
from parnassus.train.export import Program, Programs, ProgramsOf
from parnassus.train.trained import TrainedRun


def gan_programs(model: GAN, _: TrainedRun) -> Programs:
    z = torch.randn(2, model.latent_dim)
    with torch.no_grad():
        x = model.generator(z)
    return {
        "generate": Program(model.generator, {"z": z}, ("x",), "samples of N(0, I) → new examples"),
        "discriminate": Program(model.logits, {"x": x}, ("logit",), "examples → logit of being a real example"),
    }


PROGRAMS = cast("dict[type[nn.Module], ProgramsOf]", {GAN: gan_programs})
