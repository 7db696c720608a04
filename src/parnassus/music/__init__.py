"""Music as sequences: keys, pieces with a form, chorales, and models that continue them."""

from parnassus.music.form import form_entropy, modulating_pieces, sections
from parnassus.music.inpainting import fill_in_turn, vary
from parnassus.music.keys import KEYS, Key, key_of, key_scores, share_in_key
from parnassus.music.rhythm import (
    Melodies,
    factorised,
    melodies,
    melody_for,
    melody_nats,
    rhythm_tokens,
    strong_tone_share,
)
from parnassus.music.solo import Solos, chord_name, chord_tone_share, chord_tones, solo_nats, solos_over_chords
from parnassus.music.voices import VoiceTokens, transposed

__all__ = [
    "KEYS",
    "Key",
    "Melodies",
    "Solos",
    "VoiceTokens",
    "chord_name",
    "chord_tone_share",
    "chord_tones",
    "factorised",
    "fill_in_turn",
    "form_entropy",
    "key_of",
    "key_scores",
    "melodies",
    "melody_for",
    "melody_nats",
    "modulating_pieces",
    "rhythm_tokens",
    "sections",
    "share_in_key",
    "solo_nats",
    "solos_over_chords",
    "strong_tone_share",
    "transposed",
    "vary",
]
