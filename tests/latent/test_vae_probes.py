"""Probes of VAEs."""

from collections.abc import Callable
from math import log, pi

import pytest
import torch

from parnassus.data import load_digits
from parnassus.latent.probes.rate_distortion import rate_and_distortion_of_an_image
from parnassus.latent.probes.traversal import traverse_code
from parnassus.latent.probes.vae_map import explore_vae_plane
from parnassus.latent.variational.vae import VAE
from parnassus.train import ModelCollection
from parnassus.train.trained import TrainedRun
from parnassus.widgets import (
    Answer,
    Bars,
    Curves,
    Images,
    IntSlider,
    Numbers,
    PointPicker,
    Select,
    evaluate_probe,
    read_controls,
)
from parnassus.widgets.evaluation import ProbeFunction


def evaluate(probe: ProbeFunction, trained: TrainedRun, **values: object) -> list[Answer]:
    return list(evaluate_probe(probe, trained, read_controls(probe, trained), values))


@pytest.fixture(scope="module")
def latent_map_run(trained_run: Callable[..., TrainedRun]) -> TrainedRun:
    return trained_run("vae_latent_map")


@torch.no_grad()
def test_plane_shows_the_decoded_image_and_densities(latent_map_run: TrainedRun) -> None:
    images, classes, numbers = evaluate(explore_vae_plane, latent_map_run, place=[0.5, -1.0])
    assert isinstance(images, Images)
    assert isinstance(classes, Bars)
    assert isinstance(numbers, Numbers)
    assert isinstance(latent_map_run.model, ModelCollection)
    vae = latent_map_run.model.model("vae")
    torch.testing.assert_close(images.images[:1], vae.decode(torch.tensor([[0.5, -1.0]])))
    assert float(classes.values.sum()) == pytest.approx(1)
    prior, codes, gap = (value for value in numbers.values.values() if isinstance(value, float))
    assert prior == pytest.approx(-log(2 * pi) - 1.25 / 2, abs=1e-5)
    assert gap == pytest.approx(codes - prior)
    mean, log_variance = vae.posterior_parameters(load_digits().train.x)
    place = torch.tensor([0.5, -1.0])
    density = (-(place - mean).square() / log_variance.exp() - log_variance).sum(1) / 2 - log(2 * pi)
    assert codes == pytest.approx(float(density.logsumexp(0)) - log(len(mean)), abs=1e-3)


def test_nearest_image_of_a_code_is_its_own(latent_map_run: TrainedRun) -> None:
    place = read_controls(explore_vae_plane, latent_map_run)["place"]
    assert isinstance(place, PointPicker)
    assert not callable(place.plane)
    point = place.plane.points[3].tolist()
    images = evaluate(explore_vae_plane, latent_map_run, place=point)[0]
    assert isinstance(images, Images)
    torch.testing.assert_close(images.images[0], images.images[2], atol=1e-4, rtol=0)


@pytest.fixture(scope="module")
def vae_run(trained_run: Callable[..., TrainedRun]) -> TrainedRun:
    return trained_run("vae")


@torch.no_grad()
def test_traversal_varies_one_coordinate(vae_run: TrainedRun) -> None:
    images, traversal, bars, numbers = evaluate(traverse_code, vae_run, example=3, rank=2, value=-3.0)
    assert isinstance(images, Images)
    assert isinstance(traversal, Images)
    assert isinstance(bars, Bars)
    assert isinstance(numbers, Numbers)
    model = vae_run.model
    assert isinstance(model, VAE)
    torch.testing.assert_close(images.images[1:2], model.reconstruct(images.images[:1]))
    torch.testing.assert_close(images.images[2], traversal.images[0])  # both at −3
    assert traversal.captions[0] == "-3"
    assert len(traversal.images) == 7
    assert list(bars.values) == sorted(bars.values, reverse=True)
    assert bars.marked == 1
    assert f"{float(bars.values[1]):.2f} nats" == numbers.values["rate of this coordinate"]


@pytest.fixture(scope="module")
def rate_distortion_run(trained_run: Callable[..., TrainedRun]) -> TrainedRun:
    return trained_run("vae_rate_distortion")


@torch.no_grad()
def test_rate_and_distortion_match_the_selected_network(rate_distortion_run: TrainedRun) -> None:
    images, bars, curves = evaluate(rate_and_distortion_of_an_image, rate_distortion_run, beta=0, example=2)
    assert isinstance(images, Images)
    assert isinstance(bars, Bars)
    assert isinstance(curves, Curves)
    assert isinstance(rate_distortion_run.model, ModelCollection)
    vae = rate_distortion_run.model.model("0")
    torch.testing.assert_close(images.images[0], load_digits().test.x[1])
    assert set(images.images[1].unique().tolist()) <= {0.0, 1.0}
    terms = vae.terms(images.images[1:2].expand(2_000, -1, -1, -1))
    rate, distortion, total = bars.values.tolist()
    assert rate == pytest.approx(float(terms.rate[0]), rel=1e-4)
    assert distortion == pytest.approx(float(terms.distortion.mean()), rel=0.05)
    assert total == pytest.approx(rate + distortion)
    assert curves.marked == pytest.approx(rate)
    torch.testing.assert_close(images.images[2:3], vae.reconstruct(images.images[1:2]))


def test_answers_are_deterministic(rate_distortion_run: TrainedRun) -> None:
    first, second = (
        evaluate(rate_and_distortion_of_an_image, rate_distortion_run, beta=1, example=5)[0] for _ in range(2)
    )
    assert isinstance(first, Images)
    assert isinstance(second, Images)
    assert first.images.equal(second.images)


def test_controls_have_the_ranges_of_the_run(rate_distortion_run: TrainedRun, vae_run: TrainedRun) -> None:
    beta, example = read_controls(rate_and_distortion_of_an_image, rate_distortion_run).values()
    assert isinstance(beta, Select)
    assert isinstance(example, IntSlider)
    assert len(tuple(beta.choices)) == 7  # type: ignore[arg-type]  # resolved, not callable
    assert (example.low, example.high) == (1, 360)
    with pytest.raises(ValueError, match="coordinate, by decreasing rate must be between 1 and 16; got 17"):
        evaluate(traverse_code, vae_run, rank=17)
