"""Claims about spectra, cepstra and quantised waves (book sec. 10.1.2)."""

from math import log, pi

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal
from parnassus.audio.mu_law import (
    LEVELS,
    MU,
    compand,
    companded_levels,
    expand,
    mu_law_decode,
    mu_law_encode,
    quantisation_error_bound,
)
from parnassus.audio.sound_classifier import (
    MFCC,
    LogMelSpectrogram,
    SoundClassifier,
    WavePatches,
    crop_and_normalise,
)
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

RATE, WINDOW, HOP = 8_000, 256, 64


@claim("B10.1.2-9")
def spectra_satisfy_parsevals_theorem() -> Evidence:
    """Σ_n |w_n x_n|² = 1/N Σ_k |X_k|² in each frame, and (8H/3N) 1/N Σ_mk |X_mk|² = Σ_n |x_n|² in all (Parseval).

    Squared Hann windows add up to 3N/8H everywhere if H ≤ N/3; bins between the first and the last count twice, for the
    negative frequencies.
    """
    torch.manual_seed(0)
    wave = torch.randn(3, 2_000, dtype=torch.float64)
    wave[:, :WINDOW] = wave[:, -WINDOW:] = 0  # the first and the last samples lie in fewer frames
    power = stft(wave, window=WINDOW, hop=HOP).abs().square()
    energy = (2 * power.sum(1) - power[:, 0] - power[:, -1]) / WINDOW
    padded = torch.nn.functional.pad(wave, (WINDOW // 2, WINDOW // 2))
    frames = padded.unfold(1, WINDOW, HOP) * torch.hann_window(WINDOW, dtype=torch.float64)
    total_energy = 8 * HOP / (3 * WINDOW) * energy.sum(1)
    return all_of(
        frames=close(energy, frames.square().sum(2), atol=1e-9),
        total=close(total_energy, wave.square().sum(1), rtol=1e-12),
    )


@claim("B10.1.2-9")
def istft_inverts_stft() -> Evidence:
    """The inverse restores every sample, including the first and last, in single and double precision."""
    torch.manual_seed(0)
    errors = {}
    for name, dtype in (("single", torch.float32), ("double", torch.float64)):
        wave = torch.rand(2, 1_537, dtype=dtype) * 2 - 1
        restored = istft(stft(wave, window=WINDOW, hop=WINDOW // 2), hop=WINDOW // 2, length=1_537)
        errors[name] = (restored - wave).abs().max()
    return all_of(single=less_equal(errors["single"], 1e-6), double=less_equal(errors["double"], 1e-14))


@claim("B10.1.2-9")
def mel_filters_add_up_to_one() -> Evidence:
    """Between the first and the last peak the filters add up to 1; peaks are equally spaced in mel."""
    bands = 24
    filters = mel_filters(bands, window=WINDOW, rate=RATE).double()
    peaks = mel_to_hertz(torch.linspace(0, hertz_to_mel(RATE / 2), bands + 2, dtype=torch.float64)[1:-1])
    bins = torch.arange(WINDOW // 2 + 1) * RATE / WINDOW
    inside = (bins >= peaks[0]) & (bins <= peaks[-1])
    fine = mel_filters(bands, window=64 * WINDOW, rate=RATE).argmax(1) * RATE / (64 * WINDOW)
    return all_of(
        sums=close(filters.sum(0)[inside], 1.0, atol=1e-6),
        outside=less_equal(filters.sum(0)[~inside], 1.0),
        peaks=close(hertz_to_mel(fine.double()), hertz_to_mel(peaks), atol=1.0),
        at_1000_hertz=close(hertz_to_mel(1000.0), 1000.0, atol=1e-9),
    )


@claim("B10.1.2-9")
def filtering_a_sound_adds_to_its_cepstra() -> Evidence:
    """X = S H gives log|X| = log|S| + log|H|, and cepstra are linear: those of source and filter are added.

    S is a pulse every 50 samples plus noise, H a resonance at 700 Hz. The source has a peak at its period among the
    late cepstra; the energy of the filter lies in the early ones.
    """
    torch.manual_seed(0)
    size, period = 1_000, 50
    source = 0.01 * torch.randn(size, dtype=torch.float64)
    source[::period] += 1
    time = torch.arange(size, dtype=torch.float64)
    impulse_response = (-pi * 100 / RATE * time).exp() * (2 * pi * 700 / RATE * time).sin() + (time == 0)
    source_spectrum, filter_spectrum = torch.fft.rfft(source), torch.fft.rfft(impulse_response)
    shifted = torch.stack([source.roll(shift) for shift in range(size)], 1)
    sound = shifted @ impulse_response  # filtering as a sum of shifted copies
    coefficients = [
        cepstra(spectrum.abs().log()[:, None])[:, 0]
        for spectrum in (torch.fft.rfft(sound), source_spectrum, filter_spectrum)
    ]
    early_fraction = coefficients[2][1:25].square().sum() / coefficients[2][1:].square().sum()
    return all_of(
        added=close(coefficients[0], coefficients[1] + coefficients[2], atol=1e-6),
        pitch=close(float(25 + coefficients[0][25:75].argmax()), float(period), atol=0),
        envelope=greater_equal(early_fraction, 0.9),
    )


@claim("B10.1.2-9")
def the_cosine_transform_is_orthonormal() -> Evidence:
    """C Cᵀ = I: all cepstra restore the log spectrum; the first few give its least-squares smooth envelope."""
    torch.manual_seed(0)
    bands = 32
    matrix = dct_matrix(bands).double()
    frames = log_mel_spectrogram(
        torch.rand(2, 2_000) * 2 - 1, mel_filters(bands, window=WINDOW, rate=RATE), hop=HOP
    ).double()
    truncated = cepstra(frames, 13)
    residual = (invert_cepstra(truncated, bands) - frames).square().sum()
    return all_of(
        orthonormal=close(matrix @ matrix.T, torch.eye(bands), atol=1e-6),
        inverse=close(invert_cepstra(cepstra(frames), bands), frames, atol=1e-5),
        residual=close(residual, cepstra(frames)[:, 13:].square().sum(), rtol=1e-5),
    )


@claim("B10.1.2-16")
def the_quantisation_error_is_bounded() -> Evidence:
    """|x̂ − x| ≤ (1/µ + |x|)((1 + µ)^(1/256) − 1) for all x; `expand` inverts `compand`; decoding inverts encoding."""
    wave = torch.linspace(-1, 1, 200_001, dtype=torch.float64)
    tokens = mu_law_encode(wave)
    error, bound = (expand(companded_levels(tokens).double()) - wave).abs(), quantisation_error_bound(wave)
    return all_of(
        bound=less_equal(error, bound + 1e-12),
        largest_error_relative_to_bound=greater_equal((error / bound).max(), 0.99),
        inverse=close(expand(compand(wave)), wave, atol=1e-12),
        tokens=close(mu_law_encode(mu_law_decode(tokens)).double(), tokens.double(), atol=0),
        all_tokens_are_used=close(float(len(tokens.unique())), float(LEVELS), atol=0),
    )


@claim("B10.1.2-16")
def mu_law_quantises_quiet_sounds_more_finely() -> Evidence:
    """Signal-to-noise ratio for a uniform wave on [−a, a], in the small-step approximation, for both codes.

        uniform: a²/3 over δ²/3,   µ-law: a²/3 over (δ ln(1 + µ)/µ)² (1 + µa + µ²a²/3)/3,   δ = 1/256

    At a = 1/64 µ-law gains more than 20 dB, at a = 1 it loses 10 dB: its SNR is nearly independent of loudness.
    """
    torch.manual_seed(0)
    loudness = torch.tensor([1 / 64, 1 / 16, 1 / 4, 1.0], dtype=torch.float64)
    waves = loudness[:, None] * (2 * torch.rand(4, 400_000, dtype=torch.float64) - 1)
    steps = ((waves + 1) * (LEVELS / 2)).long().clamp_max(LEVELS - 1)
    uniform = _signal_to_noise(waves, (steps + 0.5) / (LEVELS / 2) - 1)
    companded = _signal_to_noise(waves, mu_law_decode(mu_law_encode(waves)).double())
    spread = MU * loudness
    slope = (log(1 + MU) / MU) ** 2 * (1 + spread + spread.square() / 3)
    ideal = 20 * (LEVELS * loudness).log10()
    return all_of(
        uniform=close(uniform, ideal, atol=0.1),
        companded=close(companded, ideal - 10 * slope.log10(), atol=0.2),  # a may fall inside a step
        gain=greater_equal(companded[0] - uniform[0], 20.0),
        loss=less_equal(companded[-1] - uniform[-1], -10.0),
        range_of_snr=less_equal(companded.max() - companded.min(), 4.0),
    )


@claim("B10.1.2-16")
def a_time_shift_changes_wave_patches_but_not_spectra() -> Evidence:
    """A shift of a 250 Hz tone with odd harmonics by half a period flips wave patches; log-mel frames stay the same."""
    time = torch.arange(4_000) / RATE
    tone = sum(((2 * pi * 250 * k * time).sin() / k for k in (1, 3, 5)), torch.zeros(4_000))
    original_wave, shifted_wave = 0.7 * tone[None, :-16], 0.7 * tone[None, 16:]
    changes = []
    for frontend in (WavePatches(HOP), LogMelSpectrogram(24, window=WINDOW, rate=RATE)):
        middle = slice(4, -4)  # frames at the ends include padding
        original, shifted = frontend(original_wave)[..., middle], frontend(shifted_wave)[..., middle]
        changes.append(float((original - shifted).norm() / original.norm()))
    return all_of(wave=greater_equal(changes[0], 1.9), spectrum=less_equal(changes[1], 0.01))


def _signal_to_noise(wave: Tensor, coded: Tensor) -> Tensor:
    """Signal-to-noise ratio in dB."""
    return 10 * (wave.square().mean(-1) / (coded - wave).square().mean(-1)).log10()


@claim("B10.1.2-16")
@torch.no_grad()
def a_classifier_reads_sounds_as_standardised_tokens() -> Evidence:
    """Log-mel bands, cepstra and patches of the same sounds, each feature standardised over the training sounds."""
    torch.manual_seed(0)
    waves = (2 * torch.rand(60, 1_600) - 1) * torch.linspace(0.05, 0.5, 60)[:, None]
    spectrum = LogMelSpectrogram(20, window=WINDOW, rate=RATE)
    parts = {}
    for name, frontend, shape in (
        ("bands", spectrum, (20, 13)),
        ("cepstra", MFCC(spectrum, 9), (9, 13)),
        ("patches", WavePatches(100), (100, 16)),
    ):
        classifier = SoundClassifier(frontend, 1_600, 4, width=16, heads=2, depth=1).eval()
        classifier.fit_normalisation(waves)
        tokens = frontend(waves)
        scaled = torch.stack(
            [(tokens[:, i] - tokens[:, i].mean()) / tokens[:, i].std(correction=0) for i in range(shape[0])], 1
        )
        parts[f"shape_of_{name}"] = close(torch.tensor(tokens.shape[1:]), torch.tensor(shape))
        parts[f"standardised_{name}"] = close(classifier.token_image(waves)[:, :, 0], scaled, atol=1e-3)
        parts[f"classes_of_{name}"] = close(classifier(waves), classifier.transformer(scaled[:, :, None]), atol=1e-4)
    first = dct_matrix(20)[:9].double() @ spectrum(waves).double()
    return all_of(**parts, cepstra_of_bands=close(MFCC(spectrum, 9)(waves), first, atol=1e-4))


@claim("B10.1.2-16")
def cropping_keeps_the_loudest_segment() -> Evidence:
    """Of a long sound the samples with the most energy, of a short one all with zeros behind; the peak is 1."""
    long = torch.tensor([0.1, 0.0, -0.5, 0.25, 0.0, 0.3, 0.0])
    cropped = crop_and_normalise([long, long[2:4]], 3)
    return close(cropped, torch.tensor([[0.0, -1.0, 0.5], [-1.0, 0.5, 0.0]]))
