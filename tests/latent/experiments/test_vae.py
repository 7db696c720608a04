"""Evaluation of trained VAEs: likelihood, rate and distortion of the images of a data set."""

from collections.abc import Callable

import pytest
import torch

from parnassus.data import DataError, open_images
from parnassus.latent.experiments import autoencoder_latent_map, iwae, vae
from parnassus.latent.variational.decoders import BernoulliDecoder, GaussianDecoder
from parnassus.latent.variational.vae import VAE
from parnassus.train.trained import TrainedRun

EVALUATIONS = {
    "vae": vae.Evaluate(num_examples=20, num_importance_samples=1_000, device="cpu"),
    "iwae": iwae.Evaluate(num_examples=20, num_importance_samples=1_000, device="cpu"),
}


@pytest.fixture(params=["vae", "iwae"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_metrics_are_computed_on_binarised_test_images(trained_run: Callable[..., TrainedRun], name: str) -> None:
    trained = trained_run(name)
    model = trained.model
    assert isinstance(model, VAE)
    (row,) = EVALUATIONS[name]([trained])
    assert (row["run"], row["data"], row["num_examples"]) == (trained.folder.path.name, "mnist_mini", 20)
    torch.manual_seed(0)
    x = torch.bernoulli(open_images("mnist_mini").test.x[:20])
    with torch.no_grad():
        mean, log_variance = model.posterior_parameters(x)
        mean_distortion = torch.stack([model.terms(x).distortion for _ in range(200)]).mean()
    mean_rate = (mean.square() + log_variance.exp() - 1 - log_variance).sum(1).mean() / 2
    nll, rate, distortion, negative_elbo = (
        float(str(row[key])) for key in ("nll", "rate", "distortion", "negative_elbo")
    )
    assert rate == pytest.approx(float(mean_rate), rel=1e-5)
    assert distortion == pytest.approx(float(mean_distortion), rel=0.01)
    assert negative_elbo == pytest.approx(rate + distortion, rel=1e-6)
    assert nll == pytest.approx(-float(model.log_prob(x, samples=1_000).mean()), abs=0.5)


def test_evaluation_is_reproducible_with_one_row_per_run(trained_run: Callable[..., TrainedRun], name: str) -> None:
    trained = trained_run(name)
    assert isinstance(trained.model, VAE)  # built here, with random initial weights
    before = torch.get_rng_state()
    first, second = EVALUATIONS[name]([trained, trained])
    assert first == second
    assert torch.get_rng_state().equal(before)


def test_gaussian_decoder_is_evaluated_on_grey_images(trained_run: Callable[..., TrainedRun]) -> None:
    trained = trained_run("vae", use_gaussian_decoder=True)
    model = trained.model
    assert isinstance(model, VAE)
    assert vae.Evaluate(num_examples=5).load_images(model).equal(open_images("mnist_mini").test.x[:5])


def test_images_of_another_shape_raise_data_error(trained_run: Callable[..., TrainedRun]) -> None:
    shapes = r"images must have the model's shape \(1, 28, 28\); those of digits have \(1, 8, 8\)"
    with pytest.raises(DataError, match=shapes):
        vae.Evaluate(data="digits")([trained_run("vae")])


def test_colour_images_get_a_gaussian_decoder_by_default() -> None:
    shapes = {"grey": (1, 8, 8), "colour": (3, 8, 8)}
    found = {name: type(vae.Experiment(width=8).model(shape).decoder) for name, shape in shapes.items()}
    assert found == {"grey": BernoulliDecoder, "colour": GaussianDecoder}
    assert isinstance(vae.Experiment(width=8, use_gaussian_decoder=False).model((3, 8, 8)).decoder, BernoulliDecoder)
    assert isinstance(vae.Experiment(width=8, use_gaussian_decoder=True).model((1, 8, 8)).decoder, GaussianDecoder)


def test_answer_on_the_latent_space_depends_on_its_metrics() -> None:
    normal = {"centre_offset": 0.05, "anisotropy": 1.0, "coverage": 0.5, "hole_depth": 0.3}
    assert "is used as well as" in autoencoder_latent_map.describe_latent_space(normal, normal)
    answer = autoencoder_latent_map.describe_latent_space({**normal, "anisotropy": 4.0}, normal)
    assert "not well used: the ratio of the longest to the shortest axis is 4 instead of 1." in answer
    assert "holes" not in answer
