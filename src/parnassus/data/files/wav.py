"""WAV files as waves in [−1, 1]: PCM of 8 to 32 bits and floating point, any rate and number of channels."""

import struct
from collections.abc import Iterator
from math import gcd
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from parnassus.data.errors import DataError

PCM, FLOATING_POINT, EXTENSIBLE = 1, 3, 0xFFFE
UNKNOWN_SIZE = 0xFFFFFFFF
"""Size of the sound data in a file that was written to a pipe."""
MAX_RATE = 768_000


class WavFormat(NamedTuple):
    """The format chunk of a WAV file."""

    tag: int
    channels: int
    rate: int
    bits: int


def read_wav(path: Path) -> tuple[Float[Tensor, "channels time"], int]:
    """A WAV file as a wave in [−1, 1) and its sampling rate."""
    try:
        return decode_wav(path.read_bytes(), str(path))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from error


def decode_wav(content: bytes, name: str) -> tuple[Float[Tensor, "channels time"], int]:
    """The wave in the bytes of a WAV file; `name` appears in error messages."""
    if content[:4] != b"RIFF" or content[8:12] != b"WAVE":
        raise DataError(f"{name} is not a PCM WAV file: it does not begin with RIFF and WAVE.")
    form: WavFormat | None = None
    for kind, size, start in _chunks(content):
        if kind == b"fmt ":
            form = _read_format(content[start : start + size], name)
        elif kind == b"data" and form is not None:
            return _decode_samples(content[start:], size, form, name), form.rate
    raise DataError(f"{name} is not a PCM WAV file: it has no sound data.")


def resample(wave: Float[Tensor, " time"], old: int, new: int) -> Float[Tensor, " resampled"]:
    """A wave with another sampling rate, after a low-pass filter that prevents aliasing."""
    from scipy.signal import resample_poly

    if old == new:
        return wave
    divisor = gcd(old, new)
    return torch.from_numpy(resample_poly(wave.numpy(), new // divisor, old // divisor).astype(np.float32))


def _chunks(content: bytes) -> Iterator[tuple[bytes, int, int]]:
    """The kind, size and start of every chunk of a RIFF file."""
    position = 12
    while position + 8 <= len(content):
        kind, size = struct.unpack_from("<4sI", content, position)
        yield kind, size, position + 8
        position += 8 + size + size % 2


def _read_format(chunk: bytes, name: str) -> WavFormat:
    if len(chunk) < 16:
        raise DataError(f"{name} is not a PCM WAV file: its format is truncated.")
    tag, channels, rate, _, block, bits = struct.unpack_from("<HHIIHH", chunk)
    if tag == EXTENSIBLE and len(chunk) >= 26:
        (tag,) = struct.unpack_from("<H", chunk, 24)
    is_known = (tag == PCM and bits in (8, 16, 24, 32)) or (tag == FLOATING_POINT and bits in (32, 64))
    if not is_known:
        raise DataError(f"{name} is not a PCM WAV file: it has format {tag} with {bits} bits per sample.")
    if channels < 1 or block != channels * bits // 8 or not 1 <= rate <= MAX_RATE:
        raise DataError(
            f"{name} is not a PCM WAV file: it has {channels} channels, {block} bytes per frame and {rate} samples "
            "per second."
        )
    return WavFormat(tag, channels, rate, bits)


def _decode_samples(data: bytes, size: int, form: WavFormat, name: str) -> Float[Tensor, "channels time"]:
    frame = form.channels * form.bits // 8
    if size > len(data) and size != UNKNOWN_SIZE:
        raise DataError(f"{name} is truncated: it has {len(data)} of {size} bytes of sound data.")
    data = data[:size]
    data = data[: len(data) // frame * frame]
    if not data:
        raise DataError(f"{name} is empty: it has no samples.")
    samples = _floats(data, form.bits) if form.tag == FLOATING_POINT else _integers(data, form.bits // 8)
    if not np.isfinite(samples).all():
        raise DataError(f"{name} has samples that are not finite.")
    return torch.from_numpy(samples.reshape(-1, form.channels).T.copy())


def _floats(data: bytes, bits: int) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        return np.frombuffer(data, dtype=f"<f{bits // 8}").astype(np.float32)


def _integers(data: bytes, width: int) -> NDArray[np.float32]:
    """Integers of `width` bytes, divided by their largest absolute value."""
    if width == 1:  # the only unsigned format
        values = np.frombuffer(data, dtype=np.uint8).astype(np.int32) - 128
    elif width == 3:  # in the upper three bytes of an int32, so that the arithmetic shift extends the sign
        words = np.zeros((len(data) // 3, 4), dtype=np.uint8)
        words[:, 1:] = np.frombuffer(data, dtype=np.uint8).reshape(-1, 3)
        values = words.view("<i4")[:, 0].astype(np.int32) >> 8
    else:
        values = np.frombuffer(data, dtype=f"<i{width}").astype(np.int32)
    return (values / 2.0 ** (8 * width - 1)).astype(np.float32)
