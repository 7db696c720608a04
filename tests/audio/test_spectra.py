"""Spectra, mel bands and cepstra compared with SciPy; inverses and invalid arguments."""

import math

import numpy as np
import pytest
import scipy.fft
import scipy.signal
import torch

from parnassus.audio import (
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

RATE = 8_000


def noise(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return 2 * torch.rand(*shape, dtype=dtype, generator=torch.Generator().manual_seed(0)) - 1


@pytest.mark.parametrize(("window", "hop", "time"), [(256, 128, 1_000), (64, 16, 333), (30, 7, 95)])
def test_stft_matches_scipy(window: int, hop: int, time: int) -> None:
    wave = noise(2, time)
    _, _, expected = scipy.signal.stft(
        wave.numpy(), window="hann", nperseg=window, noverlap=window - hop, boundary="zeros", padded=False
    )
    spectrum = stft(wave, window=window, hop=hop)
    torch.testing.assert_close(spectrum, torch.from_numpy(expected) * window / 2)  # SciPy divides by the window sum


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("window", "hop", "time"), [(256, 128, 256), (256, 64, 1_537), (32, 9, 500)])
def test_istft_inverts_stft(window: int, hop: int, time: int, dtype: torch.dtype) -> None:
    wave = noise(2, 3, time, dtype=dtype)
    spectrum = stft(wave, window=window, hop=hop)
    assert spectrum.shape == (2, 3, window // 2 + 1, 1 + time // hop)
    if time < hop * spectrum.shape[-1]:
        restored = istft(spectrum, hop=hop, length=time)
        assert restored.dtype == dtype
        torch.testing.assert_close(restored, wave, atol=1e-6, rtol=0)


def test_spectrum_of_a_pure_tone_peaks_at_its_frequency() -> None:
    time = torch.arange(2_000, dtype=torch.float64) / RATE
    peak_bin = stft((2 * torch.pi * 1_000 * time).sin(), window=256, hop=64).abs()[:, 10].argmax()
    assert int(peak_bin) * RATE / 256 == 1_000


def test_batched_log_mel_spectrogram_matches_single_waves() -> None:
    wave, filters = noise(3, 600), mel_filters(12, window=128, rate=RATE).double()
    single = torch.stack([log_mel_spectrogram(row, filters, hop=64) for row in wave])
    torch.testing.assert_close(log_mel_spectrogram(wave, filters, hop=64), single)


def test_log_mel_spectrogram_matches_scipy() -> None:
    wave, filters = noise(700), mel_filters(10, window=128, rate=RATE).double()
    _, _, expected = scipy.signal.stft(wave.numpy(), nperseg=128, noverlap=96, boundary="zeros", padded=False)
    expected_power = torch.from_numpy(np.abs(expected * 64) ** 2)
    expected_log_mel = (torch.einsum("bk,km->bm", filters, expected_power) + 1e-4).log()
    torch.testing.assert_close(log_mel_spectrogram(wave, filters, hop=32), expected_log_mel)


def test_mel_to_hertz_inverts_hertz_to_mel() -> None:
    frequency = torch.linspace(0, 20_000, 50, dtype=torch.float64)
    torch.testing.assert_close(mel_to_hertz(hertz_to_mel(frequency)), frequency)
    assert hertz_to_mel(1_000.0) == pytest.approx(1_000)
    assert mel_to_hertz(hertz_to_mel(440.0)) == pytest.approx(440)
    assert hertz_to_mel(700.0) == pytest.approx(1_127 * math.log(2), abs=0.02)
    assert bool((hertz_to_mel(frequency).diff() > 0).all())


def test_mel_filters_are_triangles_with_unit_peaks() -> None:
    filters = mel_filters(10, window=8_000, rate=RATE)  # one bin per hertz
    corners = [round(mel_to_hertz(hertz_to_mel(RATE / 2) * index / 11)) for index in range(12)]
    for row, lower, peak, upper in zip(filters, corners, corners[1:], corners[2:], strict=False):
        assert int(row.argmax()) == pytest.approx(peak, abs=1)
        assert float(row.max()) == pytest.approx(1, abs=0.02)
        support = row.nonzero()[:, 0]
        assert [int(support[0]), int(support[-1])] == pytest.approx([lower, upper], abs=1)
    total = filters.sum(0)[corners[1] + 1 : corners[-2]]
    torch.testing.assert_close(total, torch.ones_like(total))


def test_mel_filters_are_zero_outside_their_range() -> None:
    filters = mel_filters(8, window=512, rate=RATE, lowest=300.0, highest=3_000.0)
    bins = torch.arange(257) * RATE / 512
    assert float(filters[:, (bins <= 300) | (bins >= 3_000)].sum()) == 0


@pytest.mark.parametrize("size", [1, 2, 13, 40])
def test_cosine_transform_matches_scipy(size: int) -> None:
    frames = noise(3, size, 5)
    expected = scipy.fft.dct(frames.numpy(), type=2, norm="ortho", axis=1)
    torch.testing.assert_close(cepstra(frames), torch.from_numpy(expected), atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(dct_matrix(size) @ dct_matrix(size).T, torch.eye(size), atol=1e-6, rtol=0)


def test_invert_cepstra_inverts_cepstra_and_the_first_coefficient_is_the_mean() -> None:
    frames = noise(2, 24, 7)
    torch.testing.assert_close(invert_cepstra(cepstra(frames), 24), frames, atol=1e-6, rtol=0)
    expected = scipy.fft.idct(np.pad(cepstra(frames, 5).numpy(), ((0, 0), (0, 19), (0, 0))), norm="ortho", axis=1)
    torch.testing.assert_close(invert_cepstra(cepstra(frames, 5), 24), torch.from_numpy(expected), atol=1e-6, rtol=1e-6)
    constant = invert_cepstra(cepstra(frames, 1), 24)
    torch.testing.assert_close(constant, frames.mean(1, keepdim=True).expand_as(frames), atol=1e-6, rtol=0)


def test_silence_equals_the_floor_and_has_finite_gradients() -> None:
    wave = torch.zeros(1, 400, requires_grad=True)
    log_mel = log_mel_spectrogram(wave, mel_filters(8, window=64, rate=RATE), hop=32, floor=1e-3)
    torch.testing.assert_close(log_mel, torch.full_like(log_mel, 1e-3).log())
    log_mel.sum().backward()
    assert wave.grad is not None
    assert bool(wave.grad.isfinite().all())


def test_wave_shorter_than_a_window_raises_value_error() -> None:
    with pytest.raises(ValueError, match="as long as the window; got 100 samples, window=128"):
        stft(noise(100), window=128, hop=64)


@pytest.mark.parametrize(("window", "hop"), [(127, 60), (0, 1), (128, 0), (128, 65)])
def test_odd_windows_and_invalid_hops_raise_value_error(window: int, hop: int) -> None:
    with pytest.raises(ValueError, match="even and hop from 1 to half of it"):
        stft(noise(1_000), window=window, hop=hop)


@pytest.mark.parametrize("length", [63, 1_024])
def test_length_out_of_range_raises_value_error(length: int) -> None:
    spectrum = stft(noise(1_000), window=64, hop=32)
    with pytest.raises(ValueError, match="at least the window and smaller than hop times"):
        istft(spectrum, hop=32, length=length)


def test_band_without_a_bin_raises_value_error() -> None:
    with pytest.raises(ValueError, match="got none in band 0: use fewer bands or a longer window"):
        mel_filters(60, window=128, rate=RATE)


@pytest.mark.parametrize(("bands", "lowest", "highest"), [(0, 0.0, 4_000.0), (8, 500.0, 500.0), (8, 0.0, 4_001.0)])
def test_invalid_bands_raise_value_error(bands: int, lowest: float, highest: float) -> None:
    with pytest.raises(ValueError, match="bands must be at least 1 and 0 ≤ lowest < highest ≤ rate/2"):
        mel_filters(bands, window=256, rate=RATE, lowest=lowest, highest=highest)


@pytest.mark.parametrize("count", [0, 25])
def test_invalid_numbers_of_cepstra_raise_value_error(count: int) -> None:
    with pytest.raises(ValueError, match="count must be from 1 to the number of bands"):
        cepstra(noise(24, 3), count)
    with pytest.raises(ValueError, match="as many cepstra as bands; got 25 cepstra, 24 bands"):
        invert_cepstra(noise(25, 3), 24)
    with pytest.raises(ValueError, match="size must be at least 1"):
        dct_matrix(0)
