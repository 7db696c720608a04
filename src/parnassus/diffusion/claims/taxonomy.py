"""Claims about the likelihood of generative models: exact, bounded or implicit (book sec. 13.1)."""

import torch
from torch import Tensor, nn

from parnassus.adversarial.gan import GAN
from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal, raises, runs
from parnassus.diffusion.chain.exact_denoisers import MixtureDenoiser
from parnassus.diffusion.chain.schedules import Schedule, cosine_schedule
from parnassus.diffusion.models.ddpm import DDPM
from parnassus.flows.coupling.real_nvp import real_nvp
from parnassus.flows.flow import Flow, GaussianBase
from parnassus.flows.pixels.pixel_model import PixelModel
from parnassus.flows.pixels.pixel_rnn import pixel_rnn
from parnassus.flows.pixels.pixelcnn import pixelcnn
from parnassus.latent.autoencoders.dense_networks import mlp_decoder, mlp_encoder
from parnassus.latent.variational.decoders import BernoulliDecoder
from parnassus.latent.variational.vae import VAE


@claim("B13.1-1")
def tractable_models_have_an_exact_likelihood() -> Evidence:
    """Exact: the probabilities of PixelCNN and PixelRNN and the density of a flow sum to 1 (book sec. 13.1)."""
    torch.manual_seed(0)
    images = all_binary_images()
    flow = Flow(real_nvp(2, num_layers=4, width=16), GaussianBase((2,))).double()
    with torch.no_grad():
        for parameter in flow.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
        axis = torch.linspace(-10, 10, 301, dtype=torch.float64)
        density = flow.log_prob(torch.cartesian_prod(axis, axis)).exp()
        pixel_models: dict[str, PixelModel] = {"pixelcnn": pixelcnn((2, 3)), "pixel_rnn": pixel_rnn((2, 3))}
        return all_of(
            **{name: close(model.double().log_prob(images).exp().sum(), 1.0, atol=1e-10)
               for name, model in pixel_models.items()},
            flow=close(density.sum() * (axis[1] - axis[0]) ** 2, 1.0, atol=1e-3),
        )  # fmt: skip


@claim("B13.1-1")
def a_vae_bounds_its_likelihood() -> Evidence:
    """Approximate: the exponentiated bounds of a VAE sum to less than 1, importance sampling to 1 (book sec. 13.1)."""
    torch.manual_seed(0)
    model = VAE(mlp_encoder((2, 3), 4, width=16), BernoulliDecoder(mlp_decoder(2, (2, 3), width=16)), 2).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)  # so that the distribution depends on the latent variables
        images = all_binary_images().double()
        terms = model.terms(images.repeat(500, 1, 1))
        bound = -terms.negative_elbo.reshape(500, -1).mean(0)
    log_prob = model.log_prob(images, samples=5_000)
    return all_of(
        bound=less_equal(bound, log_prob + 0.02),
        total_of_the_bounds=less_equal(bound.exp().sum(), 0.99),
        total_by_importance_sampling=close(log_prob.exp().sum(), 1.0, atol=0.02),
    )


@claim("B13.1-1")
def a_diffusion_model_bounds_its_likelihood() -> Evidence:
    """Approximate: the exponentiated bound of a diffusion model integrates to less than 1 (book eq. 13.48)."""
    torch.manual_seed(0)
    schedule = cosine_schedule(10)
    model = DDPM(ExactDenoiser(schedule), (1,), schedule=schedule)
    axis = torch.linspace(-4, 4, 81)[:, None]
    bound = torch.stack([model.log_prob(axis) for _ in range(100)]).mean(0)
    total = bound.exp().sum() * (axis[1] - axis[0])
    return all_of(below_one=less_equal(total, 0.9), above_a_fifth=greater_equal(total, 0.2))


@claim("B13.1-1")
def a_gan_has_no_likelihood() -> Evidence:
    """Implicit: a GAN samples but has no log_prob; flows and pixel models have both methods (book sec. 13.1)."""
    torch.manual_seed(0)
    gan = GAN(nn.Linear(2, 3), nn.Linear(3, 1), latent_dim=2)
    flow, pixels, method = Flow(real_nvp(2), GaussianBase((2,))), pixelcnn((3, 3)), "log_prob"
    with torch.no_grad():
        return all_of(
            gan_samples=close(torch.tensor(gan.sample(5).shape), torch.tensor([5, 3])),
            gan_has_no_density=raises(AttributeError, lambda: getattr(gan, method)(torch.zeros(5, 3))),
            flow_has_both=runs(lambda: flow.log_prob(flow.sample(5)), unless=AttributeError),
            pixels_have_both=runs(lambda: pixels.log_prob(pixels.sample(5)), unless=AttributeError),
        )


def all_binary_images() -> Tensor:
    """The 64 binary images of 2 × 3 pixels."""
    return torch.cartesian_prod(*[torch.arange(2)] * 6).reshape(-1, 2, 3)


class ExactDenoiser(nn.Module):
    """The optimal denoiser of a mixture of two Gaussians, as a module."""

    def __init__(self, schedule: Schedule) -> None:
        super().__init__()
        self.oracle = MixtureDenoiser(schedule, torch.tensor([[-1.0], [0.8]]), torch.tensor([0.4, 0.3]))

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        return self.oracle(x, t)
