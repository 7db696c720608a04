"""Spectra and cepstra: what a sound is made of, frame by frame (book sec. 10.1.2).

A wave x of N_x samples becomes frames of N samples, one every H; each is faded in and out and taken apart into
frequencies. Ears tell low ones apart better than high ones, and loudness by its logarithm: hence mel bands and logs.
"""

from math import expm1, log, log1p, pi, sqrt
from typing import TypeVar

import torch
from jaxtyping import Complex, Float
from torch import Tensor

Pitch = TypeVar("Pitch", float, Tensor)

BREAK, SCALE = 700.0, 1000 / log(1 + 1000 / 700)
"""Hertz up to which hearing is nearly linear, and the factor that makes 1,000 Hz 1,000 mel: 1127."""


def stft(wave: Float[Tensor, "*batch time"], *, window: int, hop: int) -> Complex[Tensor, "*batch bins frames"]:
    """X_km = Σ_n w_n x_{n + mH − N/2} e^{−2πi kn/N},   w_n = ½ (1 − cos(2πn/N)) (Hann's window).

    Bins k = 0 … N/2 stand for the frequencies k rate/N; frame m has its middle at sample mH, and outside of the wave
    there is silence. `window` is N, even; `hop` is H, at most N/2, so that no sample is overlooked.
    """
    _require_frames(window, hop)
    if wave.shape[-1] < window:
        raise ValueError(f"a wave must be as long as a window; got {wave.shape[-1]} samples, window={window}")
    rows = wave.reshape(-1, wave.shape[-1])
    spectrum = torch.stft(
        rows, window, hop, window=_hann(wave, window), center=True, pad_mode="constant", return_complex=True
    )
    return spectrum.unflatten(0, wave.shape[:-1]) if wave.ndim > 1 else spectrum[0]


def istft(
    spectrum: Complex[Tensor, "*batch bins frames"], *, hop: int, length: int
) -> Float[Tensor, "*batch {length}"]:
    """The wave of `length` samples whose transform comes nearest: x_n = Σ_m w y_m / Σ_m w² (Griffin & Lim 1984).

    y_m is the inverse transform of frame m. Of a spectrum that is the `stft` of a wave, it is that wave.
    """
    window = 2 * (spectrum.shape[-2] - 1)
    _require_frames(window, hop)
    if not window <= length < hop * spectrum.shape[-1]:
        raise ValueError(
            f"a length must reach from a window to where the frames end; got {length=}, {window=}, "
            f"{spectrum.shape[-1]} frames of hop={hop}"
        )
    rows = spectrum.reshape(-1, *spectrum.shape[-2:])
    wave = torch.istft(rows, window, hop, window=_hann(spectrum.real, window), center=True, length=length)
    return wave.unflatten(0, spectrum.shape[:-2]) if spectrum.ndim > 2 else wave[0]


def mel(hertz: Pitch) -> Pitch:
    """Pitch as it is heard, m = 1127 ln(1 + f/700): 1,000 mel at 1,000 Hz (Stevens, Volkmann & Newman 1937).

    They drew the scale as a curve; this formula is the usual fit to it (O'Shaughnessy 1987).
    """
    return SCALE * (hertz / BREAK).log1p() if isinstance(hertz, Tensor) else SCALE * log1p(hertz / BREAK)


def hertz(mel: Pitch) -> Pitch:
    """The inverse of `mel`: f = 700 (exp(m/1127) − 1)."""
    return BREAK * (mel / SCALE).expm1() if isinstance(mel, Tensor) else BREAK * expm1(mel / SCALE)


def mel_filters(
    bands: int, *, window: int, rate: int, lowest: float = 0.0, highest: float | None = None
) -> Float[Tensor, "{bands} bins"]:
    """Triangles F_bk over the bins, equally far apart in mel; each is 0 where its neighbours have their peaks of 1.

    So they add up to 1 from the first peak to the last (Davis & Mermelstein 1980). They reach from `lowest` to
    `highest` hertz, half the rate unless told.
    """
    highest = rate / 2 if highest is None else highest
    if bands < 1 or not 0 <= lowest < highest <= rate / 2:
        raise ValueError(
            f"need at least one band, and 0 ≤ lowest < highest ≤ rate/2; got {bands=}, {lowest=}, {highest=}, {rate=}"
        )
    _require_frames(window, window // 2)
    corners = hertz(torch.linspace(mel(lowest), mel(highest), bands + 2, dtype=torch.float64))
    left, peak, right = corners[:-2, None], corners[1:-1, None], corners[2:, None]
    bins = torch.arange(window // 2 + 1, dtype=torch.float64) * rate / window
    filters = torch.minimum((bins - left) / (peak - left), (right - bins) / (right - peak)).clamp_min(0)
    empty = (filters.sum(1) == 0).nonzero()[:, 0]
    if len(empty):
        raise ValueError(
            f"no bin falls into band {int(empty[0])} of {bands}: take fewer bands or a longer window; got {window=}"
        )
    return filters.to(torch.get_default_dtype())


def log_mel(
    wave: Float[Tensor, "*batch time"], filters: Float[Tensor, "bands bins"], *, hop: int, floor: float = 1e-4
) -> Float[Tensor, "*batch bands frames"]:
    """log(ε + Σ_k F_bk |X_km|²): how loud each band is in each frame; ε, the `floor`, is what silence has."""
    power = stft(wave, window=2 * (filters.shape[1] - 1), hop=hop).abs().square()
    return (floor + filters.to(power) @ power).log()


def dct_matrix(size: int) -> Float[Tensor, "{size} {size}"]:
    """C_jn = √(2/N) cos(π j (n + ½)/N), its first row over √2: the orthonormal cosine transform, DCT-II."""
    if size < 1:
        raise ValueError(f"a transform needs at least one number; got size={size}")
    n = torch.arange(size, dtype=torch.float64)
    matrix = sqrt(2 / size) * (pi * n[:, None] * (n + 0.5) / size).cos()
    matrix[0] /= sqrt(2)
    return matrix.to(torch.get_default_dtype())


def cepstra(
    log_spectrum: Float[Tensor, "*batch bands frames"], count: int | None = None
) -> Float[Tensor, "*batch coefficients frames"]:
    """c_j = Σ_b C_jb log_spectrum_b, the first `count` of them; of log-mel frames, MFCC (Davis & Mermelstein 1980).

    Filtering multiplies spectra, so it adds cepstra. The first ones tell the smooth outline of a spectrum, which is
    the shape of the mouth; the pitch, a fine comb, is left to the later ones.
    """
    bands = log_spectrum.shape[-2]
    count = bands if count is None else count
    if not 1 <= count <= bands:
        raise ValueError(f"there are as many cepstra as bands, and one is needed; got {count=}, {bands} bands")
    return dct_matrix(bands).to(log_spectrum)[:count] @ log_spectrum


def from_cepstra(
    coefficients: Float[Tensor, "*batch count frames"], bands: int
) -> Float[Tensor, "*batch {bands} frames"]:
    """The log spectrum of these cepstra; with fewer than `bands` of them, its smooth outline."""
    count = coefficients.shape[-2]
    if count > bands:
        raise ValueError(f"there are as many cepstra as bands; got {count} of {bands} bands")
    return dct_matrix(bands).to(coefficients)[:count].mT @ coefficients


def _hann(like: Tensor, window: int) -> Tensor:
    return torch.hann_window(window, dtype=like.dtype, device=like.device)


def _require_frames(window: int, hop: int) -> None:
    if window < 2 or window % 2 or not 1 <= hop <= window // 2:
        raise ValueError(f"a window must be even and a hop from 1 to half of it; got {window=}, {hop=}")
