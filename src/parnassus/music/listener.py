"""A transformer that hears: a sound becomes a row of tokens, and is read like a sentence (book sec. 10.1.2).

What the tokens are is for a part of its own to say: bands of a spectrum, cepstra, or pieces of the wave itself. The
reader is the vision transformer, to which a sound is a picture one pixel high (after Gong, Chung & Glass 2021, who cut
square patches out of log-mel spectra).
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pad

from parnassus.attention.vit import vit
from parnassus.music.companding import levels, to_tokens
from parnassus.music.spectra import cepstra, log_mel, mel_filters


class LogMel(nn.Module):
    """A token a frame: how loud each mel band is; frames overlap by half."""

    filters: Tensor

    def __init__(self, bands: int, *, window: int, rate: int) -> None:
        super().__init__()
        self.hop = window // 2
        self.register_buffer("filters", mel_filters(bands, window=window, rate=rate), persistent=False)

    def forward(self, wave: Float[Tensor, "batch time"]) -> Float[Tensor, "batch bands frames"]:
        return log_mel(wave, self.filters, hop=self.hop)


class Cepstra(nn.Module):
    """A token a frame: the first cepstra of its log-mel bands, and so less of the pitch."""

    def __init__(self, spectrum: LogMel, count: int) -> None:
        super().__init__()
        bands = len(spectrum.filters)
        if not 1 <= count <= bands:
            raise ValueError(f"there are as many cepstra as bands, and one is needed; got {count=}, {bands} bands")
        self.spectrum, self.count = spectrum, count

    def forward(self, wave: Float[Tensor, "batch time"]) -> Float[Tensor, "batch count frames"]:
        return cepstra(self.spectrum(wave), self.count)


class WavePieces(nn.Module):
    """A token a piece of `size` samples, each rounded to one of 256 µ-law levels; what is left at the end is dropped.

    A token for each sample would be truer to language models, and cost attention `size`² times as much.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        if size < 1:
            raise ValueError(f"a piece must have at least one sample; got size={size}")
        self.size = size

    def forward(self, wave: Float[Tensor, "batch time"]) -> Float[Tensor, "batch size pieces"]:
        if wave.shape[1] < self.size:
            raise ValueError(f"a wave must be as long as a piece; got {wave.shape[1]} samples, size={self.size}")
        whole = wave[:, : wave.shape[1] // self.size * self.size]
        pieces: Tensor = levels(to_tokens(whole)).to(wave).unflatten(1, (-1, self.size))
        return pieces.mT


class Listener(nn.Module):
    """p(class | wave): `hear` makes tokens of a wave of `samples` samples, a transformer reads them.

    Every number of a token is scaled to mean 0 and variance 1 over the sounds that `adapt` was given.
    """

    mean: Tensor
    scale: Tensor

    def __init__(
        self, hear: nn.Module, samples: int, classes: int, *, width: int = 64, heads: int = 4, depth: int = 2
    ) -> None:
        super().__init__()
        if classes < 2:
            raise ValueError(f"there must be two classes to tell apart; got classes={classes}")
        self.hear, self.samples = hear, samples
        _, numbers, tokens = hear(torch.zeros(1, samples)).shape
        self.transformer = vit((numbers, 1, tokens), classes, patch=1, width=width, heads=heads, depth=depth)
        self.register_buffer("mean", torch.zeros(numbers, 1))
        self.register_buffer("scale", torch.ones(numbers, 1))

    @torch.no_grad()
    def adapt(self, waves: Float[Tensor, "count time"]) -> None:
        """Learn what is usual, from the sounds to train on."""
        heard = torch.cat([self.hear(part) for part in waves.split(256)]).transpose(0, 1).flatten(1)
        self.mean.copy_(heard.mean(1, keepdim=True))
        self.scale.copy_(heard.std(1, keepdim=True, correction=0).clamp_min(1e-6))

    def picture(self, waves: Float[Tensor, "batch time"]) -> Float[Tensor, "batch numbers 1 tokens"]:
        """What the transformer is given: a picture one pixel high, whose colours are the numbers of a token."""
        scaled: Tensor = (self.hear(waves) - self.mean) / self.scale
        return scaled.unsqueeze(2)

    def forward(self, waves: Float[Tensor, "batch time"]) -> Float[Tensor, "batch classes"]:
        """Logits of each class."""
        logits: Tensor = self.transformer(self.picture(waves))
        return logits

    def loss(self, waves: Float[Tensor, "batch time"], label: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
        """−log p of the right class, a mean over the sounds."""
        return cross_entropy(self(waves), label)


def fitted(waves: Sequence[Float[Tensor, "_"]], samples: int) -> Float[Tensor, "count {samples}"]:
    """Waves of one length and loudness: of each its loudest stretch, with silence behind it, and 1 its highest peak.

    Loudest is the stretch with most energy; of a wave that is shorter, or of several alike, the first.
    """
    if samples < 1:
        raise ValueError(f"a stretch must have at least one sample; got samples={samples}")
    rows = []
    for wave in waves:
        energy = pad(wave.double().square().cumsum(0), (1, 0))
        start = int((energy[samples:] - energy[:-samples]).argmax()) if len(wave) > samples else 0
        stretch = wave[start : start + samples]
        peak = stretch.abs().max().clamp_min(torch.finfo(wave.dtype).tiny) if len(stretch) else 1.0
        rows.append(pad(stretch / peak, (0, samples - len(stretch))))
    return torch.stack(rows)
