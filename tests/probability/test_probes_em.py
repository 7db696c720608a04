"""The EM probe: the likelihood increases, the image has the colours of the components."""

from typing import cast

import pytest
import torch

from parnassus.probability.probes.expectation_maximisation import (
    COLOURS,
    DATASETS,
    SIDE,
    STEPS,
    run_expectation_maximisation,
)
from parnassus.widgets import Bars, Curves, Images, Numbers, Trajectories, evaluate_probe, read_controls

CONTROLS = read_controls(run_expectation_maximisation, None)


def evaluate(**values: object) -> tuple[Images, Curves, Trajectories, Bars, Numbers]:
    image, likelihood, trajectories, weights, numbers = evaluate_probe(
        run_expectation_maximisation, None, CONTROLS, values
    )
    return (
        cast("Images", image),
        cast("Curves", likelihood),
        cast("Trajectories", trajectories),
        cast("Bars", weights),
        cast("Numbers", numbers),
    )


@pytest.mark.parametrize("data", range(len(DATASETS)))
def test_likelihood_does_not_decrease_and_numbers_match_the_curve(data: int) -> None:
    _, likelihood, trajectories, weights, numbers = evaluate(data=data, components=6, step=7, seed=2)
    log_likelihoods = torch.tensor(likelihood.lines["mean of log p(x)"][1])
    assert len(log_likelihoods) == STEPS + 1
    assert float(log_likelihoods.diff().min()) > -1e-5
    assert numbers.values["mean log-likelihood"] == pytest.approx(float(log_likelihoods[7]), abs=1e-5)
    assert likelihood.marked == 7
    assert float(weights.values.sum()) == pytest.approx(1.0, abs=1e-6)
    assert [len(trajectory) for trajectory in trajectories.paths.values()] == [8] * 6


def test_image_shows_the_colours_of_all_components() -> None:
    image, *_ = evaluate(components=4, step=STEPS)
    assert image.images.shape == (1, 3, SIDE, SIDE)
    pixels = image.images[0].flatten(1).T
    assert float((pixels == 1).all(1).float().mean()) > 0.5
    for colour in COLOURS[:4].float():
        assert int(((pixels - colour).abs().amax(1) < 0.01).sum()) > 50


def test_one_component_is_responsible_for_all_points() -> None:
    image, *_, weights, numbers = evaluate(components=1, step=1)
    assert weights.values.tolist() == [1.0]
    assert numbers.values["components per point (exp. entropy)"] == pytest.approx(1.0)
    assert image.captions == ["step 1"]
