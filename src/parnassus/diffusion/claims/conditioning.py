"""Claims about conditioning mechanisms and denoising networks (book secs. 13.2.4, 13.3)."""

from copy import deepcopy

import torch
from torch import Tensor, nn

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal
from parnassus.diffusion.models.ddpm import DDPM
from parnassus.diffusion.networks.conditioning import (
    Concatenation,
    ConditionedMLP,
    CrossAttention,
    FiLM,
    Mechanism,
    Multiplication,
)
from parnassus.diffusion.networks.diffusion_transformer import DiffusionTransformer
from parnassus.diffusion.networks.mlp_denoisers import TimeMLP
from parnassus.diffusion.networks.unet import UNet

MECHANISMS: dict[str, Mechanism] = {
    "concatenation": Concatenation,
    "multiplication": Multiplication,
    "modulation": FiLM,
    "attention": CrossAttention,
}


@claim("B13.3-3")
def neutral_parameters_give_the_unconditional_network() -> Evidence:
    """With scale 1, shift 0, factor 1 or zero attention output the network equals the unconditional one."""
    parts = {}
    for name, mechanism in MECHANISMS.items():
        torch.manual_seed(0)
        network = ConditionedMLP(TimeMLP(2, 16), 3, mechanism).double()
        neutral = deepcopy(network.mechanisms.state_dict())
        x, t, label = torch.randn(30, 2).double(), torch.randint(100, (30,)), torch.arange(30) % 3
        for parameter in network.mechanisms.parameters():
            nn.init.normal_(parameter)
        parts[f"{name}_random"] = greater_equal((network(x, t, label) - network.inner(x, t)).abs().amax(), 0.1)
        network.mechanisms.load_state_dict(neutral)
        parts[f"{name}_neutral"] = close(network(x, t, label), network.inner(x, t), atol=1e-12)
    return all_of(**parts)


@claim("B13.2.4-8")
def the_initial_loss_is_one_per_pixel() -> Evidence:
    """With a last layer initialised at zero the output is zero and the initial loss is E‖ε‖² = 1 per pixel."""
    return all_of(
        u_net=close(_initial_loss(UNet((1, 8, 8), 8)), 1.0, atol=0.02),
        transformer=close(_initial_loss(DiffusionTransformer((1, 8, 8), 16, blocks=1)), 1.0, atol=0.02),
    )


@torch.no_grad()
def _initial_loss(network: nn.Module) -> Tensor:
    torch.manual_seed(0)
    return DDPM(network, (1, 8, 8)).loss(torch.rand(300, 1, 8, 8))
