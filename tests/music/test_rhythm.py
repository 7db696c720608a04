"""Rhythm and pitch as two factors: metre, tokens, and a melody for a given rhythm."""

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


def test_every_rhythm_fills_a_bar() -> None:
    assert {sum(bar) for bar in RHYTHMS} == {8}


def test_the_places_of_a_dotted_rhythm() -> None:
    durations = torch.tensor([[3, 1, 4, 2, 2, 4]])
    assert bar_positions(durations).tolist() == [[0, 3, 4, 0, 2, 4]]
    assert is_strong_beat(durations).tolist() == [[True, False, True, True, False, True]]
    assert rhythm_tokens(durations)[0, :3].tolist() == [1 + 2, 1 + 12, 1 + 16 + 3]


def test_melodies_obey_the_metre() -> None:
    music = generate_melodies(300, seed=2)
    assert strong_chord_tone_fraction(music.pitches, music.durations) == 1.0
    assert torch.isin(music.pitches % 12, torch.tensor([0, 2, 4, 5, 7, 9, 11])).all()
    weak = ~is_strong_beat(music.durations)[:, 1:]
    steps = music.pitches.diff(dim=1).abs()
    assert int(steps[weak].max()) == 2
    assert 2 < int(steps.max()) <= 7


def test_factors_stand_in_turn() -> None:
    tokens = interleave_tokens(torch.tensor([[1, 9]]), torch.tensor([[LOWEST, LOWEST + 2]]))
    assert tokens.tolist() == [[BEGIN, 1, FIRST_PITCH, 9, FIRST_PITCH + 2]]
    music = generate_melodies(50, seed=0)
    drawn = interleave_tokens(rhythm_tokens(music.durations), music.pitches)
    assert int(drawn[:, 1::2].max()) < FIRST_PITCH <= int(drawn[:, 2::2].min())
    assert int(drawn.max()) < VOCABULARY


def test_a_melody_for_a_rhythm_is_what_the_whole_model_says() -> None:
    torch.manual_seed(0)
    model = gpt(VOCABULARY, 33, width=16, depth=1).eval()
    rhythm = rhythm_tokens(generate_melodies(3, notes=5, seed=0).durations)
    found = generate_melody(model, rhythm, greedy)
    assert LOWEST <= int(found.min()) <= int(found.max()) <= HIGHEST
    logits = model(interleave_tokens(rhythm, found))[:, 1:-1:2, FIRST_PITCH:]  # after each token of rhythm
    assert torch.equal(logits.argmax(-1) + LOWEST, found)


def test_nats_are_the_log_of_how_many_pitches_are_allowed() -> None:
    durations, pitches = torch.tensor([[3, 1, 4]]), torch.tensor([[72, 71, 76]])
    wanted = torch.tensor([[4.0, 2.0, 4.0]]).double().log()  # E G C E; B D; E G C E
    torch.testing.assert_close(melody_nll(Melodies(durations, pitches)), wanted)


@pytest.mark.parametrize(("count", "notes"), [(0, 4), (3, 0)])
def test_no_melody_is_refused(count: int, notes: int) -> None:
    with pytest.raises(ValueError, match="count and notes must be at least 1"):
        generate_melodies(count, notes=notes)


def test_a_note_longer_than_a_half_is_refused() -> None:
    with pytest.raises(ValueError, match="durations must be from 1 to 4 eighths; got 2 to 5"):
        rhythm_tokens(torch.tensor([[2, 5]]))


def test_an_empty_rhythm_is_refused() -> None:
    with pytest.raises(ValueError, match="rhythm must have at least one note"):
        generate_melody(gpt(VOCABULARY, 8, width=16), torch.zeros(2, 0, dtype=torch.int64), greedy)
