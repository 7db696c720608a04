"""Recordings by class: spoken digits, and user folders of WAV files."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.data.downloads.sources import SPOKEN_DIGITS
from parnassus.data.downloads.transfer import obtain
from parnassus.data.downloads.unpack import open_tar, read_member
from parnassus.data.errors import DataError
from parnassus.data.files.wav import decode_wav, read_wav, resample
from parnassus.data.preparation.partition import stratified_split
from parnassus.notices import notify
from parnassus.short_repr import short_repr

SPOKEN_NAME = re.compile(r"(?:^|/)([0-9])_([a-z]+)_([0-9]+)\.wav$")


@dataclass(frozen=True, eq=False)
class Recordings:
    """Waves of different lengths at one sampling rate, with their classes, and their speakers if known.

    >>> recordings = Recordings([torch.zeros(800)], torch.tensor([0]), ["anna"], rate=8_000)
    >>> recordings.take([0]).rate
    8000
    """

    waves: list[Float[Tensor, "_"]]
    labels: Int[Tensor, " count"]
    speakers: list[str]
    rate: int

    __repr__ = short_repr

    def __len__(self) -> int:
        return len(self.waves)

    def take(self, rows: Iterable[int]) -> "Recordings":
        """The recordings with these indices, in this order."""
        rows = list(rows)
        waves, speakers = [self.waves[row] for row in rows], [self.speakers[row] for row in rows]
        return Recordings(waves, self.labels[rows], speakers, self.rate)


@dataclass(frozen=True, eq=False)
class SoundDataset:
    """Training and test recordings, and the names of the classes.

    >>> sounds = Recordings([torch.zeros(800)], torch.tensor([0]), ["anna"], rate=8_000)
    >>> SoundDataset("silence", sounds, sounds, ("quiet",)).classes
    ('quiet',)
    """

    name: str
    train: Recordings
    test: Recordings
    classes: tuple[str, ...]

    __repr__ = short_repr


def spoken_digits() -> SoundDataset:
    """3,000 spoken digits by six speakers at 8 kHz; recordings 0 to 4 of each digit and speaker are for testing."""
    path = obtain(SPOKEN_DIGITS, verify=_verify_spoken)
    recordings, numbers = _read_spoken(path)
    test = [row for row, number in enumerate(numbers) if number < 5]
    train = [row for row, number in enumerate(numbers) if number >= 5]
    return SoundDataset("spoken_digits", recordings.take(train), recordings.take(test), tuple("0123456789"))


def wav_folder(folder: Path | str, *, test: float = 0.2, seed: int = 0) -> SoundDataset:
    """A folder with one subfolder of WAV files per class; channels are averaged.

    If the files have several sampling rates, all are resampled to the most frequent one.
    """
    folder = Path(folder)
    paths = sorted(path for path in folder.glob("*/*") if path.suffix.lower() == ".wav")
    if not paths:
        raise DataError(f"{folder} must have one subfolder of .wav files per class; there are none.")
    waves, rates = zip(*(read_wav(path) for path in paths), strict=True)
    rate = max(sorted(set(rates)), key=rates.count)
    notify_changes(folder.name, waves, rates, rate)
    mono = [resample(wave.mean(0), old, rate) for wave, old in zip(waves, rates, strict=True)]
    classes = tuple(sorted({path.parent.name for path in paths}))
    labels = torch.tensor([classes.index(path.parent.name) for path in paths])
    recordings = Recordings(mono, labels, [""] * len(paths), rate)
    train_rows, test_rows = stratified_split(labels, round(test * len(paths)), seed)
    return SoundDataset(folder.name, recordings.take(train_rows.tolist()), recordings.take(test_rows.tolist()), classes)


def notify_changes(name: str, waves: Sequence[Tensor], rates: Sequence[int], rate: int) -> None:
    """Log how many recordings are resampled, and how many have several channels, which are averaged."""
    resampled, several = sum(old != rate for old in rates), sum(len(wave) > 1 for wave in waves)
    if resampled:
        notify(f"{name}: {resampled} of {len(rates)} recordings are resampled to {rate:,} samples per second")
    if several:
        notify(f"{name}: the channels of {several} of {len(rates)} recordings are averaged")


def _verify_spoken(path: Path) -> None:
    recordings, _ = _read_spoken(path)
    if len(recordings) != 3_000:
        raise DataError(f"it has {len(recordings)} recordings, not 3000")


def _read_spoken(path: Path) -> tuple[Recordings, list[int]]:
    """The recordings of a tar archive of digit_speaker_number.wav, sorted by these, and their numbers."""
    found: dict[tuple[int, str, int], Tensor] = {}
    rates = set()
    with open_tar(path) as tar:
        for member in tar:
            match = SPOKEN_NAME.search(member.name)
            if match and member.isfile():
                sound, rate = decode_wav(read_member(tar, member, path), f"{member.name} in {path}")
                found[int(match[1]), match[2], int(match[3])] = sound.mean(0)
                rates.add(rate)
    if len(rates) != 1 or {digit for digit, _, _ in found} != set(range(10)):
        raise DataError(
            f"{path} must have recordings of all ten digits at one sampling rate; it has {len(found)} recordings."
        )
    keys = sorted(found)
    labels = torch.tensor([digit for digit, _, _ in keys])
    recordings = Recordings([found[key] for key in keys], labels, [speaker for _, speaker, _ in keys], rates.pop())
    return recordings, [number for _, _, number in keys]
