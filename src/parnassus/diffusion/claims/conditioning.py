"""Claims about the ways to bring a condition in, and about the networks that hear it (book secs. 13.2.4, 13.3)."""

from copy import deepcopy

import torch
from torch import Tensor, nn

from parnassus.atlas import Evidence, all_of, at_least, claim, close
from parnassus.diffusion.conditioning import (
    Concatenation,
    ConditionedMLP,
    CrossAttention,
    FiLM,
    Mechanism,
    Multiplication,
)
from parnassus.diffusion.ddpm import DDPM
from parnassus.diffusion.denoisers import TimeMLP
from parnassus.diffusion.transformer import DiffusionTransformer
from parnassus.diffusion.unet import UNet

MECHANISMS: dict[str, Mechanism] = {
    "concatenation": Concatenation,
    "multiplication": Multiplication,
    "modulation": FiLM,
    "attention": CrossAttention,
}


@claim("B13.3-3")
def neutral_settings_give_the_unconditional_network() -> Evidence:
    """Scale 1, shift 0, factor 1, an attention that adds nothing: the network is the one without a condition."""
    parts = {}
    for name, mechanism in MECHANISMS.items():
        torch.manual_seed(0)
        network = ConditionedMLP(TimeMLP(2, 16), 3, mechanism).double()
        neutral = deepcopy(network.mechanisms.state_dict())
        x, t, label = torch.randn(30, 2).double(), torch.randint(100, (30,)), torch.arange(30) % 3
        for parameter in network.mechanisms.parameters():
            nn.init.normal_(parameter)
        parts[f"{name}_is_heard"] = at_least((network(x, t, label) - network.inner(x, t)).abs().amax(), 0.1)
        network.mechanisms.load_state_dict(neutral)
        parts[f"{name}_neutral"] = close(network(x, t, label), network.inner(x, t), atol=1e-12)
    return all_of(**parts)


@claim("B13.2.4-8")
def an_untrained_network_loses_one_a_pixel() -> Evidence:
    """A last layer that begins at zero finds no noise, and E ‖ε‖² is 1 a pixel: training starts from that."""
    return all_of(
        u_net=close(_first_loss(UNet((1, 8, 8), 8)), 1.0, atol=0.02),
        transformer=close(_first_loss(DiffusionTransformer((1, 8, 8), 16, blocks=1)), 1.0, atol=0.02),
    )


@torch.no_grad()
def _first_loss(network: nn.Module) -> Tensor:
    torch.manual_seed(0)
    return DDPM(network, (1, 8, 8)).loss(torch.rand(300, 1, 8, 8))
