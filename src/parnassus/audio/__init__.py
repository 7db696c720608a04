"""Sound: short-time spectra, mel bands, cepstra, µ-law companding, and a transformer that classifies sounds."""

from parnassus.audio.mu_law import (
    compand,
    companded_levels,
    expand,
    mu_law_decode,
    mu_law_encode,
    quantisation_error_bound,
)
from parnassus.audio.sound_classifier import MFCC, LogMelSpectrogram, SoundClassifier, WavePatches, crop_and_normalise
from parnassus.audio.spectra import (
    cepstra,
    dct_matrix,
    hertz_to_mel,
    invert_cepstra,
    istft,
    log_mel_spectrogram,
    mel_filters,
    mel_to_hertz,
    stft,
)

__all__ = [
    "MFCC",
    "LogMelSpectrogram",
    "SoundClassifier",
    "WavePatches",
    "cepstra",
    "compand",
    "companded_levels",
    "crop_and_normalise",
    "dct_matrix",
    "expand",
    "hertz_to_mel",
    "invert_cepstra",
    "istft",
    "log_mel_spectrogram",
    "mel_filters",
    "mel_to_hertz",
    "mu_law_decode",
    "mu_law_encode",
    "quantisation_error_bound",
    "stft",
]
