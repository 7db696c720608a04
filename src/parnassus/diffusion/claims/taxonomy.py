"""Claims about what each generative model can say of a density (book sec. 13.1)."""

import torch
from torch import Tensor, nn

from parnassus.adversarial.gan import GAN
from parnassus.atlas import Evidence, all_of, at_least, at_most, claim, close, raises, runs
from parnassus.diffusion.ddpm import DDPM
from parnassus.diffusion.oracles import MixtureOracle
from parnassus.diffusion.schedules import Schedule, cosine_schedule
from parnassus.flows.coupling import real_nvp
from parnassus.flows.flow import Flow, GaussianBase
from parnassus.flows.pixel_model import PixelModel
from parnassus.flows.pixel_rnn import pixel_rnn
from parnassus.flows.pixelcnn import pixelcnn
from parnassus.latent.decoders import BernoulliDecoder
from parnassus.latent.dense import flat_decoder, flat_encoder
from parnassus.latent.vae import VAE


@claim("B13.1-1")
def tractable_models_state_their_law() -> Evidence:
    """Exact: what PixelCNN, PixelRNN and a flow say of all examples makes one in total (book sec. 13.1)."""
    torch.manual_seed(0)
    pictures = all_pictures()
    flow = Flow(real_nvp(2, layers=4, width=16), GaussianBase((2,))).double()
    with torch.no_grad():
        for parameter in flow.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
        axis = torch.linspace(-10, 10, 301, dtype=torch.float64)
        density = flow.log_prob(torch.cartesian_prod(axis, axis)).exp()
        pixel_models: dict[str, PixelModel] = {"pixelcnn": pixelcnn((2, 3)), "pixel_rnn": pixel_rnn((2, 3))}
        return all_of(
            **{name: close(model.double().log_prob(pictures).exp().sum(), 1.0, atol=1e-10)
               for name, model in pixel_models.items()},
            flow=close(density.sum() * (axis[1] - axis[0]) ** 2, 1.0, atol=1e-3),
        )  # fmt: skip


@claim("B13.1-1")
def a_vae_bounds_its_law() -> Evidence:
    """Approximate: a VAE's bounds make less than one in total, importance sampling all but one (book sec. 13.1)."""
    torch.manual_seed(0)
    model = VAE(flat_encoder((2, 3), 4, width=16), BernoulliDecoder(flat_decoder(2, (2, 3), width=16)), 2).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)  # away from a law that does not need its code
        pictures = all_pictures().double()
        terms = model.terms(pictures.repeat(500, 1, 1))
        bound = -terms.negative_elbo.reshape(500, -1).mean(0)
    found = model.log_prob(pictures, samples=5_000)
    return all_of(
        bound=at_most(bound, found + 0.02),
        total_of_the_bounds=at_most(bound.exp().sum(), 0.99),
        total_by_importance_sampling=close(found.exp().sum(), 1.0, atol=0.02),
    )


@claim("B13.1-1")
def a_diffusion_model_bounds_its_law() -> Evidence:
    """Approximate: a diffusion model's bounds make less than one, even with the best denoiser (book eq. 13.48)."""
    torch.manual_seed(0)
    schedule = cosine_schedule(10)
    model = DDPM(ExactDenoiser(schedule), (1,), schedule=schedule)
    axis = torch.linspace(-4, 4, 81)[:, None]
    bound = torch.stack([model.log_prob(axis) for _ in range(100)]).mean(0)
    total = bound.exp().sum() * (axis[1] - axis[0])
    return all_of(less_than_one=at_most(total, 0.9), not_nothing=at_least(total, 0.2))


@claim("B13.1-1")
def a_gan_only_samples() -> Evidence:
    """Implicit: a GAN draws examples but has no density to ask for; the others have both verbs (book sec. 13.1)."""
    torch.manual_seed(0)
    gan = GAN(nn.Linear(2, 3), nn.Linear(3, 1), noise=2)
    flow, pixels, verb = Flow(real_nvp(2), GaussianBase((2,))), pixelcnn((3, 3)), "log_prob"
    with torch.no_grad():
        return all_of(
            gan_samples=close(torch.tensor(gan.sample(5).shape), torch.tensor([5, 3])),
            gan_has_no_density=raises(AttributeError, lambda: getattr(gan, verb)(torch.zeros(5, 3))),
            flow_has_both=runs(lambda: flow.log_prob(flow.sample(5)), unless=AttributeError),
            pixels_have_both=runs(lambda: pixels.log_prob(pixels.sample(5)), unless=AttributeError),
        )


def all_pictures() -> Tensor:
    """The 64 pictures of 2 × 3 bits."""
    return torch.cartesian_prod(*[torch.arange(2)] * 6).reshape(-1, 2, 3)


class ExactDenoiser(nn.Module):
    """The best denoiser of two bells on a line, as a module."""

    def __init__(self, schedule: Schedule) -> None:
        super().__init__()
        self.oracle = MixtureOracle(schedule, torch.tensor([[-1.0], [0.8]]), torch.tensor([0.4, 0.3]))

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        return self.oracle(x, t)
