"""Log-likelihood, rate and distortion of trained VAEs on a data set of images (book sec. 6.4, Diehl sec. 6)."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Annotated, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.data import DataError, open_grey_images, open_images
from parnassus.latent.likelihood_estimation.importance_sampling import importance_likelihood
from parnassus.latent.variational.decoders import BernoulliDecoder
from parnassus.latent.variational.elbo import VAETerms
from parnassus.latent.variational.vae import VAE
from parnassus.setting_types import GreyImageData
from parnassus.train import AtLeast, DeviceName, ModelCollection, NonNegative, Positive
from parnassus.train.devices import choose_device
from parnassus.train.sample_predict_evaluate import ResultRow
from parnassus.train.trained import TrainedRun


@dataclass(frozen=True)
class VAEEvaluate:
    """Log-likelihood, rate and distortion of the test images of a data set, for every VAE of a run."""

    data: GreyImageData = "mnist_mini"  # images: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # height and width to which images of a folder are resized
    num_examples: Positive[int] = 1_000  # maximum number of test images
    num_importance_samples: Annotated[int, AtLeast(2)] = 200  # importance samples per image
    seed: NonNegative[int] = 0  # seed of the binarisation and of the importance samples
    device: DeviceName = "auto"  # device to use

    def __call__(self, runs: Sequence[TrainedRun]) -> list[ResultRow]:
        return [
            {"run": trained.folder.path.name, **name, **self.evaluate(model)}
            for trained in runs
            for name, model in _named_models(trained.model)
        ]

    def evaluate(self, model: VAE) -> ResultRow:
        device = choose_device(self.device)
        model = deepcopy(model).to(device)
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            x = self.load_images(model).to(device)
            likelihood = importance_likelihood(model, x, samples=self.num_importance_samples)
            terms = evaluate_terms(model, x)
        return {
            "data": self.data,
            "num_examples": len(x),
            "num_importance_samples": self.num_importance_samples,
            "nll": likelihood.nll,
            "nll_error": likelihood.nll_error,
            "effective_samples": float(likelihood.effective_sample_size.median()),
            "negative_elbo": float(terms.negative_elbo.mean()),
            "rate": float(terms.rate.mean()),
            "distortion": float(terms.distortion.mean()),
        }

    def load_images(self, model: VAE) -> Tensor:
        """The test images, binarised at random for a Bernoulli decoder; they must have the shape of the model's."""
        shape = tuple(model.decode(model.prior().mean[None]).shape[1:])
        load = open_grey_images if shape[0] == 1 else open_images
        x = load(self.data, self.image_size).test.x[: self.num_examples]
        if x.shape[1:] != shape:
            raise DataError(f"images must have the model's shape {shape}; those of {self.data} have {(*x.shape[1:],)}")
        return torch.bernoulli(x) if isinstance(model.decoder, BernoulliDecoder) else x


def _named_models(model: nn.Module) -> list[tuple[ResultRow, VAE]]:
    """The VAEs of a run, each with its name as a column if there are several."""
    if isinstance(model, ModelCollection):
        return [({"model": name}, vae) for name, vae in cast("ModelCollection[VAE]", model).named_models()]
    return [({}, cast("VAE", model))]


@torch.no_grad()
def evaluate_terms(model: VAE, x: Float[Tensor, "batch *event"]) -> VAETerms:
    """Distortion and rate of every row, computed in chunks of 1,000 rows."""
    parts = [model.terms(part) for part in x.split(1_000)]
    return VAETerms(torch.cat([part.distortion for part in parts]), torch.cat([part.rate for part in parts]))
