"""A transformer that classifies sounds as sequences of tokens (book sec. 10.1.2).

A front end computes the tokens: log-mel frames, cepstra, or patches of the wave. The classifier is a vision transformer
on an image one pixel high (after Gong, Chung & Glass 2021, who use square patches of log-mel spectrograms).
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pad

from parnassus.arrays import accepts_arrays
from parnassus.attention.models.vit import vit
from parnassus.audio.mu_law import companded_levels, mu_law_encode
from parnassus.audio.spectra import cepstra, log_mel_spectrogram, mel_filters
from parnassus.errors import check_at_least_one


class LogMelSpectrogram(nn.Module):
    """Front end with one token per frame: its log-mel bands; frames overlap by half."""

    filters: Tensor

    def __init__(self, bands: int, *, window: int, rate: int) -> None:
        super().__init__()
        self.hop = window // 2
        self.register_buffer("filters", mel_filters(bands, window=window, rate=rate), persistent=False)

    def forward(self, wave: Float[Tensor, "batch time"]) -> Float[Tensor, "batch bands frames"]:
        return log_mel_spectrogram(wave, self.filters, hop=self.hop)


class MFCC(nn.Module):
    """Front end with one token per frame: the first cepstra of its log-mel bands (MFCC)."""

    def __init__(self, spectrum: LogMelSpectrogram, count: int) -> None:
        super().__init__()
        bands = len(spectrum.filters)
        if not 1 <= count <= bands:
            raise ValueError(f"count must be from 1 to the number of bands; got {count=}, {bands} bands")
        self.spectrum, self.count = spectrum, count

    def forward(self, wave: Float[Tensor, "batch time"]) -> Float[Tensor, "batch count frames"]:
        return cepstra(self.spectrum(wave), self.count)


class WavePatches(nn.Module):
    """Front end with one token per patch of `size` samples in 256 µ-law levels; an incomplete last patch is dropped.

    One token per sample, as in language models, would cost attention `size`² times as much.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        check_at_least_one(size=size)
        self.size = size

    def forward(self, wave: Float[Tensor, "batch time"]) -> Float[Tensor, "batch size patches"]:
        if wave.shape[1] < self.size:
            raise ValueError(f"wave must be at least as long as a patch; got {wave.shape[1]} samples, size={self.size}")
        trimmed = wave[:, : wave.shape[1] // self.size * self.size]
        patches: Tensor = companded_levels(mu_law_encode(trimmed)).to(wave).unflatten(1, (-1, self.size))
        return patches.mT


class SoundClassifier(nn.Module):
    """p(class | wave): `frontend` computes tokens of a wave of `samples` samples, a transformer classifies them.

    Each feature of a token is standardised by the mean and variance that `fit_normalisation` has measured.
    """

    mean: Tensor
    scale: Tensor

    def __init__(
        self, frontend: nn.Module, samples: int, classes: int, *, width: int = 64, heads: int = 4, depth: int = 2
    ) -> None:
        super().__init__()
        if classes < 2:
            raise ValueError(f"classes must be at least 2; got classes={classes}")
        self.frontend, self.samples = frontend, samples
        _, features, tokens = frontend(torch.zeros(1, samples)).shape
        self.transformer = vit((features, 1, tokens), classes, patch=1, width=width, heads=heads, depth=depth)
        self.register_buffer("mean", torch.zeros(features, 1))
        self.register_buffer("scale", torch.ones(features, 1))

    @torch.no_grad()
    def fit_normalisation(self, waves: Float[Tensor, "count time"]) -> None:
        """Measure mean and variance of each feature over the training sounds."""
        tokens = torch.cat([self.frontend(part) for part in waves.split(256)]).transpose(0, 1).flatten(1)
        self.mean.copy_(tokens.mean(1, keepdim=True))
        self.scale.copy_(tokens.std(1, keepdim=True, correction=0).clamp_min(1e-6))

    def token_image(self, waves: Float[Tensor, "batch time"]) -> Float[Tensor, "batch features 1 tokens"]:
        """The transformer's input: an image one pixel high whose channels are the features of a token."""
        scaled: Tensor = (self.frontend(waves) - self.mean) / self.scale
        return scaled.unsqueeze(2)

    def forward(self, waves: Float[Tensor, "batch time"]) -> Float[Tensor, "batch classes"]:
        """Logits of each class."""
        logits: Tensor = self.transformer(self.token_image(waves))
        return logits

    @accepts_arrays
    def loss(self, waves: Float[Tensor, "batch time"], label: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
        """Mean of −log p(label)."""
        return cross_entropy(self(waves), label)


def crop_and_normalise(waves: Sequence[Float[Tensor, "_"]], samples: int) -> Float[Tensor, "count {samples}"]:
    """The segment of each wave with the most energy, scaled to a peak of 1 and padded with zeros to `samples` samples.

    Ties go to the first segment.
    """
    check_at_least_one(samples=samples)
    rows = []
    for wave in waves:
        energy = pad(wave.double().square().cumsum(0), (1, 0))
        start = int((energy[samples:] - energy[:-samples]).argmax()) if len(wave) > samples else 0
        segment = wave[start : start + samples]
        peak = segment.abs().max().clamp_min(torch.finfo(wave.dtype).tiny) if len(segment) else 1.0
        rows.append(pad(segment / peak, (0, samples - len(segment))))
    return torch.stack(rows)
