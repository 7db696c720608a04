"""Generated solos: chords, allowed pitches, likelihood and fractions of chord tones."""

import pytest
import torch

from parnassus.music.solo import (
    HIGHEST,
    LOWEST,
    allowed_pitches,
    chord_name,
    chord_tone_fraction,
    chord_tones,
    generate_solos,
    is_on_beat,
    solo_nll,
)


def test_chord_tones_of_c_major_and_a_minor() -> None:
    assert chord_tones(torch.tensor(0)).nonzero()[:, 0].tolist() == [0, 4, 7]
    assert chord_tones(torch.tensor(19)).nonzero()[:, 0].tolist() == [0, 4, 9]
    assert [chord_name(chord) for chord in (0, 19, 14)] == ["C", "Am", "G"]


def test_allowed_pitches_on_and_between_beats() -> None:
    c_major, previous, tonic = torch.tensor([0]), torch.tensor([71]), torch.tensor([0])
    beat = allowed_pitches(previous, c_major, tonic, beat=torch.tensor([True]))[0].nonzero()[:, 0] + LOWEST
    between = allowed_pitches(previous, c_major, tonic, beat=torch.tensor([False]))[0].nonzero()[:, 0] + LOWEST
    assert beat.tolist() == [64, 67, 72, 76]
    assert between.tolist() == [69, 72]


def test_progressions_begin_with_the_tonic_and_end_with_a_cadence() -> None:
    solos = generate_solos(100, bars=5, seed=3)
    assert solos.chords.shape == (100, 5)
    assert solos.notes.shape == (100, 20)
    assert torch.equal(solos.chords[:, 0], 2 * solos.tonic)
    assert torch.equal(solos.chords[:, -1], 2 * solos.tonic)
    assert torch.equal(solos.chords[:, -2], 2 * ((solos.tonic + 7) % 12))
    assert LOWEST <= int(solos.notes.min()) <= int(solos.notes.max()) <= HIGHEST


def test_notes_belong_to_the_scale_and_are_not_repeated() -> None:
    solos = generate_solos(200, keys=1, seed=0)
    assert torch.isin(solos.notes % 12, torch.tensor([0, 2, 4, 5, 7, 9, 11])).all()
    assert (solos.notes.diff(dim=1) != 0).all()
    assert (solos.notes.diff(dim=1).abs()[:, ::2] <= 2).all()  # at most a whole tone between beats
    assert chord_tone_fraction(solos.notes, solos.chords) == 1.0


def test_chord_tone_fraction_includes_notes_on_beats_only() -> None:
    assert is_on_beat(5).tolist() == [True, False, True, False, True]
    notes = torch.tensor([[60, 60, 61, 60]])  # the second beat is not a chord tone of C major
    assert chord_tone_fraction(notes, torch.tensor([[0]])) == 0.5


def test_nll_is_the_log_of_the_number_of_allowed_notes() -> None:
    solos = generate_solos(3, bars=3, seed=0)
    nll = solo_nll(solos)
    allowed = allowed_pitches(solos.notes[:, 4], solos.chords[:, 1], solos.tonic, beat=torch.zeros(3, dtype=torch.bool))
    torch.testing.assert_close(nll[:, 5], allowed.sum(1).double().log())
    assert torch.isfinite(nll).all()


def test_equal_seeds_give_equal_solos() -> None:
    torch.testing.assert_close(tuple(generate_solos(5, seed=1)), tuple(generate_solos(5, seed=1)))
    assert not torch.equal(generate_solos(5, seed=1).notes, generate_solos(5, seed=2).notes)


@pytest.mark.parametrize(("count", "bars"), [(0, 4), (3, 2)])
def test_invalid_numbers_of_pieces_and_bars_raise_value_error(count: int, bars: int) -> None:
    with pytest.raises(ValueError, match="count must be at least 1 and bars at least 3"):
        generate_solos(count, bars=bars)


def test_more_than_twelve_keys_raise_value_error() -> None:
    with pytest.raises(ValueError, match="keys=13"):
        generate_solos(1, keys=13)


def test_invalid_chord_raises_value_error() -> None:
    with pytest.raises(ValueError, match="chords must lie between 0 and 23; got 24 to 24"):
        chord_tones(torch.tensor([24]))


def test_notes_that_do_not_match_the_chords_raise_value_error() -> None:
    with pytest.raises(ValueError, match="4 notes per chord; got 5 notes for 1"):
        chord_tone_fraction(torch.full((1, 5), 60), torch.tensor([[0]]))
