"""A voice to touch: pitch, mouth and window, and what spectra and cepstra make of them (book sec. 10.1.2)."""

from math import log
from typing import Annotated, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import interpolate

from parnassus.atlas.marks import probe
from parnassus.data.vowels import FORMANTS, RATE, SPEAKERS, WORDS, filtered, pulses
from parnassus.music.spectra import cepstra, from_cepstra, hertz, mel, mel_filters, stft
from parnassus.touch import Answer, Curves, Images, Numbers, Pick, Real, Whole

WINDOWS = {"5 ms": 40, "20 ms": 160, "64 ms": 512}
"""Samples of a window of the spectrogram, by its length."""
SAMPLES, SHOWN, HOP = 4_000, 1_200, 8
BANDS, FRAME = 20, 256
"""Mel bands, and the samples of the window they are taken from."""
RANGE = 60 * log(10) / 10
"""What is softer than the loudest place by 60 dB is black."""
FLOOR = 1e-8
SIZE = (180, 360)
"""Pixels of the picture, whatever the window."""


@probe()
@torch.no_grad()
def a_voice_and_its_spectrum(
    word: Annotated[int, Pick("vowel of", WORDS)] = 4,
    speaker: Annotated[int, Pick("mouth of a", SPEAKERS)] = 0,
    pitch: Annotated[float, Real("pitch in hertz", 60.0, 400.0, log=True)] = 120.0,
    window: Annotated[int, Pick("window", tuple(WINDOWS))] = 2,
    kept: Annotated[int, Whole("cepstra kept", 1, BANDS)] = 13,
) -> list[Answer]:
    """A vowel as a spectrum: the voice draws the teeth, the mouth the hills (book sec. 10.1.2).

    Move the pitch: the teeth of the comb move apart, the hills stay where the mouth has put them, and so does the
    outline. Change the vowel: now the hills move. A short window shows single pulses as upright lines, a long one
    overtones as level ones; no window shows both. Keep fewer cepstra, and the hills melt into one.
    """
    formants = torch.tensor([FORMANTS[speaker][k][word] for k in range(3)], dtype=torch.float32)
    length = list(WINDOWS.values())[window]
    heard = Heard.of(spoken(pitch, formants), length, kept)
    places = torch.linspace(0, RATE / 2, length // 2 + 1).tolist()
    peaks = hertz(torch.linspace(0.0, mel(RATE / 2), BANDS + 2)[1:-1]).tolist()
    frame = Curves(
        "A frame in the middle",
        {
            "spectrum": (places, heard.spectrum.tolist()),
            f"{BANDS} mel bands": (peaks, heard.bands.tolist()),
            f"outline by {kept} of {BANDS} cepstra": (peaks, heard.outline.tolist()),
        },
        x_label="hertz",
        y_label="log of the power, beside its mean",
        marked=float(formants[0]),
        about=f"Bands are taken from {1000 * FRAME // RATE} ms. Marked: the first resonance of the mouth.",
    )
    higher = Heard.of(spoken(1.1 * pitch, formants), length, kept)
    moved = {
        f"a pitch a tenth higher moves the {name} by, nats": float((after - before).square().mean().sqrt())
        for name, before, after in (
            ("spectrum", heard.spectrum, higher.spectrum),
            ("outline", heard.outline, higher.outline),
        )
    }
    told: dict[str, float | str] = {
        "resonances, hertz": ", ".join(f"{place:,.0f}" for place in formants.tolist()),
        **moved,
    }
    about = "Moves are root mean squares of the changed logarithms."
    return [picture(heard.power), frame, Numbers("In numbers", told, about=about)]


class Heard(NamedTuple):
    """The spectra of a sound; of the one in the middle logarithms, its own, its bands' and their outline's.

    All three are beside the mean power there: how loud a sound is does not count.
    """

    power: Float[Tensor, "bins frames"]
    spectrum: Float[Tensor, " bins"]
    bands: Float[Tensor, " bands"]
    outline: Float[Tensor, " bands"]

    @staticmethod
    def of(wave: Float[Tensor, " time"], length: int, kept: int) -> "Heard":
        power, middle = stft(wave, window=length, hop=HOP).abs().square().clamp_min(FLOOR), SAMPLES // HOP // 2
        filters = mel_filters(BANDS, window=FRAME, rate=RATE)
        frame = stft(wave, window=FRAME, hop=HOP)[:, middle].abs().square().clamp_min(FLOOR)
        bands = (filters @ frame).log()[:, None]
        outline = from_cepstra(cepstra(bands, kept), BANDS)
        mean = (filters.sum(1) * frame.mean()).log()  # a band is a sum over bins
        at_once = power[:, middle]
        return Heard(power, (at_once / at_once.mean()).log(), bands[:, 0] - mean, outline[:, 0] - mean)


def spoken(pitch: float, formants: Float[Tensor, "3"]) -> Float[Tensor, " time"]:
    """A steady vowel of half a second, as loud as can be."""
    wave = filtered(pulses(torch.full((1, SAMPLES), pitch / RATE)), formants[None])[0]
    return wave / wave.abs().max()


def picture(power: Float[Tensor, "bins frames"]) -> Images:
    """Spectra side by side, low frequencies below."""
    frames = SHOWN // HOP
    shown = power[:, (power.shape[1] - frames) // 2 :][:, :frames].log()
    loud = 1 + (shown - shown.max()) / RANGE
    return Images(
        "The spectrogram",
        interpolate(loud.clamp(0, 1).flip(0)[None, None], size=SIZE),
        [f"0 to {RATE // 2:,} Hz upwards, {1000 * SHOWN // RATE} ms from left to right"],
        about="Bright is loud.",
    )
