"""Music as sequences: keys, pieces with a form, chorales, models that continue them; and sounds as models hear them."""

from parnassus.music.companding import compand, error_bound, expand, from_tokens, levels, to_tokens
from parnassus.music.form import form_entropy, modulating_pieces, sections
from parnassus.music.inpainting import fill_in_turn, vary
from parnassus.music.keys import KEYS, Key, key_of, key_scores, share_in_key
from parnassus.music.listener import Cepstra, Listener, LogMel, WavePieces, fitted
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
from parnassus.music.spectra import cepstra, dct_matrix, from_cepstra, hertz, istft, log_mel, mel, mel_filters, stft
from parnassus.music.voices import VoiceTokens, transposed

__all__ = [
    "KEYS",
    "Cepstra",
    "Key",
    "Listener",
    "LogMel",
    "Melodies",
    "Solos",
    "VoiceTokens",
    "WavePieces",
    "cepstra",
    "chord_name",
    "chord_tone_share",
    "chord_tones",
    "compand",
    "dct_matrix",
    "error_bound",
    "expand",
    "factorised",
    "fill_in_turn",
    "fitted",
    "form_entropy",
    "from_cepstra",
    "from_tokens",
    "hertz",
    "istft",
    "key_of",
    "key_scores",
    "levels",
    "log_mel",
    "mel",
    "mel_filters",
    "melodies",
    "melody_for",
    "melody_nats",
    "modulating_pieces",
    "rhythm_tokens",
    "sections",
    "share_in_key",
    "solo_nats",
    "solos_over_chords",
    "stft",
    "strong_tone_share",
    "to_tokens",
    "transposed",
    "vary",
]
