"""The voice to touch has its teeth at the overtones of its pitch, and an outline that the mouth draws."""

from typing import cast

import pytest
import torch
from torch import Tensor

from parnassus.music.probes.voice import BANDS, SIZE, a_voice_and_its_spectrum
from parnassus.touch import Curves, Images, Numbers, answer, controls_of


def touched(**values: object) -> tuple[Images, Curves, Numbers]:
    controls = controls_of(a_voice_and_its_spectrum, None)
    picture, frame, numbers = answer(a_voice_and_its_spectrum, None, controls, values)
    return cast("Images", picture), cast("Curves", frame), cast("Numbers", numbers)


def lines(**values: object) -> dict[str, tuple[Tensor, Tensor]]:
    """Places and heights of the three lines: spectrum, bands and outline."""
    frame = touched(**values)[1]
    names = ("spectrum", "bands", "outline")
    return {name: (torch.tensor(x), torch.tensor(y)) for name, (x, y) in zip(names, frame.lines.values(), strict=True)}


@pytest.mark.parametrize("pitch", [120.0, 230.0])
def test_teeth_stand_at_the_overtones(pitch: float) -> None:
    places, heights = lines(pitch=pitch, window=2)["spectrum"]
    for overtone in range(1, 6):
        near = (places / pitch - overtone).abs() < 0.5
        loudest = float(places[near][heights[near].argmax()])
        assert loudest == pytest.approx(pitch * overtone, abs=4_000 / 256)  # a bin either way


def test_the_mouth_moves_the_outline_and_the_voice_hardly_does() -> None:
    outline = lines()["outline"][1]
    by_pitch, by_vowel = ((lines(**other)["outline"][1] - outline).norm() for other in ({"pitch": 132.0}, {"word": 0}))
    assert by_pitch < 0.5 * by_vowel
    told = touched()[2].values
    spectrum, shape = (told[f"a pitch a tenth higher moves the {name} by, nats"] for name in ("spectrum", "outline"))
    assert cast("float", shape) < 0.25 * cast("float", spectrum)


def test_all_cepstra_give_the_bands_back() -> None:
    shown = lines(kept=BANDS)
    assert torch.allclose(shown["outline"][1], shown["bands"][1], atol=1e-4)
    coarse = lines(kept=1)
    rest = coarse["outline"][1] - coarse["bands"][1]
    assert float(rest.std()) > 1


def test_a_short_window_shows_pulses_and_a_long_one_overtones() -> None:
    short, long = (touched(window=window, pitch=100.0)[0].images[0, 0] for window in (0, 2))
    assert short.shape == long.shape == SIZE
    for picture in (short, long):
        assert float(picture.min()) >= 0
        assert float(picture.max()) == 1
    over_time, over_bins = ([float(picture.std(axis).mean()) for picture in (short, long)] for axis in (1, 0))
    assert over_time[0] > 5 * over_time[1]
    assert over_bins[1] > 0.1
