"""Keys, scales and key estimation for known melodies."""

import pytest
import torch

from parnassus.music import KEYS, Key, estimate_key, fraction_in_key, key_scores

SCALE_OF_D_MINOR = (62, 64, 65, 67, 69, 70, 72, 74, 69, 65, 62)


def test_keys_have_correct_names_and_scales() -> None:
    assert str(Key(9, is_minor=True)) == "A minor"
    assert Key(7).scale == (7, 9, 11, 0, 2, 4, 6)
    assert Key(0).transpose(9, is_minor=True) == Key(9, is_minor=True)
    assert set(Key(0).scale) == set(Key(9, is_minor=True).scale)  # relative keys have the same notes
    assert len(set(KEYS)) == 24


@pytest.mark.parametrize("semitones", [-7, 0, 3, 12])
def test_key_of_a_transposed_scale_is_estimated(semitones: int) -> None:
    pitches = torch.tensor(SCALE_OF_D_MINOR) + semitones
    assert estimate_key(pitches) == Key((2 + semitones) % 12, is_minor=True)
    assert fraction_in_key(pitches, Key((2 + semitones) % 12, is_minor=True)) == 1.0


def test_key_scores_are_correlations() -> None:
    scores = key_scores(torch.randint(40, 80, (50, 30), generator=torch.Generator().manual_seed(0)))
    assert float(scores.abs().max()) <= 1
    assert not bool(key_scores(torch.arange(12)[None]).isnan().any())  # equal counts: all correlations are 0


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="pitches must not be empty"):
        estimate_key(torch.zeros(0, dtype=torch.int64))
    with pytest.raises(ValueError, match="pitch class from 0 to 11"):
        Key(12)
