"""Names of pitches and chords: scientific pitch notation, and its inverse."""

import pytest

from parnassus.music.note_names import format_bars, parse_chord, parse_pitch, pitch_name
from parnassus.music.solo import CHORDS, chord_name


def test_known_pitches_have_their_names() -> None:
    names = {21: "A0", 59: "B3", 60: "C4", 61: "C♯4", 69: "A4", 70: "B♭4", 108: "C8"}
    assert {pitch: pitch_name(pitch) for pitch in names} == names


def test_parsing_inverts_naming() -> None:
    assert [parse_pitch(pitch_name(pitch)) for pitch in range(128)] == list(range(128))
    assert [parse_chord(chord_name(chord)) for chord in range(CHORDS)] == list(range(CHORDS))


def test_enharmonic_names_are_the_same_pitch() -> None:
    assert parse_pitch("F#4") == parse_pitch("Gb4") == parse_pitch("G♭4") == 66
    assert parse_pitch("Cb4") == parse_pitch("B3")
    assert parse_chord("Cb") == parse_chord("B")
    assert parse_chord("D#m") == parse_chord("Ebm") == 7


def test_unknown_names_raise_value_error() -> None:
    for name in ("H4", "C", "c4", "C4x", "C##4", ""):
        with pytest.raises(ValueError, match=f"a pitch must be a name with an octave.*; got '{name}'"):
            parse_pitch(name)
    for name in ("H", "c", "Cmaj7", "C4", ""):
        with pytest.raises(ValueError, match=f"a chord must be a name.*; got '{name}'"):
            parse_chord(name)


def test_bars_are_separated_and_aligned() -> None:
    assert format_bars(["C4", "C♯4", "D4", "-", "E4"], 2) == "C4  C♯4 | D4  -   | E4"
    assert format_bars([], 4) == ""
