"""One transformer hears sounds as spectra, as cepstra and as waves (book sec. 10.1.2).

Three listeners of one shape learn the same sounds. They differ in what a token is: how loud the mel bands of a frame
are, the first cepstra of these, or a piece of the wave itself in 256 µ-law levels.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from parnassus.attention.maps import attention_maps
from parnassus.data import DataError, Recordings, SoundDataset, Split, open_sounds, read_wav
from parnassus.layers import parameter_count
from parnassus.music.listener import Cepstra, Listener, LogMel, WavePieces, fitted
from parnassus.music.spectra import cepstra, from_cepstra, hertz, log_mel, mel, stft
from parnassus.optim import Adam, one_cycle_rate
from parnassus.report import FAINT, PALETTE, confusion, subplots
from parnassus.report.ink import DIVERGING, SEQUENTIAL
from parnassus.train import Run, SideBySide, at_least, between, descend, reported

covers = ("B10.1.2-9", "B10.1.2-16")
expected = {
    "accuracy/log_mel": at_least(0.94, "share of unseen sounds named right, tokens are log-mel frames"),
    "accuracy/cepstra": at_least(0.93, "the same, tokens are the first cepstra of these frames"),
    "accuracy/wave": between(0.45, 0.72, "the same, tokens are pieces of the µ-law wave"),
    "accuracy/nearest_mean": reported("the same by the class whose mean cepstra, over time and sounds, are nearest"),
    "parameters/log_mel": reported("numbers that the listener learns"),
    "parameters/cepstra": reported("the same of cepstra"),
    "parameters/wave": reported("the same of pieces of waves"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"steps": 6, "batch": 8, "width": 16, "depth": 1, "seconds": 0.2},
    "gpu": {"data": "spoken_digits", "steps": 4_000, "batch": 128, "width": 128, "depth": 4, "lr": 1e-3},
}

WAYS = {"log_mel": "log-mel frames", "cepstra": "cepstra", "wave": "pieces of the wave"}
CHECKS = 10
"""How often while learning the unseen sounds are asked for."""


class Ears(SideBySide[Listener]):
    """Three listeners, and what their answers mean."""

    def __init__(self, listeners: Mapping[str, Listener], *, rate: int, classes: Sequence[str]) -> None:
        super().__init__(listeners)
        self.rate, self.classes = rate, tuple(classes)


@dataclass(frozen=True)
class Experiment:
    data: str = "vowels"  # vowels, spoken_digits, or a folder of yours with a folder of WAV files for each class
    seconds: float = 0.5  # of each sound its loudest stretch of this length is heard; shorter ones end in silence
    frame: float = 32.0  # milliseconds of a frame; there is one every half of it, and so long are pieces of waves
    bands: int = 32  # mel bands
    cepstra: int = 13  # cepstra that are kept
    steps: int = 500  # gradient steps
    batch: int = 32  # sounds a step
    width: int = 64  # numbers for each token inside of a listener
    depth: int = 2  # blocks of a listener
    lr: float = 2e-3  # largest learning rate of the 1cycle

    def model(self, rate: int, classes: Sequence[str]) -> Ears:
        window, samples = 2 * round(self.frame * rate / 2_000), round(self.seconds * rate)
        ways: dict[str, nn.Module] = {
            "log_mel": LogMel(self.bands, window=window, rate=rate),
            "cepstra": Cepstra(LogMel(self.bands, window=window, rate=rate), self.cepstra),
            "wave": WavePieces(window // 2),
        }
        new = partial(Listener, samples=samples, classes=len(classes), width=self.width, depth=self.depth)
        return Ears({name: new(hear) for name, hear in ways.items()}, rate=rate, classes=classes)

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_sounds(self.data)
        if not len(data.test):
            raise DataError(f"{self.data} has too few sounds: none of its {len(data.train)} is left to test with.")
        ears = run.build(self.model, rate=data.train.rate, classes=list(data.classes))
        samples = ears.one("wave").samples
        train, test = (as_split(part, samples).to(run.device) for part in (data.train, data.test))
        ears = ears.to(run.device)
        for _, listener in ears.every():
            listener.adapt(train.x)
        ears, optimizer = run.prepare(ears, partial(Adam, lr=self.lr))
        every = max(1, self.steps // CHECKS)
        for step, loss in descend(run, ears, optimizer, train.pairs(self.batch, self.steps)):
            for group in optimizer.param_groups:
                group["lr"] = one_cycle_rate(step, self.steps, peak=self.lr)
            run.log(step, loss=loss / len(ears))
            if (step + 1) % every == 0:
                run.record(step, **{f"accuracy/{name}": share_right(one, test) for name, one in ears.every()})

        accuracy = {name: share_right(listener, test) for name, listener in ears.every()}
        self.show(run, ears, data, test)
        nearest = nearest_mean(ears.one("cepstra"), train, test)
        run.note(
            "what to see",
            f"Of {len(test)} unseen sounds the listener to log-mel frames names {accuracy['log_mel']:.1%}, the one to "
            f"cepstra {accuracy['cepstra']:.1%} with {self.cepstra} numbers a token instead of {self.bands}, and the "
            f"one to the wave {accuracy['wave']:.1%}: it would have to learn the spectrum first. The same sound never "
            "has the same wave twice, since its pulses fall elsewhere in every piece, but its spectrum stays. Cepstra "
            f"averaged over time, and the nearest class mean, name {nearest:.1%}.",
        )
        return {
            **{f"accuracy/{name}": share for name, share in accuracy.items()},
            "accuracy/nearest_mean": nearest,
            **{f"parameters/{name}": float(parameter_count(listener)) for name, listener in ears.every()},
        }

    def show(self, run: Run, ears: Ears, data: SoundDataset, test: Split) -> None:
        """Sounds and their tokens, what the listeners confuse, and when they listen."""
        rows = first_of_each(data.test.labels)
        chosen = rows[:: max(1, len(rows) // 3)][:3]
        waves, names = test.x[chosen].cpu(), [data.classes[int(data.test.labels[row])] for row in chosen]
        spectrum = ears.one("log_mel").hear
        assert isinstance(spectrum, LogMel)
        filters, hop = spectrum.filters.cpu(), spectrum.hop
        show_tokens(run, waves, names, filters, hop=hop, count=self.cepstra, rate=ears.rate)
        show_filters(run, filters, rate=ears.rate)
        show_outline(run, waves[0], names[0], filters, hop=hop, count=self.cepstra, rate=ears.rate)
        assert test.y is not None
        for name in ("log_mel", "wave"):
            run.figure(
                f"confusion by {WAYS[name]}",
                confusion(test.y.cpu(), named(ears.one(name), test.x).cpu(), data.classes),
                f"How often each unseen sound was given each name by the listener to {WAYS[name]}.",
            )
        show_listening(run, ears, test.x[chosen[:1]], names[0], hop=hop)


@dataclass(frozen=True)
class Sample:
    wav: str = ""  # a WAV file of yours to be named; unless told, one path a line from standard input

    def write(self, model: Ears) -> Iterator[str]:
        for path in [self.wav] if self.wav else (line.strip() for line in sys.stdin):
            try:
                yield f"{path}: {verdict(model, Path(path))}\n"
            except DataError as error:
                if self.wav:
                    raise
                yield f"{error}\n"  # the others may be sounds


def verdict(ears: Ears, path: Path) -> str:
    """What each listener calls the sound in a file, and how sure it is."""
    sound, rate = read_wav(path)
    wave = sound.mean(0)
    if rate != ears.rate:
        raise DataError(f"{path} has {rate} samples a second; this model has learned sounds of {ears.rate}.")
    if not wave.any():
        raise DataError(f"{path} is silent.")
    words = []
    for name, listener in ears.every():
        law = listener(fitted([wave], listener.samples).to(listener.mean.device)).softmax(-1)[0]
        words.append(f"{ears.classes[int(law.argmax())]} ({float(law.max()):.0%}) by {WAYS[name]}")
    return ", ".join(words)


def as_split(recordings: Recordings, samples: int) -> Split:
    return Split(fitted(recordings.waves, samples), recordings.labels)


def first_of_each(labels: Int[Tensor, " rows"]) -> list[int]:
    """The row of the first sound of each class."""
    return [int((labels == label).nonzero()[0, 0]) for label in labels.unique().tolist()]


@torch.no_grad()
def named(listener: Listener, waves: Float[Tensor, "rows samples"]) -> Int[Tensor, " rows"]:
    return torch.cat([listener(part).argmax(-1) for part in waves.split(256)])


def share_right(listener: Listener, test: Split) -> float:
    assert test.y is not None
    return float((named(listener, test.x) == test.y).double().mean())


@torch.no_grad()
def nearest_mean(listener: Listener, train: Split, test: Split) -> float:
    """Without a transformer: tokens averaged over time, and the class whose mean they are nearest to."""
    assert train.y is not None
    assert test.y is not None
    points, asked = (
        torch.cat([listener.picture(part).mean((2, 3)) for part in x.split(256)]) for x in (train.x, test.x)
    )
    means = torch.stack([points[train.y == label].mean(0) for label in train.y.unique()])
    return float((torch.cdist(asked, means).argmin(1) == test.y).double().mean())


def show_tokens(
    run: Run, waves: Tensor, names: Sequence[str], filters: Tensor, *, hop: int, count: int, rate: int
) -> None:
    spectra = log_mel(waves, filters, hop=hop)
    end = 1000 * waves.shape[1] / rate
    figure, axes = subplots(3, len(waves), size=(3.2 * len(waves), 6.0))
    for column, (wave, spectrum, name) in enumerate(zip(waves, spectra, names, strict=True)):
        first, second, third = axes[:, column]
        first.plot(torch.arange(len(wave)) * 1000 / rate, wave, color=PALETTE[0], linewidth=0.5)
        first.set(title=name, xlim=(0, end), ylim=(-1.05, 1.05))
        second.imshow(
            spectrum.numpy(), origin="lower", aspect="auto", extent=(0, end, 0, len(spectrum)), cmap=SEQUENTIAL
        )
        kept = cepstra(spectrum, count)[1:]
        limit = float(kept.abs().max())
        third.imshow(
            kept.numpy(),
            origin="lower",
            aspect="auto",
            extent=(0, end, 0.5, count - 0.5),
            cmap=DIVERGING,
            vmin=-limit,
            vmax=limit,
        )
        third.set(xlabel="milliseconds", yticks=range(1, count, 4))
        for ax in (second, third):
            ax.grid(visible=False)
    for ax, label in zip(axes[:, 0], ("wave", "mel band", "cepstrum"), strict=True):
        ax.set(ylabel=label)
    run.figure(
        "three ways to write a sound",
        figure,
        "Unseen sounds, one a column: the wave, how loud each mel band is (bright is loud), and its cepstra (red is "
        "positive, blue negative; the first, the mean loudness, is left out). A column of a picture is a token.",
    )


def show_filters(run: Run, filters: Tensor, *, rate: int) -> None:
    bins = torch.linspace(0, rate / 2, filters.shape[1])
    figure, axes = subplots(1, 2, size=(9.4, 3.4))
    left, right = axes[0]
    pitch = torch.linspace(0, rate / 2, 200)
    left.plot(pitch, mel(pitch), color=PALETTE[0])
    left.set(xlabel="hertz", ylabel="mel")
    for band, row in enumerate(filters):
        right.plot(bins, row, color=PALETTE[band % 2], linewidth=1)
    right.plot(bins, filters.sum(0), color=FAINT, linestyle="--", linewidth=1.2, label="their sum")
    right.set(xlabel="hertz", ylabel="weight", ylim=(0, 1.15))
    right.legend(loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.2)
    run.figure(
        "mel filters",
        figure,
        f"Left: pitch as it is heard. Right: {len(filters)} triangles, equally far apart in mel and so ever wider in "
        "hertz; from the first peak to the last they add up to 1.",
    )


def show_outline(run: Run, wave: Tensor, name: str, filters: Tensor, *, hop: int, count: int, rate: int) -> None:
    """The loudest frame: its spectrum, its bands, and what the first cepstra keep of them."""
    spectra, power = log_mel(wave, filters, hop=hop), stft(wave, window=2 * hop, hop=hop).abs().square()
    frame = int(spectra.sum(0).argmax())
    outline = from_cepstra(cepstra(spectra, count), len(filters))
    middles = hertz(torch.linspace(0.0, mel(rate / 2), len(filters) + 2)[1:-1])
    figure, axes = subplots(size=(7.4, 3.8))
    ax = axes[0, 0]
    ax.plot(
        torch.linspace(0, rate / 2, len(power)), power[:, frame].clamp_min(1e-4).log(), color=FAINT, label="spectrum"
    )
    ax.plot(middles, spectra[:, frame], "o-", color=PALETTE[0], markersize=4, label=f"{len(filters)} mel bands")
    ax.plot(middles, outline[:, frame], color=PALETTE[1], label=f"outline by {count} cepstra")
    ax.set(xlabel="hertz", ylabel="log of the power")
    ax.legend()
    run.figure(
        "a frame and its outline",
        figure,
        f"The loudest frame of “{name}”. The teeth of the comb are the overtones of the voice, the hills above them "
        "the resonances of the mouth; mel bands and the first cepstra keep the hills.",
    )


def show_listening(run: Run, ears: Ears, wave: Float[Tensor, "1 samples"], name: str, *, hop: int) -> None:
    """When the token in front listens, mean over heads; in the first layer, where tokens know only themselves."""
    figure, axes = subplots(1 + len(ears), 1, size=(8.0, 1.5 * (1 + len(ears))))
    time, apart = torch.arange(wave.shape[1]) * 1000 / ears.rate, hop * 1000 / ears.rate
    axes[0, 0].plot(time, wave[0].cpu(), color=PALETTE[0], linewidth=0.5)
    axes[0, 0].set(title=f"“{name}”", ylabel="wave", xlim=(0, float(time[-1])), xticklabels=[])
    for ax, (way, listener) in zip(axes[1:, 0], ears.every(), strict=True):
        maps = attention_maps(listener.transformer, listener.picture(wave))
        looked = next(iter(maps.values()))[0, :, 0, 1:].mean(0).cpu()
        first = apart / 2 if isinstance(listener.hear, WavePieces) else 0.0  # frames have their middles at multiples
        ax.bar((first + apart * torch.arange(len(looked))).numpy(), looked.numpy(), width=0.8 * apart, color=PALETTE[1])
        ax.set(ylabel="weight", xlim=(0, float(time[-1])))
        ax.set_title(WAYS[way], fontsize=9, loc="left")
    for ax in axes[1:-1, 0]:
        ax.set(xticklabels=[])
    axes[-1, 0].set(xlabel="milliseconds")
    run.figure(
        "when they listen",
        figure,
        "An unseen sound, and how much the token that gives the verdict attends to each of its tokens in the first "
        "layer, mean over heads. Shorter sounds end in silence.",
    )
