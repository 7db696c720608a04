"""Spectrogram, mel bands and cepstral envelope of a synthetic vowel (book sec. 10.1.2)."""

from math import log
from typing import Annotated, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import interpolate

from parnassus.atlas.decorators import probe
from parnassus.audio.spectra import cepstra, hertz_to_mel, invert_cepstra, mel_filters, mel_to_hertz, stft
from parnassus.data.built_in.vowels import FORMANTS, RATE, SPEAKERS, WORDS, pulse_train, vocal_tract_filter
from parnassus.widgets import Answer, Curves, FloatSlider, Images, IntSlider, Numbers, Select

WINDOWS = {"5 ms": 40, "20 ms": 160, "64 ms": 512}
"""Samples per window of the spectrogram, by duration."""
SAMPLES, DISPLAYED, HOP = 4_000, 1_200, 8
BANDS, FRAME = 20, 256
"""Number of mel bands, and samples per window for them."""
RANGE = 60 * log(10) / 10
"""60 dB in nats of power: quieter parts of the spectrogram are black."""
FLOOR = 1e-8
SIZE = (180, 360)
"""Height and width of the spectrogram in pixels."""


@probe()
@torch.no_grad()
def vowel_spectrum(
    word: Annotated[int, Select("vowel of", WORDS)] = 4,
    speaker: Annotated[int, Select("speaker", SPEAKERS)] = 0,
    pitch: Annotated[float, FloatSlider("pitch in hertz", 60.0, 400.0, log=True)] = 120.0,
    window: Annotated[int, Select("window", tuple(WINDOWS))] = 2,
    num_cepstra: Annotated[int, IntSlider("cepstral coefficients", 1, BANDS)] = 13,
) -> list[Answer]:
    """Spectrum of a vowel: harmonics of the voice under the formants of the vocal tract (book sec. 10.1.2).

    Changing the pitch moves the harmonics, but not the formants and the envelope; changing the vowel moves the
    formants. A short window resolves single pulses as vertical lines, a long one harmonics as horizontal lines; no
    window resolves both. Fewer cepstra give a smoother envelope.
    """
    formants = torch.tensor([FORMANTS[speaker][k][word] for k in range(3)], dtype=torch.float32)
    length = list(WINDOWS.values())[window]
    analysis = VoiceAnalysis.from_wave(synthesise_vowel(pitch, formants), length, num_cepstra)
    frequencies = torch.linspace(0, RATE / 2, length // 2 + 1).tolist()
    peaks = mel_to_hertz(torch.linspace(0.0, hertz_to_mel(RATE / 2), BANDS + 2)[1:-1]).tolist()
    frame = Curves(
        "Spectrum of the middle frame",
        {
            "spectrum": (frequencies, analysis.spectrum.tolist()),
            f"{BANDS} mel bands": (peaks, analysis.bands.tolist()),
            f"envelope by {num_cepstra} of {BANDS} cepstra": (peaks, analysis.envelope.tolist()),
        },
        x_label="frequency (Hz)",
        y_label="log power relative to its mean",
        marked=float(formants[0]),
        about=f"Mel bands use a window of {1000 * FRAME // RATE} ms. Marked: the first formant.",
    )
    higher = VoiceAnalysis.from_wave(synthesise_vowel(1.1 * pitch, formants), length, num_cepstra)
    changes = {
        f"RMS change of the {name} for 10 % higher pitch (nats)": float((after - before).square().mean().sqrt())
        for name, before, after in (
            ("spectrum", analysis.spectrum, higher.spectrum),
            ("envelope", analysis.envelope, higher.envelope),
        )
    }
    values: dict[str, float | str] = {
        "formants (Hz)": ", ".join(f"{formant:,.0f}" for formant in formants.tolist()),
        **changes,
    }
    about = "Changes are root mean squares over log power."
    return [plot_spectrogram(analysis.power), frame, Numbers("Values", values, about=about)]


class VoiceAnalysis(NamedTuple):
    """Spectrogram of a sound, and log spectrum, log mel bands and their envelope of the middle frame.

    The last three are relative to the mean power of the frame, so that loudness does not matter.
    """

    power: Float[Tensor, "bins frames"]
    spectrum: Float[Tensor, " bins"]
    bands: Float[Tensor, " bands"]
    envelope: Float[Tensor, " bands"]

    @staticmethod
    def from_wave(wave: Float[Tensor, " time"], length: int, num_cepstra: int) -> "VoiceAnalysis":
        power, middle = stft(wave, window=length, hop=HOP).abs().square().clamp_min(FLOOR), SAMPLES // HOP // 2
        filters = mel_filters(BANDS, window=FRAME, rate=RATE)
        frame = stft(wave, window=FRAME, hop=HOP)[:, middle].abs().square().clamp_min(FLOOR)
        bands = (filters @ frame).log()[:, None]
        envelope = invert_cepstra(cepstra(bands, num_cepstra), BANDS)
        mean = (filters.sum(1) * frame.mean()).log()  # a band is a sum over bins
        middle_power = power[:, middle]
        return VoiceAnalysis(
            power, (middle_power / middle_power.mean()).log(), bands[:, 0] - mean, envelope[:, 0] - mean
        )


def synthesise_vowel(pitch: float, formants: Float[Tensor, "3"]) -> Float[Tensor, " time"]:
    """A stationary vowel of half a second with a peak of 1."""
    wave = vocal_tract_filter(pulse_train(torch.full((1, SAMPLES), pitch / RATE)), formants[None])[0]
    return wave / wave.abs().max()


def plot_spectrogram(power: Float[Tensor, "bins frames"]) -> Images:
    """Spectrogram with low frequencies at the bottom."""
    frames = DISPLAYED // HOP
    log_power = power[:, (power.shape[1] - frames) // 2 :][:, :frames].log()
    brightness = 1 + (log_power - log_power.max()) / RANGE
    return Images(
        "Spectrogram",
        interpolate(brightness.clamp(0, 1).flip(0)[None, None], size=SIZE),
        [f"vertical: 0 to {RATE // 2:,} Hz; horizontal: {1000 * DISPLAYED // RATE} ms"],
        about="Bright: high power.",
    )
