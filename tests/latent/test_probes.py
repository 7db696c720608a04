"""Probes of PCA, PPCA and the autoencoder."""

from collections.abc import Callable
from itertools import pairwise

import pytest
import torch

from parnassus.data import load_digits, mnist_mini
from parnassus.latent import Autoencoder
from parnassus.latent.experiments import pca_on_digits
from parnassus.latent.linear.pca import PCA
from parnassus.latent.probes.autoencoder_map import explore_latent_plane
from parnassus.latent.probes.components import reconstruct_from_components
from parnassus.latent.probes.posterior import FITTED, POINTS, ppca_posterior
from parnassus.train.trained import TrainedRun
from parnassus.widgets import (
    Bars,
    Control,
    Curves,
    Images,
    IntSlider,
    Numbers,
    PointPicker,
    Trajectories,
    evaluate_probe,
    read_controls,
)

DIGITS = load_digits()


@pytest.fixture(scope="module")
def pca_run(trained_run: Callable[..., TrainedRun]) -> TrainedRun:
    return trained_run("pca_on_digits")


def evaluate_reconstruction(run: TrainedRun, **values: object) -> tuple[Images, Numbers, Curves, Curves]:
    images, numbers, errors, spectrum = evaluate_probe(
        reconstruct_from_components,
        run,
        read_controls(reconstruct_from_components, run),
        values,
    )
    assert isinstance(images, Images)
    assert isinstance(numbers, Numbers)
    assert isinstance(errors, Curves)
    assert isinstance(spectrum, Curves)
    return images, numbers, errors, spectrum


def test_sliders_cover_all_components_and_test_examples(pca_run: TrainedRun) -> None:
    components, example = read_controls(reconstruct_from_components, pca_run).values()
    assert isinstance(components, IntSlider)
    assert isinstance(example, IntSlider)
    assert (components.low, components.high) == (1, 64)
    assert (example.low, example.high) == (1, 360)


def test_error_decreases_to_zero_with_all_components(pca_run: TrainedRun) -> None:
    errors = []
    for size in (1, 2, 5, 16, 40, 64):
        _, numbers, _, _ = evaluate_reconstruction(pca_run, components=size, example=7)
        value = numbers.values["squared error of this example"]
        assert isinstance(value, float)
        errors.append(value)
    assert all(after < before for before, after in pairwise(errors))
    assert errors[-1] < 1e-9
    assert evaluate_reconstruction(pca_run, components=64)[1].values["explained variance"] == "100.0 %"


def test_reconstruction_matches_a_fit_with_the_selected_components(pca_run: TrainedRun) -> None:
    images, numbers, errors, spectrum = evaluate_reconstruction(pca_run, components=5, example=7)
    pca, x = PCA.fit(DIGITS.train.x.flatten(1), 5), DIGITS.test.x[6].flatten()[None]
    reconstruction = pca.reconstruct(x)
    torch.testing.assert_close(images.images[0], DIGITS.test.x[6])
    torch.testing.assert_close(images.images[1].flatten(), reconstruction[0].clamp(0, 1), atol=1e-5, rtol=0)
    assert numbers.values["squared error of this example"] == pytest.approx(
        float((x - reconstruction).square().sum()), rel=1e-4
    )
    assert numbers.values["sum of the omitted eigenvalues"] == pytest.approx(float(pca.residual_variance), rel=1e-4)
    sizes, line = errors.lines["this example"]
    assert line[list(sizes).index(5)] == numbers.values["squared error of this example"]
    assert (errors.marked, spectrum.marked) == (5, 5)


def test_spectrum_is_decreasing_and_omits_constant_pixels(pca_run: TrainedRun) -> None:
    _, _, _, spectrum = evaluate_reconstruction(pca_run)
    index, eigenvalues = spectrum.lines["λ"]
    assert list(eigenvalues) == sorted(eigenvalues, reverse=True)
    assert sum(eigenvalues) == pytest.approx(float(DIGITS.train.x.flatten(1).var(0, correction=0).sum()), rel=1e-4)
    assert len(index) == int((DIGITS.train.x.flatten(1).std(0) > 0).sum()) < 64


def test_data_without_images_give_curves_only(pca_run: TrainedRun) -> None:
    run = TrainedRun(pca_run.folder, pca_on_digits.Experiment(data="iris"))
    numbers, errors, spectrum = evaluate_probe(
        reconstruct_from_components, run, read_controls(reconstruct_from_components, run), {}
    )
    assert isinstance(numbers, Numbers)
    assert isinstance(errors, Curves)
    assert isinstance(spectrum, Curves)
    assert numbers.title == "With 4 of 4 components"  # the default of 16 exceeds the number of features


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"components": 65}, "number of components, K must be between 1 and 64; got 65"),
        ({"example": 0}, "test example must be between 1 and 360; got 0"),
    ],
)
def test_invalid_values_raise(values: dict[str, object], message: str, pca_run: TrainedRun) -> None:
    with pytest.raises(ValueError, match=message):
        evaluate_reconstruction(pca_run, **values)


@pytest.fixture(scope="module")
def autoencoder_run(trained_run: Callable[..., TrainedRun]) -> TrainedRun:
    return trained_run("autoencoder_latent_map")


@pytest.fixture(scope="module")
def controls(autoencoder_run: TrainedRun) -> dict[str, Control]:
    return read_controls(explore_latent_plane, autoencoder_run)


@torch.no_grad()
def test_code_of_a_training_image_decodes_to_its_reconstruction(
    autoencoder_run: TrainedRun, controls: dict[str, Control]
) -> None:
    place, training_set, model = controls["place"], mnist_mini().train.take(640), autoencoder_run.model
    assert isinstance(place, PointPicker)
    assert not callable(place.plane)
    assert isinstance(model, Autoencoder)
    assert place.plane.labels is not None
    assert len(place.plane.points) == len(place.plane.labels) > 600
    z = model.encode(training_set.x)
    for point, label in list(zip(place.plane.points.tolist(), place.plane.labels.tolist(), strict=True))[:5]:
        row = int((z - torch.tensor(point)).abs().sum(1).argmin())
        images, classes, numbers = evaluate_probe(explore_latent_plane, autoencoder_run, controls, {"place": point})
        assert isinstance(images, Images)
        assert isinstance(classes, Bars)
        assert isinstance(numbers, Numbers)
        reconstruction = model(training_set.x[row : row + 1])[0]
        torch.testing.assert_close(images.images[0], reconstruction, atol=1e-4, rtol=0)
        torch.testing.assert_close(images.images[1], training_set.x[row])
        torch.testing.assert_close(images.images[2], reconstruction, atol=1e-6, rtol=0)
        assert images.captions[1] == f"nearest training image: {label}"
        assert numbers.values["distance to the nearest code"] == pytest.approx(0, abs=1e-5)
        assert float(classes.values.sum()) == pytest.approx(1)
        assert f"error {float((reconstruction - training_set.x[row]).square().mean()):.3f}" in images.captions[2]


def test_distance_is_large_far_from_all_codes(autoencoder_run: TrainedRun, controls: dict[str, Control]) -> None:
    place = controls["place"]
    assert isinstance(place, PointPicker)
    assert not callable(place.plane)
    corners = torch.cartesian_prod(torch.tensor(place.plane.x_range), torch.tensor(place.plane.y_range))
    emptiest = corners[torch.cdist(corners, place.plane.points).amin(1).argmax()]
    numbers = evaluate_probe(explore_latent_plane, autoencoder_run, controls, {"place": emptiest.tolist()})[-1]
    assert isinstance(numbers, Numbers)
    distance, typical = list(numbers.values.values())[2:]
    assert isinstance(distance, float)
    assert isinstance(typical, float)
    assert distance > 3 * typical > 0


def test_point_outside_the_plane_raises_value_error(autoencoder_run: TrainedRun, controls: dict[str, Control]) -> None:
    with pytest.raises(ValueError, match=r"a point in the plane must be between .* got 1e"):
        evaluate_probe(explore_latent_plane, autoencoder_run, controls, {"place": [1e9, 0]})


def evaluate_posterior(**values: object) -> tuple[Trajectories, Curves, Numbers]:
    path, codes, numbers = evaluate_probe(ppca_posterior, None, read_controls(ppca_posterior, None), values)
    assert isinstance(path, Trajectories)
    assert isinstance(codes, Curves)
    assert isinstance(numbers, Numbers)
    return path, codes, numbers


def test_small_noise_gives_the_projection_and_a_narrow_posterior() -> None:
    path, _, numbers = evaluate_posterior(place=[2.0, -1.0], variance=1e-3)
    torch.testing.assert_close(
        path.paths["x to its reconstruction"], path.paths["x to its projection"], atol=2e-3, rtol=0
    )
    projection = path.paths["x to its projection"][1]
    assert abs(float((torch.tensor([2.0, -1.0]) - projection) @ FITTED.components[:, 0])) < 1e-5
    std = numbers.values["standard deviation of ν given x"]
    assert isinstance(std, float)
    assert std < 0.02


def test_noise_shrinks_the_reconstruction_and_widens_the_posterior() -> None:
    lengths, stds = [], []
    for variance in (0.01, 0.5, 2.5):
        path, codes, numbers = evaluate_posterior(place=[4.0, 2.0], variance=variance)
        lengths.append(float((path.paths["x to its reconstruction"][1] - FITTED.mean).norm()))
        stds.append(numbers.values["standard deviation of ν given x"])
        v, density = codes.lines["posterior p(ν | x)"]
        assert v[density.index(max(density))] == pytest.approx(numbers.values["E[ν | x]"], abs=0.03)
    assert lengths == sorted(lengths, reverse=True)
    assert stds == sorted(stds)


def test_mean_log_density_is_maximal_at_the_ml_noise() -> None:
    ml_variance = float(FITTED.residual_variance)
    means = [
        evaluate_posterior(variance=ml_variance * factor)[2].values["mean ln p(x) of all points"]
        for factor in (0.8, 1.0, 1.25)
    ]
    assert max(means) == means[1]
    assert len(POINTS) == 300
