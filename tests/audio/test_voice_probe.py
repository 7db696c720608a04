"""The vowel probe: harmonics of the pitch, and the spectral envelope of the vowel."""

from typing import cast

import pytest
import torch
from torch import Tensor

from parnassus.audio.probes.voice import BANDS, SIZE, vowel_spectrum
from parnassus.widgets import Curves, Images, Numbers, evaluate_probe, read_controls


def evaluate(**values: object) -> tuple[Images, Curves, Numbers]:
    controls = read_controls(vowel_spectrum, None)
    image, frame, numbers = evaluate_probe(vowel_spectrum, None, controls, values)
    return cast("Images", image), cast("Curves", frame), cast("Numbers", numbers)


def evaluate_curves(**values: object) -> dict[str, tuple[Tensor, Tensor]]:
    """Frequencies and values of the three curves: spectrum, bands and envelope."""
    frame = evaluate(**values)[1]
    names = ("spectrum", "bands", "envelope")
    return {name: (torch.tensor(x), torch.tensor(y)) for name, (x, y) in zip(names, frame.lines.values(), strict=True)}


@pytest.mark.parametrize("pitch", [120.0, 230.0])
def test_harmonics_are_at_multiples_of_the_pitch(pitch: float) -> None:
    frequencies, log_power = evaluate_curves(pitch=pitch, window=2)["spectrum"]
    for harmonic in range(1, 6):
        near = (frequencies / pitch - harmonic).abs() < 0.5
        peak = float(frequencies[near][log_power[near].argmax()])
        assert peak == pytest.approx(pitch * harmonic, abs=4_000 / 256)  # within one bin


def test_envelope_depends_more_on_the_vowel_than_on_the_pitch() -> None:
    envelope = evaluate_curves()["envelope"][1]
    by_pitch, by_vowel = (
        (evaluate_curves(**changed)["envelope"][1] - envelope).norm() for changed in ({"pitch": 132.0}, {"word": 0})
    )
    assert by_pitch < 0.5 * by_vowel
    values = evaluate()[2].values
    spectrum, envelope_change = (
        values[f"RMS change of the {name} for 10 % higher pitch (nats)"] for name in ("spectrum", "envelope")
    )
    assert cast("float", envelope_change) < 0.25 * cast("float", spectrum)


def test_all_cepstra_reconstruct_the_bands() -> None:
    curves = evaluate_curves(num_cepstra=BANDS)
    assert torch.allclose(curves["envelope"][1], curves["bands"][1], atol=1e-4)
    constant = evaluate_curves(num_cepstra=1)
    difference = constant["envelope"][1] - constant["bands"][1]
    assert float(difference.std()) > 1


def test_short_windows_resolve_pulses_and_long_windows_resolve_harmonics() -> None:
    short, long = (evaluate(window=window, pitch=100.0)[0].images[0, 0] for window in (0, 2))
    assert short.shape == long.shape == SIZE
    for image in (short, long):
        assert float(image.min()) >= 0
        assert float(image.max()) == 1
    over_time, over_bins = ([float(image.std(axis).mean()) for image in (short, long)] for axis in (1, 0))
    assert over_time[0] > 5 * over_time[1]
    assert over_bins[1] > 0.1
