"""Short-time Fourier transform, mel bands and cepstra (book sec. 10.1.2).

A wave becomes windowed frames of N samples, one every H samples, each with its spectrum. Hearing resolves low
frequencies better than high ones and perceives loudness logarithmically: hence mel bands and logarithms.
"""

from math import expm1, log, log1p, pi, sqrt
from typing import TypeVar

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from parnassus.errors import check_at_least_one

Pitch = TypeVar("Pitch", float, Tensor)

BREAK, SCALE = 700.0, 1000 / log(1 + 1000 / 700)
"""Frequency below which the mel scale is nearly linear, and the factor 1127 that maps 1,000 Hz to 1,000 mel."""


def stft(wave: Float[Tensor, "*batch time"], *, window: int, hop: int) -> Complex[Tensor, "*batch bins frames"]:
    """X_km = Σ_n w_n x_{n + mH − N/2} e^{−2πi kn/N},   w_n = ½ (1 − cos(2πn/N)) (Hann window).

    Bins k = 0 … N/2 have the frequencies k rate/N; frame m is centred at sample mH, and the wave is padded with zeros.
    `window` is N, even; `hop` is H, at most N/2, so that every sample is covered.
    """
    _check_frames(window, hop)
    if wave.shape[-1] < window:
        raise ValueError(f"wave must be at least as long as the window; got {wave.shape[-1]} samples, window={window}")
    rows = wave.reshape(-1, wave.shape[-1])
    spectrum = torch.stft(
        rows, window, hop, window=_hann(wave, window), center=True, pad_mode="constant", return_complex=True
    )
    return spectrum.unflatten(0, wave.shape[:-1]) if wave.ndim > 1 else spectrum[0]


def istft(
    spectrum: Complex[Tensor, "*batch bins frames"], *, hop: int, length: int
) -> Float[Tensor, "*batch {length}"]:
    """Least-squares inverse of `stft`, of `length` samples: x_n = Σ_m w y_m / Σ_m w² (Griffin & Lim 1984).

    y_m is the inverse transform of frame m. The inverse is exact if the spectrum is the `stft` of a wave.
    """
    window = 2 * (spectrum.shape[-2] - 1)
    _check_frames(window, hop)
    if not window <= length < hop * spectrum.shape[-1]:
        raise ValueError(
            "length must be at least the window and smaller than hop times the number of frames; "
            f"got {length=}, {window=}, {hop=}, {spectrum.shape[-1]} frames"
        )
    rows = spectrum.reshape(-1, *spectrum.shape[-2:])
    wave = torch.istft(rows, window, hop, window=_hann(spectrum.real, window), center=True, length=length)
    return wave.unflatten(0, spectrum.shape[:-2]) if spectrum.ndim > 2 else wave[0]


def hertz_to_mel(hertz: Pitch) -> Pitch:
    """The mel scale m = 1127 ln(1 + f/700), 1,000 mel at 1,000 Hz (Stevens, Volkmann & Newman 1937).

    The formula is the usual fit to their curve (O'Shaughnessy 1987).
    """
    return SCALE * (hertz / BREAK).log1p() if isinstance(hertz, Tensor) else SCALE * log1p(hertz / BREAK)


def mel_to_hertz(mel: Pitch) -> Pitch:
    """The inverse of `hertz_to_mel`: f = 700 (exp(m/1127) − 1)."""
    return BREAK * (mel / SCALE).expm1() if isinstance(mel, Tensor) else BREAK * expm1(mel / SCALE)


def mel_filters(
    bands: int, *, window: int, rate: int, lowest: float = 0.0, highest: float | None = None
) -> Float[Tensor, "{bands} bins"]:
    """Triangular filters F_bk over the bins, equally spaced in mel, each 0 at its neighbours' peaks of 1.

    They add up to 1 from the first peak to the last (Davis & Mermelstein 1980) and span `lowest` to `highest` hertz, by
    default half the rate.
    """
    highest = rate / 2 if highest is None else highest
    if bands < 1 or not 0 <= lowest < highest <= rate / 2:
        raise ValueError(
            f"bands must be at least 1 and 0 ≤ lowest < highest ≤ rate/2; got {bands=}, {lowest=}, {highest=}, {rate=}"
        )
    _check_frames(window, window // 2)
    corners = mel_to_hertz(torch.linspace(hertz_to_mel(lowest), hertz_to_mel(highest), bands + 2, dtype=torch.float64))
    left, peak, right = corners[:-2, None], corners[1:-1, None], corners[2:, None]
    bins = torch.arange(window // 2 + 1, dtype=torch.float64) * rate / window
    filters = torch.minimum((bins - left) / (peak - left), (right - bins) / (right - peak)).clamp_min(0)
    empty = (filters.sum(1) == 0).nonzero()[:, 0]
    if len(empty):
        raise ValueError(
            f"every band must contain a bin; got none in band {int(empty[0])}: use fewer bands or a longer window "
            f"({bands=}, {window=})"
        )
    return filters.to(torch.get_default_dtype())


def log_mel_spectrogram(
    wave: Float[Tensor, "*batch time"], filters: Float[Tensor, "bands bins"], *, hop: int, floor: float = 1e-4
) -> Float[Tensor, "*batch bands frames"]:
    """log(ε + Σ_k F_bk |X_km|²): the log-energy of each band in each frame; ε is `floor`."""
    power = stft(wave, window=2 * (filters.shape[1] - 1), hop=hop).abs().square()
    return (floor + filters.to(power) @ power).log()


def dct_matrix(size: int) -> Float[Tensor, "{size} {size}"]:
    """C_jn = √(2/N) cos(π j (n + ½)/N), first row divided by √2: the orthonormal DCT-II."""
    check_at_least_one(size=size)
    n = torch.arange(size, dtype=torch.float64)
    matrix = sqrt(2 / size) * (pi * n[:, None] * (n + 0.5) / size).cos()
    matrix[0] /= sqrt(2)
    return matrix.to(torch.get_default_dtype())


def cepstra(
    log_spectrum: Float[Tensor, "*batch bands frames"], count: int | None = None
) -> Float[Tensor, "*batch coefficients frames"]:
    """The first `count` of c_j = Σ_b C_jb log_spectrum_b; of log-mel frames, MFCC (Davis & Mermelstein 1980).

    Filtering multiplies spectra, so it adds cepstra. The first coefficients describe the smooth envelope of the
    spectrum, which the vocal tract determines; the fine structure of the pitch is in the later ones.
    """
    bands = log_spectrum.shape[-2]
    count = bands if count is None else count
    if not 1 <= count <= bands:
        raise ValueError(f"count must be from 1 to the number of bands; got {count=}, {bands} bands")
    return dct_matrix(bands).to(log_spectrum)[:count] @ log_spectrum


def invert_cepstra(
    coefficients: Float[Tensor, "*batch count frames"], bands: int
) -> Float[Tensor, "*batch {bands} frames"]:
    """The log spectrum of these cepstra; with fewer than `bands` of them, its smooth envelope."""
    count = coefficients.shape[-2]
    if count > bands:
        raise ValueError(f"there must be at most as many cepstra as bands; got {count} cepstra, {bands} bands")
    return dct_matrix(bands).to(coefficients)[:count].mT @ coefficients


def _hann(like: Tensor, window: int) -> Tensor:
    return torch.hann_window(window, dtype=like.dtype, device=like.device)


def _check_frames(window: int, hop: int) -> None:
    if window < 2 or window % 2 or not 1 <= hop <= window // 2:
        raise ValueError(f"window must be even and hop from 1 to half of it; got {window=}, {hop=}")
