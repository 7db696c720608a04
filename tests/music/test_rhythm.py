"""Melodies with rhythm and pitch: metre, tokens, and generation conditioned on a rhythm."""

import pytest
import torch

from parnassus.attention.models.gpt import gpt
from parnassus.music.rhythm import (
    BEGIN,
    FIRST_PITCH,
    RHYTHMS,
    VOCABULARY,
    Melodies,
    bar_positions,
    generate_melodies,
    generate_melody,
    interleave_tokens,
    is_strong_beat,
    melody_nll,
    rhythm_tokens,
    strong_chord_tone_fraction,
)
from parnassus.music.solo import HIGHEST, LOWEST
from parnassus.text.sampling import greedy


def test_rhythms_fill_a_bar() -> None:
    assert {sum(bar) for bar in RHYTHMS} == {8}


def test_bar_positions_of_a_dotted_rhythm() -> None:
    durations = torch.tensor([[3, 1, 4, 2, 2, 4]])
    assert bar_positions(durations).tolist() == [[0, 3, 4, 0, 2, 4]]
    assert is_strong_beat(durations).tolist() == [[True, False, True, True, False, True]]
    assert rhythm_tokens(durations)[0, :3].tolist() == [1 + 2, 1 + 12, 1 + 16 + 3]


def test_melodies_follow_the_rules_of_the_metre() -> None:
    melodies = generate_melodies(300, seed=2)
    assert strong_chord_tone_fraction(melodies.pitches, melodies.durations) == 1.0
    assert torch.isin(melodies.pitches % 12, torch.tensor([0, 2, 4, 5, 7, 9, 11])).all()
    weak = ~is_strong_beat(melodies.durations)[:, 1:]
    steps = melodies.pitches.diff(dim=1).abs()
    assert int(steps[weak].max()) == 2
    assert 2 < int(steps.max()) <= 7


def test_rhythm_and_pitch_tokens_alternate() -> None:
    tokens = interleave_tokens(torch.tensor([[1, 9]]), torch.tensor([[LOWEST, LOWEST + 2]]))
    assert tokens.tolist() == [[BEGIN, 1, FIRST_PITCH, 9, FIRST_PITCH + 2]]
    melodies = generate_melodies(50, seed=0)
    tokens = interleave_tokens(rhythm_tokens(melodies.durations), melodies.pitches)
    assert int(tokens[:, 1::2].max()) < FIRST_PITCH <= int(tokens[:, 2::2].min())
    assert int(tokens.max()) < VOCABULARY


def test_greedy_generation_matches_the_full_model() -> None:
    torch.manual_seed(0)
    model = gpt(VOCABULARY, 33, width=16, depth=1).eval()
    rhythm = rhythm_tokens(generate_melodies(3, notes=5, seed=0).durations)
    pitches = generate_melody(model, rhythm, greedy)
    assert LOWEST <= int(pitches.min()) <= int(pitches.max()) <= HIGHEST
    logits = model(interleave_tokens(rhythm, pitches))[:, 1:-1:2, FIRST_PITCH:]  # after each token of rhythm
    assert torch.equal(logits.argmax(-1) + LOWEST, pitches)


def test_nll_is_the_log_of_the_number_of_allowed_pitches() -> None:
    durations, pitches = torch.tensor([[3, 1, 4]]), torch.tensor([[72, 71, 76]])
    expected = torch.tensor([[4.0, 2.0, 4.0]]).double().log()  # E G C E; B D; E G C E
    torch.testing.assert_close(melody_nll(Melodies(durations, pitches)), expected)


@pytest.mark.parametrize(("count", "notes"), [(0, 4), (3, 0)])
def test_invalid_arguments_raise_value_error(count: int, notes: int) -> None:
    with pytest.raises(ValueError, match="count and notes must be at least 1"):
        generate_melodies(count, notes=notes)


def test_note_longer_than_half_a_bar_raises_value_error() -> None:
    with pytest.raises(ValueError, match="durations must be from 1 to 4 eighths; got 2 to 5"):
        rhythm_tokens(torch.tensor([[2, 5]]))


def test_empty_rhythm_raises_value_error() -> None:
    with pytest.raises(ValueError, match="rhythm must have at least one note"):
        generate_melody(gpt(VOCABULARY, 8, width=16), torch.zeros(2, 0, dtype=torch.int64), greedy)
