"""Classify sounds with a transformer on log-mel frames, cepstra or wave patches (book sec. 10.1.2).

Three classifiers of equal size are trained on the same sounds. They differ in their tokens: log-mel bands of a frame,
its first cepstra (MFCC), or a patch of the wave in 256 µ-law levels.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from parnassus.attention.core.attention_maps import attention_maps
from parnassus.audio.sound_classifier import MFCC, LogMelSpectrogram, SoundClassifier, WavePatches, crop_and_normalise
from parnassus.audio.spectra import cepstra, hertz_to_mel, invert_cepstra, log_mel_spectrogram, mel_to_hertz, stft
from parnassus.data import DataError, Recordings, SoundDataset, Split, open_sounds
from parnassus.data.files.wav import decode_wav, resample
from parnassus.layers import count_parameters
from parnassus.notices import notify
from parnassus.optim import Adam, one_cycle_rate
from parnassus.report import FAINT, PALETTE, confusion_matrix, subplots
from parnassus.report.style import DIVERGING, SEQUENTIAL
from parnassus.setting_types import SoundData
from parnassus.train import ModelCollection, Positive, Run, at_least, between, descend, no_band
from parnassus.train.sample_predict_evaluate import Input, ResultRow
from parnassus.train.trained import TrainedRun

covers = ("B10.1.2-9", "B10.1.2-16")
expected = {
    "accuracy/log_mel": at_least(0.94, "test accuracy, tokens are log-mel frames"),
    "accuracy/cepstra": at_least(0.93, "test accuracy, tokens are the first cepstra of the log-mel frames"),
    "accuracy/wave": between(0.45, 0.72, "test accuracy, tokens are patches of the µ-law wave"),
    "accuracy/nearest_mean": no_band("test accuracy of the nearest class mean of time-averaged cepstra"),
    "parameters/log_mel": no_band("number of parameters, log-mel frames"),
    "parameters/cepstra": no_band("number of parameters, cepstra"),
    "parameters/wave": no_band("number of parameters, wave patches"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"steps": 6, "batch_size": 8, "width": 16, "num_layers": 1, "seconds": 0.2},
    "gpu": {
        "data": "spoken_digits",
        "steps": 4_000,
        "batch_size": 128,
        "width": 128,
        "num_layers": 4,
        "learning_rate": 1e-3,
    },
}

INPUTS = {"log_mel": "log-mel frames", "cepstra": "cepstra", "wave": "wave patches"}
NUM_EVALUATIONS = 10
"""Evaluations on the test set during training."""


class SoundClassifiers(ModelCollection[SoundClassifier]):
    """The three classifiers with their sampling rate and class names."""

    def __init__(self, classifiers: Mapping[str, SoundClassifier], *, rate: int, classes: Sequence[str]) -> None:
        super().__init__(classifiers)
        self.rate, self.classes = rate, tuple(classes)


@dataclass(frozen=True)
class Experiment:
    data: SoundData = "vowels"  # sounds by class, or a folder of WAV files
    seconds: Positive[float] = 0.5  # length of the loudest segment of each sound, which is the input
    frame_ms: Positive[float] = 32.0  # milliseconds per frame; hop and wave patches are half as long
    num_mels: Positive[int] = 32  # mel bands
    num_mfcc: Positive[int] = 13  # cepstral coefficients
    steps: Positive[int] = 500  # gradient steps
    batch_size: Positive[int] = 32  # sounds per gradient step
    width: Positive[int] = 64  # channels of the transformer
    num_layers: Positive[int] = 2  # transformer blocks
    learning_rate: Positive[float] = 2e-3  # peak learning rate of the 1cycle schedule

    def model(self, rate: int, classes: Sequence[str]) -> SoundClassifiers:
        window, samples = 2 * round(self.frame_ms * rate / 2_000), round(self.seconds * rate)
        frontends: dict[str, nn.Module] = {
            "log_mel": LogMelSpectrogram(self.num_mels, window=window, rate=rate),
            "cepstra": MFCC(LogMelSpectrogram(self.num_mels, window=window, rate=rate), self.num_mfcc),
            "wave": WavePatches(window // 2),
        }
        build = partial(SoundClassifier, samples=samples, classes=len(classes), width=self.width, depth=self.num_layers)
        return SoundClassifiers(
            {name: build(frontend) for name, frontend in frontends.items()}, rate=rate, classes=classes
        )

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_sounds(self.data)
        if not len(data.test):
            raise DataError(f"{self.data} needs more sounds: none of its {len(data.train)} are left for testing.")
        classifiers = run.build(self.model, rate=data.train.rate, classes=list(data.classes))
        samples = classifiers.model("wave").samples
        train, test = (as_split(part, samples).to(run.device) for part in (data.train, data.test))
        classifiers = classifiers.to(run.device)
        for _, classifier in classifiers.named_models():
            classifier.fit_normalisation(train.x)
        classifiers, optimizer = run.prepare(classifiers, partial(Adam, lr=self.learning_rate))
        every = max(1, self.steps // NUM_EVALUATIONS)
        for step, loss in descend(run, classifiers, optimizer, train.pairs(self.batch_size, self.steps)):
            for group in optimizer.param_groups:
                group["lr"] = one_cycle_rate(step, self.steps, peak=self.learning_rate)
            run.log(step, loss=loss / len(classifiers))
            if (step + 1) % every == 0:
                run.record(
                    step,
                    **{
                        f"accuracy/{name}": accuracy(classifier, test)
                        for name, classifier in classifiers.named_models()
                    },
                )

        accuracies = {name: accuracy(classifier, test) for name, classifier in classifiers.named_models()}
        self.plot_results(run, classifiers, data, test)
        nearest = nearest_mean(classifiers.model("cepstra"), train, test)
        run.note(
            "results",
            f"Test accuracy on {len(test)} sounds: log-mel frames {accuracies['log_mel']:.1%}, cepstra "
            f"{accuracies['cepstra']:.1%} with {self.num_mfcc} features per token instead of {self.num_mels}, wave "
            f"patches {accuracies['wave']:.1%}. Pulses fall at different positions of each patch, so equal sounds have "
            "different wave patches but similar spectra. Classification by the nearest mean of time-averaged cepstra "
            f"reaches {nearest:.1%}.",
        )
        return {
            **{f"accuracy/{name}": value for name, value in accuracies.items()},
            "accuracy/nearest_mean": nearest,
            **{
                f"parameters/{name}": float(count_parameters(classifier))
                for name, classifier in classifiers.named_models()
            },
        }

    def plot_results(self, run: Run, classifiers: SoundClassifiers, data: SoundDataset, test: Split) -> None:
        """Figures of sounds and tokens, confusion matrices and attention over time."""
        rows = first_of_each_class(data.test.labels)
        selected = rows[:: max(1, len(rows) // 3)][:3]
        waves, names = test.x[selected].cpu(), [data.classes[int(data.test.labels[row])] for row in selected]
        spectrum = classifiers.model("log_mel").frontend
        assert isinstance(spectrum, LogMelSpectrogram)
        filters, hop = spectrum.filters.cpu(), spectrum.hop
        plot_inputs(run, waves, names, filters, hop=hop, count=self.num_mfcc, rate=classifiers.rate)
        plot_mel_filters(run, filters, rate=classifiers.rate)
        plot_envelope(run, waves[0], names[0], filters, hop=hop, count=self.num_mfcc, rate=classifiers.rate)
        assert test.y is not None
        for name in ("log_mel", "wave"):
            run.figure(
                f"confusion matrix, {INPUTS[name]}",
                confusion_matrix(test.y.cpu(), predict(classifiers.model(name), test.x).cpu(), data.classes),
                f"True and predicted classes of test sounds, tokens are {INPUTS[name]}.",
            )
        plot_attention(run, classifiers, test.x[selected[:1]], names[0], hop=hop)


@dataclass(frozen=True)
class Predict:
    suffixes: ClassVar[tuple[str, ...]] = (".wav",)

    def __call__(self, trained: TrainedRun, inputs: Sequence[Input]) -> Iterator[ResultRow]:
        """The predicted class of each WAV file and its probability, for each classifier."""
        model = cast("SoundClassifiers", trained.model)
        for each in inputs:
            sound, rate = decode_wav(each.read_bytes(), each.name)
            wave = sound.mean(0)
            if rate != model.rate:
                notify(f"{each.name}: resampled from {rate:,} to {model.rate:,} samples per second, as in training")
                wave = resample(wave, rate, model.rate)
            if not wave.any():
                raise DataError(f"{each.name} is silent.")
            for name, classifier in model.named_models():
                with torch.no_grad():
                    probabilities = classifier(crop_and_normalise([wave], classifier.samples))[0].softmax(0)
                best = int(probabilities.argmax())
                yield {
                    "sound": each.name,
                    "tokens": INPUTS[name],
                    "class": model.classes[best],
                    "probability": float(probabilities[best]),
                }


@dataclass(frozen=True)
class Evaluate:
    data: SoundData | None = None  # sounds by class; by default the run's
    split: Literal["test", "all"] = "test"  # sounds to evaluate: a fifth of those of a folder, or all

    def __call__(self, runs: Sequence[TrainedRun]) -> list[ResultRow]:
        return [self.evaluate(trained) for trained in runs]

    def evaluate(self, trained: TrainedRun) -> ResultRow:
        """Accuracy of each classifier of one run; the sounds may be of some of its classes only."""
        models, name = cast("SoundClassifiers", trained.model), self.data or cast("Experiment", trained.experiment).data
        found = open_sounds(name)
        if not set(found.classes) <= set(models.classes):
            raise DataError(
                f"{name} must have classes among {', '.join(models.classes)}, as in training; "
                f"got classes {', '.join(found.classes)}."
            )
        if found.train.rate != models.rate:
            notify(f"{name}: resampled from {found.train.rate:,} to {models.rate:,} samples per second, as in training")
        label_of = torch.tensor([models.classes.index(label) for label in found.classes])
        parts = [found.test] if self.split == "test" else [found.train, found.test]
        if not any(map(len, parts)):
            raise DataError(f"{name} has too few sounds for a test part; --split all evaluates all of them.")
        recordings = [resample(wave, part.rate, models.rate) for part in parts for wave in part.waves]
        waves = crop_and_normalise(recordings, models.model("wave").samples)
        sounds = Split(waves, label_of[torch.cat([part.labels for part in parts])])
        accuracies = {f"{tokens}_accuracy": accuracy(model, sounds) for tokens, model in models.named_models()}
        return {"run": trained.folder.path.name, "data": name, "sounds": len(sounds), **accuracies}


def as_split(recordings: Recordings, samples: int) -> Split:
    return Split(crop_and_normalise(recordings.waves, samples), recordings.labels)


def first_of_each_class(labels: Int[Tensor, " rows"]) -> list[int]:
    """The row of the first sound of each class."""
    return [int((labels == label).nonzero()[0, 0]) for label in labels.unique().tolist()]


@torch.no_grad()
def predict(classifier: SoundClassifier, waves: Float[Tensor, "rows samples"]) -> Int[Tensor, " rows"]:
    return torch.cat([classifier(part).argmax(-1) for part in waves.split(256)])


def accuracy(classifier: SoundClassifier, test: Split) -> float:
    assert test.y is not None
    return float((predict(classifier, test.x) == test.y).double().mean())


@torch.no_grad()
def nearest_mean(classifier: SoundClassifier, train: Split, test: Split) -> float:
    """Accuracy of the nearest class mean of time-averaged tokens."""
    assert train.y is not None
    assert test.y is not None
    train_means, test_means = (
        torch.cat([classifier.token_image(part).mean((2, 3)) for part in x.split(256)]) for x in (train.x, test.x)
    )
    means = torch.stack([train_means[train.y == label].mean(0) for label in train.y.unique()])
    return float((torch.cdist(test_means, means).argmin(1) == test.y).double().mean())


def plot_inputs(
    run: Run, waves: Tensor, names: Sequence[str], filters: Tensor, *, hop: int, count: int, rate: int
) -> None:
    spectra = log_mel_spectrogram(waves, filters, hop=hop)
    end = 1000 * waves.shape[1] / rate
    figure, axes = subplots(3, len(waves), size=(3.2 * len(waves), 6.0))
    for column, (wave, spectrum, name) in enumerate(zip(waves, spectra, names, strict=True)):
        first, second, third = axes[:, column]
        first.plot(torch.arange(len(wave)) * 1000 / rate, wave, color=PALETTE[0], linewidth=0.5)
        first.set(title=name, xlim=(0, end), ylim=(-1.05, 1.05))
        second.imshow(
            spectrum.numpy(), origin="lower", aspect="auto", extent=(0, end, 0, len(spectrum)), cmap=SEQUENTIAL
        )
        displayed = cepstra(spectrum, count)[1:]
        limit = float(displayed.abs().max())
        third.imshow(
            displayed.numpy(),
            origin="lower",
            aspect="auto",
            extent=(0, end, 0.5, count - 0.5),
            cmap=DIVERGING,
            vmin=-limit,
            vmax=limit,
        )
        third.set(xlabel="time (ms)", yticks=range(1, count, 4))
        for ax in (second, third):
            ax.grid(visible=False)
    for ax, label in zip(axes[:, 0], ("wave", "mel band", "cepstrum"), strict=True):
        ax.set(ylabel=label)
    run.figure(
        "inputs",
        figure,
        "Test sounds, one per column: wave, log-mel bands (bright: high energy), and cepstra (red: positive, blue: "
        "negative; the first, the mean log-energy, is omitted). Each column of an image is a token.",
    )


def plot_mel_filters(run: Run, filters: Tensor, *, rate: int) -> None:
    bins = torch.linspace(0, rate / 2, filters.shape[1])
    figure, axes = subplots(1, 2, size=(9.4, 3.4))
    left, right = axes[0]
    pitch = torch.linspace(0, rate / 2, 200)
    left.plot(pitch, hertz_to_mel(pitch), color=PALETTE[0])
    left.set(xlabel="frequency (Hz)", ylabel="pitch (mel)")
    for band, row in enumerate(filters):
        right.plot(bins, row, color=PALETTE[band % 2], linewidth=1)
    right.plot(bins, filters.sum(0), color=FAINT, linestyle="--", linewidth=1.2, label="sum")
    right.set(xlabel="frequency (Hz)", ylabel="filter weight", ylim=(0, 1.15))
    right.legend(loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.2)
    run.figure(
        "mel filters",
        figure,
        f"Left: the mel scale. Right: {len(filters)} triangular filters, equally spaced in mel; from the first to the "
        "last peak they add up to 1.",
    )


def plot_envelope(run: Run, wave: Tensor, name: str, filters: Tensor, *, hop: int, count: int, rate: int) -> None:
    """Spectrum, mel bands and cepstral envelope of the loudest frame."""
    spectra, power = log_mel_spectrogram(wave, filters, hop=hop), stft(wave, window=2 * hop, hop=hop).abs().square()
    frame = int(spectra.sum(0).argmax())
    envelope = invert_cepstra(cepstra(spectra, count), len(filters))
    centres = mel_to_hertz(torch.linspace(0.0, hertz_to_mel(rate / 2), len(filters) + 2)[1:-1])
    figure, axes = subplots(size=(7.4, 3.8))
    ax = axes[0, 0]
    ax.plot(
        torch.linspace(0, rate / 2, len(power)), power[:, frame].clamp_min(1e-4).log(), color=FAINT, label="spectrum"
    )
    ax.plot(centres, spectra[:, frame], "o-", color=PALETTE[0], markersize=4, label=f"{len(filters)} mel bands")
    ax.plot(centres, envelope[:, frame], color=PALETTE[1], label=f"envelope by {count} cepstra")
    ax.set(xlabel="frequency (Hz)", ylabel="log power")
    ax.legend()
    run.figure(
        "spectral envelope",
        figure,
        f"The loudest frame of “{name}”: harmonics of the voice under the formants of the vocal tract. Mel bands and "
        "the first cepstra keep the formants.",
    )


def plot_attention(
    run: Run, classifiers: SoundClassifiers, wave: Float[Tensor, "1 samples"], name: str, *, hop: int
) -> None:
    """Attention of the class token over time in the first layer, mean over heads."""
    figure, axes = subplots(1 + len(classifiers), 1, size=(8.0, 1.5 * (1 + len(classifiers))))
    time, hop_ms = torch.arange(wave.shape[1]) * 1000 / classifiers.rate, hop * 1000 / classifiers.rate
    axes[0, 0].plot(time, wave[0].cpu(), color=PALETTE[0], linewidth=0.5)
    axes[0, 0].set(title=f"“{name}”", ylabel="wave", xlim=(0, float(time[-1])), xticklabels=[])
    for ax, (name_of_input, classifier) in zip(axes[1:, 0], classifiers.named_models(), strict=True):
        maps = attention_maps(classifier.transformer, classifier.token_image(wave))
        weights = next(iter(maps.values()))[0, :, 0, 1:].mean(0).cpu()
        is_wave = isinstance(classifier.frontend, WavePatches)
        first = hop_ms / 2 if is_wave else 0.0  # frames are centred at multiples of the hop
        ax.bar(
            (first + hop_ms * torch.arange(len(weights))).numpy(), weights.numpy(), width=0.8 * hop_ms, color=PALETTE[1]
        )
        ax.set(ylabel="attention weight", xlim=(0, float(time[-1])))
        ax.set_title(INPUTS[name_of_input], fontsize=9, loc="left")
    for ax in axes[1:-1, 0]:
        ax.set(xticklabels=[])
    axes[-1, 0].set(xlabel="time (ms)")
    run.figure(
        "attention over time",
        figure,
        "A test sound, and the attention weights of the class token over its tokens in the first "
        "layer, mean over heads. Shorter sounds end in silence.",
    )
