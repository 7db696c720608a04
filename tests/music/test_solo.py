"""Solos over chords: the chords of a key, the law of the notes, and how well notes fit."""

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


def test_the_tones_of_c_major_and_a_minor() -> None:
    assert chord_tones(torch.tensor(0)).nonzero()[:, 0].tolist() == [0, 4, 7]
    assert chord_tones(torch.tensor(19)).nonzero()[:, 0].tolist() == [0, 4, 9]
    assert [chord_name(chord) for chord in (0, 19, 14)] == ["C", "Am", "G"]


def test_the_law_on_a_beat_and_between() -> None:
    c_major, before, tonic = torch.tensor([0]), torch.tensor([71]), torch.tensor([0])
    beat = allowed_pitches(before, c_major, tonic, beat=torch.tensor([True]))[0].nonzero()[:, 0] + LOWEST
    between = allowed_pitches(before, c_major, tonic, beat=torch.tensor([False]))[0].nonzero()[:, 0] + LOWEST
    assert beat.tolist() == [64, 67, 72, 76]
    assert between.tolist() == [69, 72]


def test_pieces_go_from_the_tonic_to_the_dominant_and_back() -> None:
    solos = generate_solos(100, bars=5, seed=3)
    assert solos.chords.shape == (100, 5)
    assert solos.notes.shape == (100, 20)
    assert torch.equal(solos.chords[:, 0], 2 * solos.tonic)
    assert torch.equal(solos.chords[:, -1], 2 * solos.tonic)
    assert torch.equal(solos.chords[:, -2], 2 * ((solos.tonic + 7) % 12))
    assert LOWEST <= int(solos.notes.min()) <= int(solos.notes.max()) <= HIGHEST


def test_every_note_is_of_the_scale_and_none_is_repeated() -> None:
    solos = generate_solos(200, keys=1, seed=0)
    assert torch.isin(solos.notes % 12, torch.tensor([0, 2, 4, 5, 7, 9, 11])).all()
    assert (solos.notes.diff(dim=1) != 0).all()
    assert (solos.notes.diff(dim=1).abs()[:, ::2] <= 2).all()  # a note between is a step away
    assert chord_tone_fraction(solos.notes, solos.chords) == 1.0


def test_half_of_the_notes_are_on_beats() -> None:
    assert is_on_beat(5).tolist() == [True, False, True, False, True]
    notes = torch.tensor([[60, 60, 61, 60]])  # the second beat does not fit C major
    assert chord_tone_fraction(notes, torch.tensor([[0]])) == 0.5


def test_nats_are_the_log_of_how_many_notes_are_allowed() -> None:
    solos = generate_solos(3, bars=3, seed=0)
    nats = solo_nll(solos)
    may = allowed_pitches(solos.notes[:, 4], solos.chords[:, 1], solos.tonic, beat=torch.zeros(3, dtype=torch.bool))
    torch.testing.assert_close(nats[:, 5], may.sum(1).double().log())
    assert torch.isfinite(nats).all()


def test_the_same_seed_gives_the_same_solos() -> None:
    torch.testing.assert_close(tuple(generate_solos(5, seed=1)), tuple(generate_solos(5, seed=1)))
    assert not torch.equal(generate_solos(5, seed=1).notes, generate_solos(5, seed=2).notes)


@pytest.mark.parametrize(("count", "bars"), [(0, 4), (3, 2)])
def test_no_piece_is_refused(count: int, bars: int) -> None:
    with pytest.raises(ValueError, match="count must be at least 1 and bars at least 3"):
        generate_solos(count, bars=bars)


def test_a_thirteenth_key_is_refused() -> None:
    with pytest.raises(ValueError, match="keys=13"):
        generate_solos(1, keys=13)


def test_a_chord_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="from 0 to 23"):
        chord_tones(torch.tensor([24]))


def test_notes_must_match_the_chords() -> None:
    with pytest.raises(ValueError, match="4 notes per chord; got 5 notes for 1"):
        chord_tone_fraction(torch.full((1, 5), 60), torch.tensor([[0]]))
