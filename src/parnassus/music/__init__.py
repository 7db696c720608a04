"""Symbolic music as sequences: keys, pieces with a form, chorales, rhythms, solos, and inpainting."""

from parnassus.music.form import form_entropy, generate_modulating_pieces, sections
from parnassus.music.inpainting import inpaint, resample_notes
from parnassus.music.keys import KEYS, Key, estimate_key, fraction_in_key, key_scores
from parnassus.music.note_names import format_bars, parse_chord, parse_pitch, pitch_name
from parnassus.music.performance_tokeniser import Performance, decode_performance, encode_performance
from parnassus.music.rhythm import (
    Melodies,
    generate_melodies,
    generate_melody,
    interleave_tokens,
    melody_nll,
    rhythm_tokens,
    strong_chord_tone_fraction,
)
from parnassus.music.solo import Solos, chord_name, chord_tone_fraction, chord_tones, generate_solos, solo_nll
from parnassus.music.voice_tokeniser import VoiceTokeniser, transpose

__all__ = [
    "KEYS",
    "Key",
    "Melodies",
    "Performance",
    "Solos",
    "VoiceTokeniser",
    "chord_name",
    "chord_tone_fraction",
    "chord_tones",
    "decode_performance",
    "encode_performance",
    "estimate_key",
    "form_entropy",
    "format_bars",
    "fraction_in_key",
    "generate_melodies",
    "generate_melody",
    "generate_modulating_pieces",
    "generate_solos",
    "inpaint",
    "interleave_tokens",
    "key_scores",
    "melody_nll",
    "parse_chord",
    "parse_pitch",
    "pitch_name",
    "resample_notes",
    "rhythm_tokens",
    "sections",
    "solo_nll",
    "strong_chord_tone_fraction",
    "transpose",
]
