"""Vowels: pitch, formants and reproducibility."""

from pathlib import Path

import pytest
import torch

from parnassus.data import DataError, data_status, open_sounds, vowels
from parnassus.data.built_in.vowels import (
    FORMANTS,
    PITCH,
    RATE,
    WORDS,
    pulse_train,
    resonances,
    spoken_vowels,
    vocal_tract_filter,
)


def test_vowels_have_all_words_and_speakers() -> None:
    data = vowels(60, 30)
    assert (data.name, data.classes, len(data.train), len(data.test)) == ("vowels", WORDS, 60, 30)
    assert torch.bincount(data.train.labels).tolist() == [6] * 10
    assert set(data.train.speakers) == {"man", "woman", "child"}
    assert all(wave.dtype == torch.float32 and float(wave.abs().max()) <= 1 for wave in data.train.waves)
    lengths = torch.tensor([len(wave) for wave in data.train.waves]) / data.train.rate
    assert 0.15 <= float(lengths.min()) < 0.25
    assert 0.35 < float(lengths.max()) <= 0.45


def test_equal_seeds_give_equal_recordings() -> None:
    first, repeated, other = spoken_vowels(3, seed=1), spoken_vowels(3, seed=1), spoken_vowels(3, seed=2)
    assert all(torch.equal(left, right) for left, right in zip(first.waves, repeated.waves, strict=True))
    assert len(first.waves[0]) != len(other.waves[0])
    data = vowels(5, 5)
    assert not torch.equal(data.train.waves[0][:500], data.test.waves[0][:500])


def test_tables_have_a_number_for_each_word() -> None:
    assert torch.tensor(PITCH).shape == (3, len(WORDS))
    assert torch.tensor(FORMANTS).shape == (3, 3, len(WORDS))
    assert bool((torch.tensor(FORMANTS).diff(dim=1) > 0).all())  # the second formant lies above the first


def test_pulse_train_has_the_given_frequency_and_unit_pulses() -> None:
    train = pulse_train(torch.full((1, 8_000), 123.4 / RATE))
    assert float(train.sum()) == pytest.approx(123, abs=1)
    weighted_positions = (train[0] * torch.arange(8_000)).cumsum(0)
    weights = train[0].cumsum(0)
    first, last = (float(weighted_positions[int((weights < count - 0.5).sum())]) for count in (1, 100))
    mean_position = (last - first) / 99  # of pulse_train 2 … 100
    assert mean_position == pytest.approx(RATE / 123.4 * 51, rel=0.01)


def test_resonances_peak_at_the_formants() -> None:
    formants = torch.tensor([[700.0, 1_800.0, 2_900.0], [400.0, 1_000.0, 2_300.0]])
    angle = -2 * torch.pi * torch.arange(4_001) / 8_000  # one bin per hertz
    gain = resonances(formants, torch.polar(torch.ones(4_001), angle)).abs()
    is_peak = (gain[:, 1:-1] > gain[:, :-2]) & (gain[:, 1:-1] > gain[:, 2:])
    for row, expected in zip(is_peak, formants, strict=True):
        torch.testing.assert_close(row.nonzero()[:, 0].float() + 1, expected, atol=30, rtol=0)


def test_spectral_filtering_equals_the_recursion() -> None:
    """y_n = (1 − b − c) x_n + b y_{n−1} + c y_{n−2} for each resonance; then glottis and lips."""
    formants = torch.tensor([[500.0, 1_500.0, 2_500.0]])
    source = torch.zeros(1, 600)
    source[0, 3] = source[0, 590] = 1  # the response to the last pulse must not wrap around
    expected = source[0].double()
    for formant, bandwidth in zip(formants[0].double(), (60.0, 90.0, 150.0), strict=True):
        radius = torch.tensor(-torch.pi * bandwidth / RATE, dtype=torch.float64).exp()
        b, c = 2 * radius * (2 * torch.pi * formant / RATE).cos(), -(radius**2)
        expected = recursion(expected, float(1 - b - c), float(b), float(c))
    expected = recursion(expected, 1.0, 1.8, -0.81)
    expected = expected - torch.nn.functional.pad(expected[:-1], (1, 0))
    torch.testing.assert_close(vocal_tract_filter(source, formants)[0].double(), expected, atol=1e-5, rtol=0)


def recursion(x: torch.Tensor, a: float, b: float, c: float) -> torch.Tensor:
    y = [0.0, 0.0]
    for value in x.tolist():
        y.append(a * value + b * y[-1] + c * y[-2])
    return torch.tensor(y[2:], dtype=torch.float64)


@pytest.mark.parametrize(("train", "test"), [(0, 5), (5, 0)])
def test_invalid_arguments_raise(train: int, test: int) -> None:
    with pytest.raises(ValueError, match="train and test must be at least 1"):
        vowels(train, test)


def test_sounds_are_opened_by_name_or_path(tmp_path: Path) -> None:
    data = open_sounds("vowels")
    assert (data.name, len(data.train), len(data.test)) == ("vowels", 2_000, 500)
    assert {row.name: row.present for row in data_status()}["vowels"]
    with pytest.raises(DataError, match="unknown data set vowel: did you mean vowels"):
        open_sounds("vowel")
    with pytest.raises(DataError, match=r"does not exist: give the path of a folder of WAV files, or one of vowels"):
        open_sounds(tmp_path / "none")
    with pytest.raises(DataError, match=r"one subfolder of \.wav files per class"):
        open_sounds(tmp_path)
