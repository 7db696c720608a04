"""The programs of exported autoencoders and latent-variable models: encoders, decoders, steps of samplers."""

from functools import partial
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

from parnassus.latent.autoencoders.autoencoder import Autoencoder
from parnassus.latent.energy_based.helmholtz_machine import HelmholtzMachine
from parnassus.latent.energy_based.restricted_boltzmann_machine import RBM
from parnassus.latent.variational.conditional_vae import ConditionalVAE
from parnassus.latent.variational.ladder_vae import LadderVAE
from parnassus.latent.variational.predictive_vae import PredictiveVAE
from parnassus.latent.variational.vae import VAE
from parnassus.latent.vector_quantised.vq_vae import VQVAE
from parnassus.train.export import Program, Programs, ProgramsOf, fact

if TYPE_CHECKING:
    from torch.distributions import Distribution

    from parnassus.train.trained import TrainedRun

ENCODED = "pixels in [0, 1] → mean and log-variance of the code"
DECODED = "codes, samples of N(0, I) for new images → mean of the pixels"


def vae_programs(model: VAE, trained: "TrainedRun") -> Programs:
    x, z = _examples(trained, model.latent_dim)
    return {
        "encode": Program(model.posterior_parameters, {"x": x}, ("mean", "log_variance"), ENCODED),
        "decode": Program(model.decode, {"z": z}, ("x",), DECODED),
    }


def conditional_vae_programs(model: ConditionalVAE, trained: "TrainedRun") -> Programs:
    x, z = _examples(trained, model.latent_dim)
    label = torch.tensor([0, model.classes - 1])

    def encode(x: Tensor, label: Tensor) -> tuple[Tensor, ...]:
        return model.condition_on(label).posterior_parameters(x)

    def decode(z: Tensor, label: Tensor) -> Tensor:
        return model.condition_on(label).decode(z)

    return {
        "encode": Program(encode, {"x": x, "label": label}, ("mean", "log_variance"), f"{ENCODED}, given the class"),
        "decode": Program(decode, {"z": z, "label": label}, ("x",), f"{DECODED}, given the class"),
    }


def predictive_vae_programs(model: PredictiveVAE, trained: "TrainedRun") -> Programs:
    x, _ = _examples(trained, model.vae.latent_dim)
    about = "pixels in [0, 1] → probabilities of the `classes` in config.json"
    return {
        **vae_programs(model.vae, trained),
        "probabilities": Program(model.class_probabilities, {"x": x}, ("probabilities",), about),
    }


def autoencoder_programs(model: Autoencoder, trained: "TrainedRun") -> Programs:
    x = torch.rand(2, *fact(trained, "shape"))
    with torch.no_grad():
        z = model.encode(x)
    return {
        "encode": Program(model.encode, {"x": x}, ("z",), "pixels in [0, 1] → code"),
        "decode": Program(model.decode, {"z": z}, ("x",), "code → pixels"),
    }


def ladder_vae_programs(model: LadderVAE, trained: "TrainedRun") -> Programs:
    x = torch.rand(2, *fact(trained, "shape"))
    with torch.no_grad():
        sizes = [each.mean.shape[1] for each in model.encode_levels(x)]
    noise = {f"noise_{level}": torch.randn(2, size) for level, size in reversed(list(enumerate(sizes)))}
    about = "samples of N(0, I) for each level, the highest first → mean of the pixels of a new image"
    return {
        "reconstruct": Program(model.reconstruct, {"x": x}, ("x_hat",), "pixels in [0, 1] → reconstruction"),
        "sample": Program(partial(_ladder_sample, model), noise, ("x",), about),
    }


def _ladder_sample(model: LadderVAE, z: Tensor, *noise: Tensor) -> Tensor:
    for head, each in zip(reversed(list(model.prior_heads)), noise, strict=True):
        mean, log_variance = head(z).chunk(2, dim=-1)
        z = mean + (log_variance / 2).exp() * each
    decoded: Distribution = model.decoder(z)
    return decoded.mean


def vq_vae_programs(model: VQVAE, trained: "TrainedRun") -> Programs:
    x = torch.rand(2, *fact(trained, "shape"))
    with torch.no_grad():
        indices = model.encode(x)
    return {
        "encode": Program(model.encode, {"x": x}, ("indices",), "pixels in [0, 1] → indices of codes"),
        "decode": Program(model.decode, {"indices": indices}, ("x",), "indices of codes → pixels"),
    }


def rbm_programs(model: RBM, _: "TrainedRun") -> Programs:
    hidden, visible = model.weight.shape
    v = (torch.rand(2, visible) < 0.5).float()

    def gibbs_step(v: Tensor, hidden_uniform: Tensor, visible_uniform: Tensor) -> Tensor:
        h = (hidden_uniform < model.hidden_logits(v).sigmoid()).float()
        return (visible_uniform < model.visible_logits(h).sigmoid()).float()

    inputs = {"v": v, "hidden_uniform": torch.rand(2, hidden), "visible_uniform": torch.rand(2, visible)}
    step = "visible units, and uniform random numbers → visible units after one step of Gibbs sampling"
    return {
        "free_energy": Program(model.free_energy, {"v": v}, ("energy",), "visible units → free energy"),
        "gibbs_step": Program(gibbs_step, inputs, ("v_next",), step),
    }


def helmholtz_machine_programs(model: HelmholtzMachine, _: "TrainedRun") -> Programs:
    def sample(*uniform: Tensor) -> Tensor:
        state = (uniform[0] < model.top_bias.sigmoid()).float()
        for layer, each in zip(reversed(list(model.down)), uniform[1:], strict=True):
            state = (each < layer(state).sigmoid()).float()
        return state

    def recognise(x: Tensor) -> Tensor:
        probabilities: Tensor = model.up[0](x).sigmoid()
        return probabilities

    uniform = {f"uniform_{level}": torch.rand(2, size) for level, size in reversed(list(enumerate(model.sizes)))}
    about = "uniform random numbers for the units of each layer, the highest first → visible units of a new example"
    x = (torch.rand(2, model.sizes[0]) < 0.5).float()
    return {
        "sample": Program(sample, uniform, ("x",), about),
        "recognise": Program(recognise, {"x": x}, ("p",), "visible units → probabilities of the first hidden units"),
    }


def _examples(trained: "TrainedRun", latent_dim: int) -> tuple[Tensor, Tensor]:
    return torch.rand(2, *fact(trained, "shape")), torch.randn(2, latent_dim)


PROGRAMS = cast(
    "dict[type[nn.Module], ProgramsOf]",
    {
        VAE: vae_programs,
        ConditionalVAE: conditional_vae_programs,
        PredictiveVAE: predictive_vae_programs,
        Autoencoder: autoencoder_programs,
        LadderVAE: ladder_vae_programs,
        VQVAE: vq_vae_programs,
        RBM: rbm_programs,
        HelmholtzMachine: helmholtz_machine_programs,
    },
)
