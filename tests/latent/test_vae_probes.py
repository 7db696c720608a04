"""What the probes of VAEs paint and count is what the models say."""

from collections.abc import Callable
from math import log, pi

import pytest
import torch

from parnassus.data import load_digits
from parnassus.latent.experiments.vae_latent_map import Both
from parnassus.latent.probes.rate_distortion import rate_against_reconstruction
from parnassus.latent.probes.traversal import traverse_a_code
from parnassus.latent.probes.vae_map import latent_plane
from parnassus.latent.vae import VAE
from parnassus.touch import Answer, Bars, Curves, Images, Numbers, Pick, Point, Whole, answer, controls_of
from parnassus.touch.asking import ProbeFunction
from parnassus.train import SideBySide
from parnassus.train.trained import Trained


def asked(probe: ProbeFunction, trained: Trained, **values: object) -> list[Answer]:
    return list(answer(probe, trained, controls_of(probe, trained), values))


@pytest.fixture(scope="module")
def mapped(trained_run: Callable[..., Trained]) -> Trained:
    return trained_run("vae_latent_map")


@torch.no_grad()
def test_the_plane_paints_what_the_vae_decodes(mapped: Trained) -> None:
    images, classes, numbers = asked(latent_plane, mapped, place=[0.5, -1.0])
    assert isinstance(images, Images)
    assert isinstance(classes, Bars)
    assert isinstance(numbers, Numbers)
    model = mapped.model
    assert isinstance(model, Both)
    torch.testing.assert_close(images.images[:1], model.vae.decode(torch.tensor([[0.5, -1.0]])))
    assert float(classes.values.sum()) == pytest.approx(1)
    prior, codes, gap = (value for value in numbers.values.values() if isinstance(value, float))
    assert prior == pytest.approx(-log(2 * pi) - 1.25 / 2, abs=1e-5)
    assert gap == pytest.approx(codes - prior)
    mean, log_variance = model.vae.moments(load_digits().train.x)
    place = torch.tensor([0.5, -1.0])
    density = (-(place - mean).square() / log_variance.exp() - log_variance).sum(1) / 2 - log(2 * pi)
    assert codes == pytest.approx(float(density.logsumexp(0)) - log(len(mean)), abs=1e-3)


def test_the_nearest_image_is_the_one_of_its_own_code(mapped: Trained) -> None:
    place = controls_of(latent_plane, mapped)["place"]
    assert isinstance(place, Point)
    assert not callable(place.plane)
    point = place.plane.points[3].tolist()
    images = asked(latent_plane, mapped, place=point)[0]
    assert isinstance(images, Images)
    torch.testing.assert_close(images.images[0], images.images[2], atol=1e-4, rtol=0)


@pytest.fixture(scope="module")
def drawn(trained_run: Callable[..., Trained]) -> Trained:
    return trained_run("vae")


@torch.no_grad()
def test_one_coordinate_moves_and_the_others_stay(drawn: Trained) -> None:
    seen, walk, bars, numbers = asked(traverse_a_code, drawn, example=3, rank=2, value=-3.0)
    assert isinstance(seen, Images)
    assert isinstance(walk, Images)
    assert isinstance(bars, Bars)
    assert isinstance(numbers, Numbers)
    model = drawn.model
    assert isinstance(model, VAE)
    torch.testing.assert_close(seen.images[1:2], model.reconstruct(seen.images[:1]))
    torch.testing.assert_close(seen.images[2], walk.images[0])  # both at −3
    assert walk.captions[0] == "-3"
    assert len(walk.images) == 7
    assert list(bars.values) == sorted(bars.values, reverse=True)
    assert bars.marked == 1
    assert f"{float(bars.values[1]):.2f} nats" == numbers.values["this coordinate says"]


@pytest.fixture(scope="module")
def swept(trained_run: Callable[..., Trained]) -> Trained:
    return trained_run("rate_distortion_curve")


@torch.no_grad()
def test_the_bill_is_that_of_the_chosen_network(swept: Trained) -> None:
    images, bars, curves = asked(rate_against_reconstruction, swept, beta=0, example=2)
    assert isinstance(images, Images)
    assert isinstance(bars, Bars)
    assert isinstance(curves, Curves)
    assert isinstance(swept.model, SideBySide)
    vae = swept.model.one("0")
    torch.testing.assert_close(images.images[0], load_digits().test.x[1])
    assert set(images.images[1].unique().tolist()) <= {0.0, 1.0}
    terms = vae.terms(images.images[1:2].expand(2_000, -1, -1, -1))
    rate, distortion, together = bars.values.tolist()
    assert rate == pytest.approx(float(terms.rate[0]), rel=1e-4)
    assert distortion == pytest.approx(float(terms.distortion.mean()), rel=0.05)
    assert together == pytest.approx(rate + distortion)
    assert curves.marked == pytest.approx(rate)
    torch.testing.assert_close(images.images[2:3], vae.reconstruct(images.images[1:2]))


def test_the_same_question_gets_the_same_answer(swept: Trained) -> None:
    first, again = (asked(rate_against_reconstruction, swept, beta=1, example=5)[0] for _ in range(2))
    assert isinstance(first, Images)
    assert isinstance(again, Images)
    assert first.images.equal(again.images)


def test_the_controls_know_the_run(swept: Trained, drawn: Trained) -> None:
    beta, example = controls_of(rate_against_reconstruction, swept).values()
    assert isinstance(beta, Pick)
    assert isinstance(example, Whole)
    assert len(tuple(beta.names)) == 7  # type: ignore[arg-type]  # settled: no longer a function
    assert (example.low, example.high) == (1, 360)
    with pytest.raises(ValueError, match="coordinate, the most telling first must be between 1 and 16; got 17"):
        asked(traverse_a_code, drawn, rank=17)
