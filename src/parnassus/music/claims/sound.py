"""Spectra, cepstra and quantised waves, checked (book sec. 10.1.2)."""

from math import log, pi

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, at_least, at_most, claim, close
from parnassus.music.companding import LEVELS, MU, compand, error_bound, expand, from_tokens, levels, to_tokens
from parnassus.music.listener import LogMel, WavePieces
from parnassus.music.spectra import cepstra, dct_matrix, from_cepstra, hertz, istft, log_mel, mel, mel_filters, stft

RATE, WINDOW, HOP = 8_000, 256, 64


@claim("B10.1.2-9")
def a_frame_has_the_energy_of_its_spectrum() -> Evidence:
    """Σ_n |w_n x_n|² = 1/N Σ_k |X_k|² in each frame, and (8H/3N) 1/N Σ_mk |X_mk|² = Σ_n |x_n|² in all (Parseval).

    Hann's windows squared add up to 3N/8H everywhere, once a third of a window or less lies between them; bins between
    the first and the last count twice, for the negative frequencies.
    """
    torch.manual_seed(0)
    wave = torch.randn(3, 2_000, dtype=torch.float64)
    wave[:, :WINDOW] = wave[:, -WINDOW:] = 0  # the first and the last samples lie in fewer frames
    power = stft(wave, window=WINDOW, hop=HOP).abs().square()
    energy = (2 * power.sum(1) - power[:, 0] - power[:, -1]) / WINDOW
    padded = torch.nn.functional.pad(wave, (WINDOW // 2, WINDOW // 2))
    frames = padded.unfold(1, WINDOW, HOP) * torch.hann_window(WINDOW, dtype=torch.float64)
    whole = 8 * HOP / (3 * WINDOW) * energy.sum(1)
    return all_of(
        frames=close(energy, frames.square().sum(2), atol=1e-9),
        whole=close(whole, wave.square().sum(1), rtol=1e-12),
    )


@claim("B10.1.2-9")
def a_wave_comes_back_from_its_spectrum() -> Evidence:
    """The inverse gives every sample back, the first and the last too, in single and in double precision."""
    torch.manual_seed(0)
    errors = {}
    for name, dtype in (("single", torch.float32), ("double", torch.float64)):
        wave = torch.rand(2, 1_537, dtype=dtype) * 2 - 1
        again = istft(stft(wave, window=WINDOW, hop=WINDOW // 2), hop=WINDOW // 2, length=1_537)
        errors[name] = (again - wave).abs().max()
    return all_of(single=at_most(errors["single"], 1e-6), double=at_most(errors["double"], 1e-14))


@claim("B10.1.2-9")
def mel_filters_leave_nothing_out() -> Evidence:
    """Between the first peak and the last the triangles add up to 1; peaks are equally far apart in mel."""
    bands = 24
    filters = mel_filters(bands, window=WINDOW, rate=RATE).double()
    peaks = hertz(torch.linspace(0, mel(RATE / 2), bands + 2, dtype=torch.float64)[1:-1])
    bins = torch.arange(WINDOW // 2 + 1) * RATE / WINDOW
    inside = (bins >= peaks[0]) & (bins <= peaks[-1])
    fine = mel_filters(bands, window=64 * WINDOW, rate=RATE).argmax(1) * RATE / (64 * WINDOW)
    return all_of(
        sums=close(filters.sum(0)[inside], 1.0, atol=1e-6),
        outside=at_most(filters.sum(0)[~inside], 1.0),
        peaks=close(mel(fine.double()), mel(peaks), atol=1.0),
        thousand=close(mel(1000.0), 1000.0, atol=1e-9),
    )


@claim("B10.1.2-9")
def filtering_a_sound_adds_to_its_cepstra() -> Evidence:
    """X = S H makes log|X| = log|S| + log|H|, and cepstra are linear: those of mouth and voice are added.

    S is a pulse every 50 samples and some breath, H a resonance at 700 Hz. The voice shows as a peak at its period
    among the late cepstra; what the resonance has lies in the early ones.
    """
    torch.manual_seed(0)
    size, period = 1_000, 50
    source = 0.01 * torch.randn(size, dtype=torch.float64)
    source[::period] += 1
    time = torch.arange(size, dtype=torch.float64)
    ringing = (-pi * 100 / RATE * time).exp() * (2 * pi * 700 / RATE * time).sin() + (time == 0)
    voice, mouth = torch.fft.rfft(source), torch.fft.rfft(ringing)
    sound = torch.stack([source.roll(shift) for shift in range(size)], 1) @ ringing  # filtering, as a sum over echoes
    parts = [cepstra(spectrum.abs().log()[:, None])[:, 0] for spectrum in (torch.fft.rfft(sound), voice, mouth)]
    early = parts[2][1:25].square().sum() / parts[2][1:].square().sum()
    return all_of(
        added=close(parts[0], parts[1] + parts[2], atol=1e-6),
        pitch=close(float(25 + parts[0][25:75].argmax()), float(period), atol=0),
        outline=at_least(early, 0.9),
    )


@claim("B10.1.2-9")
def the_cosine_transform_is_orthonormal() -> Evidence:
    """C Cᵀ = I, so all cepstra give the log spectrum back, and the first few its nearest smooth outline."""
    torch.manual_seed(0)
    bands = 32
    matrix = dct_matrix(bands).double()
    frames = log_mel(torch.rand(2, 2_000) * 2 - 1, mel_filters(bands, window=WINDOW, rate=RATE), hop=HOP).double()
    few = cepstra(frames, 13)
    lost = (from_cepstra(few, bands) - frames).square().sum()
    return all_of(
        orthonormal=close(matrix @ matrix.T, torch.eye(bands), atol=1e-6),
        inverse=close(from_cepstra(cepstra(frames), bands), frames, atol=1e-5),
        lost=close(lost, cepstra(frames)[:, 13:].square().sum(), rtol=1e-5),
    )


@claim("B10.1.2-16")
def quantised_samples_stay_near_the_wave() -> Evidence:
    """|x̂ − x| ≤ (1/µ + |x|)((1 + µ)^(1/256) − 1) at every x; the curve has an inverse, and tokens come back."""
    wave = torch.linspace(-1, 1, 200_001, dtype=torch.float64)
    tokens = to_tokens(wave)
    error, bound = (expand(levels(tokens).double()) - wave).abs(), error_bound(wave)
    return all_of(
        bound=at_most(error, bound + 1e-12),
        reached=at_least((error / bound).max(), 0.99),
        inverse=close(expand(compand(wave)), wave, atol=1e-12),
        tokens=close(to_tokens(from_tokens(tokens)).double(), tokens.double(), atol=0),
        used=close(float(len(tokens.unique())), float(LEVELS), atol=0),
    )


@claim("B10.1.2-16")
def soft_sounds_are_worth_more_levels() -> Evidence:
    """Noise of quantisation, in dB under a wave even on [−a, a]: as the law of small steps has it, for both codes.

        uniform: a²/3 over δ²/3,   µ-law: a²/3 over (δ ln(1 + µ)/µ)² (1 + µa + µ²a²/3)/3,   δ = 1/256

    At a = 1/64 µ-law gains more than 20 dB, at a = 1 it loses 10: it is nearly as good for soft sounds as for loud.
    """
    torch.manual_seed(0)
    loudness = torch.tensor([1 / 64, 1 / 16, 1 / 4, 1.0], dtype=torch.float64)
    waves = loudness[:, None] * (2 * torch.rand(4, 400_000, dtype=torch.float64) - 1)
    steps = ((waves + 1) * (LEVELS / 2)).long().clamp_max(LEVELS - 1)
    uniform = _decibels(waves, (steps + 0.5) / (LEVELS / 2) - 1)
    companded = _decibels(waves, from_tokens(to_tokens(waves)).double())
    spread = MU * loudness
    slope = (log(1 + MU) / MU) ** 2 * (1 + spread + spread.square() / 3)
    ideal = 20 * (LEVELS * loudness).log10()
    return all_of(
        uniform=close(uniform, ideal, atol=0.1),
        companded=close(companded, ideal - 10 * slope.log10(), atol=0.2),  # a may lie within a step
        gain=at_least(companded[0] - uniform[0], 20.0),
        loss=at_most(companded[-1] - uniform[-1], -10.0),
        evenness=at_most(companded.max() - companded.min(), 4.0),
    )


@claim("B10.1.2-16")
def a_later_start_changes_the_wave_and_not_the_spectrum() -> Evidence:
    """A steady tone of 250 Hz with overtones, begun half a period later: its pieces turn round, its frames stay."""
    time = torch.arange(4_000) / RATE
    tone = sum(((2 * pi * 250 * k * time).sin() / k for k in (1, 3, 5)), torch.zeros(4_000))
    now, later = 0.7 * tone[None, :-16], 0.7 * tone[None, 16:]
    changes = []
    for hear in (WavePieces(HOP), LogMel(24, window=WINDOW, rate=RATE)):
        middle = slice(4, -4)  # at the ends there is silence beside the tone
        heard, moved = hear(now)[..., middle], hear(later)[..., middle]
        changes.append(float((heard - moved).norm() / heard.norm()))
    return all_of(wave=at_least(changes[0], 1.9), spectrum=at_most(changes[1], 0.01))


def _decibels(wave: Tensor, coded: Tensor) -> Tensor:
    """How much louder the wave is than what coding did to it."""
    return 10 * (wave.square().mean(-1) / (coded - wave).square().mean(-1)).log10()
