"""Recordings: WAV files as waves in [−1, 1], spoken digits, and user folders."""

import io
import re
import wave
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.data.downloads.folder import find_file
from parnassus.data.downloads.sources import SPOKEN_DIGITS
from parnassus.data.downloads.transfer import fetch
from parnassus.data.downloads.unpack import open_tar
from parnassus.data.errors import DataError
from parnassus.data.preparation.partition import stratified_split
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
    path = find_file(SPOKEN_DIGITS.place) or fetch(SPOKEN_DIGITS, verify=_verify_spoken)
    recordings, numbers = _read_spoken(path)
    test = [row for row, number in enumerate(numbers) if number < 5]
    train = [row for row, number in enumerate(numbers) if number >= 5]
    return SoundDataset("spoken_digits", recordings.take(train), recordings.take(test), tuple("0123456789"))


def wav_folder(folder: Path | str, *, test: float = 0.2, seed: int = 0) -> SoundDataset:
    """A folder with one subfolder of WAV files per class, all with the same sampling rate; channels are averaged."""
    folder = Path(folder)
    paths = sorted(path for path in folder.glob("*/*") if path.suffix.lower() == ".wav")
    if not paths:
        raise DataError(f"{folder} must have one subfolder of .wav files per class; there are none.")
    waves, rates = zip(*(read_wav(path) for path in paths), strict=True)
    for path, rate in zip(paths, rates, strict=True):
        if rate != rates[0]:
            raise DataError(f"{path} has {rate} samples per second and {paths[0]} {rates[0]}: they must agree.")
    classes = tuple(sorted({path.parent.name for path in paths}))
    labels = torch.tensor([classes.index(path.parent.name) for path in paths])
    recordings = Recordings([each.mean(0) for each in waves], labels, [""] * len(paths), rates[0])
    train_rows, test_rows = stratified_split(labels, round(test * len(paths)), seed)
    return SoundDataset(folder.name, recordings.take(train_rows.tolist()), recordings.take(test_rows.tolist()), classes)


def read_wav(path: Path) -> tuple[Float[Tensor, "channels time"], int]:
    """A PCM WAV file of 8, 16, 24 or 32 bits as a wave in [−1, 1) and its sampling rate."""
    try:
        return decode_wav(path.read_bytes(), str(path))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from error


def decode_wav(content: bytes, name: str) -> tuple[Float[Tensor, "channels time"], int]:
    """The wave in the bytes of a WAV file; `name` appears in error messages."""
    try:
        with wave.open(io.BytesIO(content)) as file:
            width, channels, rate = file.getsampwidth(), file.getnchannels(), file.getframerate()
            num_frames, frames = file.getnframes(), file.readframes(file.getnframes())
    except (wave.Error, EOFError) as error:
        raise DataError(f"{name} is not a PCM WAV file ({error or 'unexpected end of file'}).") from error
    if len(frames) != num_frames * width * channels:
        raise DataError(
            f"{name} is truncated: it has {len(frames)} of {num_frames * width * channels} bytes of sound data."
        )
    samples = _integers(frames, width) / 2.0 ** (8 * width - 1)
    return torch.from_numpy(samples.astype(np.float32).reshape(-1, channels).T.copy()), rate


def _verify_spoken(path: Path) -> None:
    recordings, _ = _read_spoken(path)
    if len(recordings) != 3_000:
        raise DataError(f"it has {len(recordings)} recordings, not 3000")


def _integers(frames: bytes, width: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    if width == 1:  # the only unsigned format
        return np.frombuffer(frames, dtype=np.uint8).astype(np.int32) - 128
    if width == 3:  # in the upper three bytes of an int32, so that the arithmetic shift extends the sign
        words = np.zeros((len(frames) // 3, 4), dtype=np.uint8)
        words[:, 1:] = np.frombuffer(frames, dtype=np.uint8).reshape(-1, 3)
        return words.view("<i4")[:, 0].astype(np.int32) >> 8
    return np.frombuffer(frames, dtype=f"<i{width}").astype(np.int32)


def _read_spoken(path: Path) -> tuple[Recordings, list[int]]:
    """The recordings of a tar archive of digit_speaker_number.wav, sorted by these, and their numbers."""
    found: dict[tuple[int, str, int], Tensor] = {}
    rates = set()
    with open_tar(path) as tar:
        for member in tar:
            match, file = SPOKEN_NAME.search(member.name), tar.extractfile(member) if member.isfile() else None
            if match and file is not None:
                sound, rate = decode_wav(file.read(), f"{member.name} in {path}")
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
