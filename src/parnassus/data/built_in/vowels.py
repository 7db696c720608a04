"""Vowels by the source-filter model: glottal pulses and the resonances of the vocal tract (Fant 1960).

Nothing is downloaded: ten vowels of American English with the mean pitch and formants that Peterson & Barney (1952,
table II) measured for men, women and children, and random deviations for each voice.
"""

from math import pi

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from parnassus.data.files.sound import Recordings, SoundDataset

WORDS = ("heed", "hid", "head", "had", "hod", "hawed", "hood", "who'd", "hud", "heard")
"""One word per vowel, in the order of the tables below."""
SPEAKERS = ("man", "woman", "child")
PITCH = (
    (136, 135, 130, 127, 124, 129, 137, 141, 130, 133),
    (235, 232, 223, 210, 212, 216, 232, 231, 221, 218),
    (272, 269, 260, 251, 256, 263, 276, 274, 261, 261),
)
"""Fundamental frequency in hertz, by speaker and vowel."""
FORMANTS = (
    (
        (270, 390, 530, 660, 730, 570, 440, 300, 640, 490),
        (2290, 1990, 1840, 1720, 1090, 840, 1020, 870, 1190, 1350),
        (3010, 2550, 2480, 2410, 2440, 2410, 2240, 2240, 2390, 1690),
    ),
    (
        (310, 430, 610, 860, 850, 590, 470, 370, 760, 500),
        (2790, 2480, 2330, 2050, 1220, 920, 1160, 950, 1400, 1640),
        (3310, 3070, 2990, 2850, 2810, 2710, 2680, 2670, 2780, 1960),
    ),
    (
        (370, 530, 690, 1010, 1030, 680, 560, 430, 850, 560),
        (3200, 2730, 2610, 2320, 1370, 1060, 1410, 1170, 1590, 1820),
        (3730, 3600, 3570, 3320, 3170, 3180, 3310, 3260, 3360, 2160),
    ),
)
"""Frequencies of the first three formants in hertz, by speaker, formant and vowel."""
BANDWIDTHS = (60.0, 90.0, 150.0)
"""Bandwidths of the formants in hertz, close to those of Klatt (1980)."""
RATE, MIN_DURATION, MAX_DURATION = 8_000, 0.15, 0.45
"""Sampling rate in hertz, and the range of the duration of a vowel in seconds."""


def vowels(train: int = 2_000, test: int = 500, *, seed: int = 0) -> SoundDataset:
    """Ten vowels by men, women and children at 8 kHz; the test set has different voices, from a different seed."""
    if min(train, test) < 1:
        raise ValueError(f"train and test must be at least 1; got train={train}, test={test}")
    return SoundDataset("vowels", spoken_vowels(train, seed=2 * seed), spoken_vowels(test, seed=2 * seed + 1), WORDS)


def spoken_vowels(count: int, *, seed: int = 0) -> Recordings:
    """Vowels by random voices, with the words in cyclic order."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(count, *shape, generator=generator)

    def uniform(low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(count, 1, generator=generator)

    word = torch.arange(count) % len(WORDS)
    speaker = torch.randint(len(SPEAKERS), (count,), generator=generator)
    pitch = torch.tensor(PITCH)[speaker, word, None] * (0.1 * normal(1)).exp()
    formant_scale = (0.05 * normal(1) + 0.05 * normal(3)).exp()  # the common factor is the vocal tract length
    formants = (torch.tensor(FORMANTS)[speaker, :, word] * formant_scale).clamp_max(0.48 * RATE)
    length = (RATE * uniform(MIN_DURATION, MAX_DURATION)).long()
    time = torch.arange(int(RATE * MAX_DURATION))
    frequency = pitch * (1 + uniform(-0.15, 0.15) * time / length)  # rising or falling pitch
    aspiration = uniform(0.01, 0.1) * normal(len(time))
    fade = torch.minimum(time, length - 1 - time).div(0.02 * RATE).clamp(0, 1)
    wave = fade * vocal_tract_filter(pulse_train(frequency / RATE) + aspiration, formants)
    wave = uniform(0.2, 0.9) * wave / wave.abs().amax(1, keepdim=True)
    background = 0.003 * 10 ** uniform(0.0, 1.0) * normal(len(time))
    wave = (wave + background).clamp(-1, 1)
    waves = [each[:end] for each, end in zip(wave, length[:, 0].tolist(), strict=True)]
    return Recordings(waves, word, [SPEAKERS[kind] for kind in speaker.tolist()], RATE)


def pulse_train(frequency: Float[Tensor, "count time"]) -> Float[Tensor, "count time"]:
    """A unit pulse per cycle; `frequency` is in cycles per sample, and may change over time.

    A pulse between two samples is split between them, so that a period need not be an integer number of samples.
    """
    phase = frequency.cumsum(1)
    is_pulse = phase.floor() > (phase - frequency).floor()
    delay = torch.where(is_pulse, (phase - phase.floor()) / frequency, 0.0).clamp(0, 1)  # since the pulse, in samples
    current = torch.where(is_pulse, 1 - delay, 0.0)
    return current + torch.nn.functional.pad(delay[:, 1:], (0, 1))


def vocal_tract_filter(
    source: Float[Tensor, "count time"], formants: Float[Tensor, "count resonances"]
) -> Float[Tensor, "count time"]:
    """The source through the vocal tract, X(f) = S(f) V(f) H(f), zero-padded against circular convolution.

    V = (1 − z⁻¹) / (1 − 0.9 z⁻¹)²: the glottal spectrum falls by 12 dB per octave, lip radiation adds 6 dB per octave.
    """
    size = 2 * source.shape[1]
    z_inverse = torch.polar(torch.ones(size // 2 + 1), -2 * pi * torch.arange(size // 2 + 1) / size)  # z⁻¹ of each bin
    spectrum = (
        torch.fft.rfft(source, size) * (1 - z_inverse) / (1 - 0.9 * z_inverse) ** 2 * resonances(formants, z_inverse)
    )
    wave: Tensor = torch.fft.irfft(spectrum, size)
    return wave[:, : source.shape[1]]


def resonances(
    formants: Float[Tensor, "count resonances"], z_inverse: Complex[Tensor, " bins"]
) -> Complex[Tensor, "count bins"]:
    """H(f) = ∏_i (1 − b_i − c_i) / (1 − b_i z⁻¹ − c_i z⁻²), z = e^{2πi f/rate}: resonances at each F_i.

        r_i = e^{−π B_i/rate},   b_i = 2 r_i cos(2π F_i/rate),   c_i = −r_i²          (Klatt 1980)

    `z_inverse` is z⁻¹ at each frequency.
    """
    radius = (-pi * torch.tensor(BANDWIDTHS) / RATE).exp()
    b, c = 2 * radius * (2 * pi * formants / RATE).cos(), -radius.square()
    return ((1 - b - c)[..., None] / (1 - b[..., None] * z_inverse - c[:, None] * z_inverse**2)).prod(1)
