"""EM step by step: the curve rises, the picture has the colours of the bells, the ways start at points."""

from typing import cast

import pytest
import torch

from parnassus.probability.probes.em import CLOUDS, INK, SIDE, STEPS, watch_em_find_the_bells
from parnassus.touch import Bars, Curves, Images, Numbers, Path, answer, controls_of

CONTROLS = controls_of(watch_em_find_the_bells, None)


def seen(**values: object) -> tuple[Images, Curves, Path, Bars, Numbers]:
    picture, likelihood, ways, weights, numbers = answer(watch_em_find_the_bells, None, CONTROLS, values)
    return (
        cast("Images", picture),
        cast("Curves", likelihood),
        cast("Path", ways),
        cast("Bars", weights),
        cast("Numbers", numbers),
    )


@pytest.mark.parametrize("data", range(len(CLOUDS)))
def test_the_likelihood_only_rises_and_the_numbers_are_read_from_it(data: int) -> None:
    _, likelihood, ways, weights, numbers = seen(data=data, components=6, step=7, seed=2)
    heights = torch.tensor(likelihood.lines["mean of log p(x)"][1])
    assert len(heights) == STEPS + 1
    assert float(heights.diff().min()) > -1e-5
    assert numbers.values["mean log-likelihood"] == pytest.approx(float(heights[7]), abs=1e-5)
    assert likelihood.marked == 7
    assert float(weights.values.sum()) == pytest.approx(1.0, abs=1e-6)
    assert [len(way) for way in ways.places.values()] == [8] * 6


def test_the_picture_has_every_bells_colour_on_white() -> None:
    picture, *_ = seen(components=4, step=STEPS)
    assert picture.images.shape == (1, 3, SIDE, SIDE)
    pixels = picture.images[0].flatten(1).T
    assert float((pixels == 1).all(1).float().mean()) > 0.5
    for colour in INK[:4].float():
        assert int(((pixels - colour).abs().amax(1) < 0.01).sum()) > 50


def test_one_bell_answers_for_all() -> None:
    picture, *_, weights, numbers = seen(components=1, step=1)
    assert weights.values.tolist() == [1.0]
    assert numbers.values["components a point is divided between"] == pytest.approx(1.0)
    assert picture.captions == ["step 1"]
