"""`parnassus sample` for models of music: the written notes are those that the model generates.

The models are untrained; `tests/test_experiments.py` samples from a trained run of each.
"""

import re
from functools import cache
from types import ModuleType
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn

from parnassus.data import DataError
from parnassus.music.experiments import (
    key_finding,
    melody_given_rhythm,
    melody_inpainting,
    music_transformer_chorales,
    seq2seq_solo,
)
from parnassus.music.form import BAR, HIGHEST, LOWEST, PLAN
from parnassus.music.inpainting import inpaint
from parnassus.music.keys import estimate_key
from parnassus.music.note_names import parse_pitch
from parnassus.music.rhythm import EIGHTHS, generate_melody, rhythm_tokens
from parnassus.music.solo import NOTES, chord_name
from parnassus.text.generation import generate
from parnassus.text.sampling import sample_tokens, skip_special_tokens
from parnassus.train import ModelCollection

NOTE = re.compile(r"[A-G][♯♭]?\d")


@cache
def build(module: ModuleType) -> ModelCollection[Any]:
    """The untrained models of an experiment without facts about its data."""
    torch.manual_seed(0)
    return cast("ModelCollection[Any]", module.Experiment(width=16).model().eval())


def build_chorale_model(voices: int) -> music_transformer_chorales.ChoraleModel:
    torch.manual_seed(0)
    return music_transformer_chorales.Experiment(width=16).model(lowest=48, highest=72, voices=voices, window=33).eval()


def write(model: nn.Module, how: Any) -> list[list[str]]:
    """The lines of each written piece."""
    torch.manual_seed(0)
    with torch.no_grad():
        pieces = "".join(how.write(model)).split("\n\n")
    lines = [piece.strip().split("\n") for piece in pieces]
    assert [first for first, *_ in lines] == [f"piece {number}" for number in range(1, len(lines) + 1)]
    return [rest for _, *rest in lines]


def pitches(text: str) -> Tensor:
    return torch.tensor([parse_pitch(name) for name in NOTE.findall(text)])


def test_voices_are_written_line_by_line() -> None:
    model = build_chorale_model(voices=1)
    pieces = write(model, music_transformer_chorales.Sample(num_samples=2, num_steps=6))
    torch.manual_seed(0)
    tokens = generate(model.model, torch.zeros(2, 1, dtype=torch.int64), skip_special_tokens(sample_tokens, 1), 6)
    for (line,), row in zip(pieces, tokens, strict=True):
        names = line.replace("|", " ").split()
        expected = ["-" if token == 1 else token - 2 + model.tokeniser.lowest for token in row.tolist()]
        assert [name if name == "-" else parse_pitch(name) for name in names] == expected
        assert line.index("|") > line.index(names[BAR - 1])


def test_four_voices_are_sampled_together() -> None:
    model = build_chorale_model(voices=4)
    ((*voices,),) = write(model, music_transformer_chorales.Sample(num_samples=1, num_steps=3))
    torch.manual_seed(0)
    tokens = generate(model.model, torch.zeros(1, 1, dtype=torch.int64), skip_special_tokens(sample_tokens, 1), 12)
    assert len(voices) == 4
    soprano = [name if name == "-" else parse_pitch(name) for name in voices[0].split()]
    assert soprano == ["-" if token == 1 else token + 46 for token in tokens[0, ::4].tolist()]


@pytest.mark.parametrize("network", ["relative", "absolute", "lstm"])
def test_sections_are_written_with_their_keys(network: Any) -> None:
    model = build(key_finding)
    (lines,) = write(model, key_finding.Sample(num_samples=1, network=network))
    length = len(PLAN) * 4 * BAR
    start = torch.full((1, 1), key_finding.START)
    torch.manual_seed(0)
    expected = generate(model.model(network), start, skip_special_tokens(sample_tokens, 1), length)[0]
    notes = [pitches(line) for line in lines]
    assert torch.cat(notes).equal(expected - 1 + LOWEST)
    assert [line[:8].strip() for line in lines] == [str(estimate_key(part)) for part in notes]
    assert all(line.count("|") == 3 for line in lines)


def test_melodies_have_the_given_rhythm() -> None:
    model = build(melody_given_rhythm)
    durations = [2, 2, 4, 3, 1, 4]
    how = melody_given_rhythm.Sample(rhythm="2 2 4 3 1 4", num_samples=2)
    pieces = write(model, how)
    rhythm = rhythm_tokens(torch.tensor([durations, durations]))
    torch.manual_seed(0)
    expected = generate_melody(model.model("with_rhythm"), rhythm, sample_tokens)
    for (line,), row in zip(pieces, expected, strict=True):
        assert pitches(line).equal(row)
        assert [int(length) for length in re.findall(r":(\d)", line)] == durations
        assert [len(bar.split()) for bar in line.split(" | ")] == [3, 3]


def test_random_rhythms_fill_whole_bars() -> None:
    for (line,) in write(build(melody_given_rhythm), melody_given_rhythm.Sample(num_samples=20)):
        bars = [sum(map(int, re.findall(r":(\d)", bar))) for bar in line.split(" | ")]
        assert set(bars[:-1]) == {EIGHTHS}
        assert len(NOTE.findall(line)) == 16


def test_solos_are_written_chord_by_chord() -> None:
    model = build(seq2seq_solo)
    (lines,) = write(model, seq2seq_solo.Sample(chords="C Am F#", num_samples=1))
    source, start = torch.tensor([[1, 1 + 19, 1 + 12]]), torch.full((1, 1), seq2seq_solo.BEGIN)
    decoder = model.model("with_chords").condition_on(source)
    torch.manual_seed(0)
    expected = generate(decoder, start, skip_special_tokens(sample_tokens, 2), 3 * NOTES)[0]
    assert [line.split()[0] for line in lines] == ["C", "Am", "F♯"]
    assert pitches(" ".join(line[3:] for line in lines)).equal(expected - 2 + 60)


def test_random_progressions_end_with_a_cadence() -> None:
    for lines in write(build(seq2seq_solo), seq2seq_solo.Sample(num_samples=10)):
        names = [line.split()[0] for line in lines]
        assert len(names) == 6
        assert (names[0], *names[-2:]) == (chord_name(0), chord_name(14), chord_name(0))


def test_only_the_gaps_of_a_melody_are_filled() -> None:
    model = build(melody_inpainting)
    melody = "C4 E4 G4 E4 _ _ _ _ C4 D4 E4 C4"
    ((line,),) = write(model, melody_inpainting.Sample(melody=melody, num_samples=1))
    given = [parse_pitch(name) if name != "_" else None for name in melody.split()]
    tokens = torch.tensor([[0] + [1 if pitch is None else pitch - LOWEST + 2 for pitch in given]])
    torch.manual_seed(0)
    filled = inpaint(model.model("masked"), tokens, sample_tokens)[0, 1:] - 2 + LOWEST
    assert pitches(line).equal(filled)
    assert [int(pitch) for pitch, known in zip(filled, given, strict=True) if known is not None] == [
        known for known in given if known is not None
    ]


def test_invalid_input_raises_an_error() -> None:
    rhythm, solo, inpainting = map(build, (melody_given_rhythm, seq2seq_solo, melody_inpainting))
    with pytest.raises(DataError, match="rhythm must have 1 to 16 durations in eighths; got '2 x'"):
        write(rhythm, melody_given_rhythm.Sample(rhythm="2 x"))
    with pytest.raises(ValueError, match="durations must be from 1 to 4 eighths; got 2 to 5"):
        write(rhythm, melody_given_rhythm.Sample(rhythm="2 5"))
    with pytest.raises(DataError, match="chords must have 1 to 6 names"):
        write(solo, seq2seq_solo.Sample(chords="C F G C F G C"))
    with pytest.raises(DataError, match="melody must have at most 32 notes, as many as in training; got 33"):
        write(inpainting, melody_inpainting.Sample(melody="_ " * 33))
    with pytest.raises(DataError, match="notes must lie between F3 and C♯6"):
        write(inpainting, melody_inpainting.Sample(melody="C8 _"))
    assert parse_pitch("C♯6") == HIGHEST
