"""The idx format of the MNIST family: a magic number, the sizes of the axes, then the data."""

import gzip
import zlib
from math import prod
from pathlib import Path

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from parnassus.data.errors import DataError

MAX_BYTES = 1 << 29
"""Maximum size of an expanded gzip file, about ten times the largest of the public data sets."""
BYTES = 0x08  # the only element type the MNIST family uses


def encode_idx(array: UInt8[Tensor, "..."]) -> bytes:
    """An array of bytes in the idx format, with its shape."""
    header = bytes([0, 0, BYTES, array.ndim]) + np.array(array.shape, dtype=">u4").tobytes()
    return header + array.contiguous().numpy().tobytes()


def decode_idx(content: bytes, name: str) -> UInt8[Tensor, "..."]:
    """The array that `content` consists of; `name` appears in error messages."""
    array, rest = split_idx(content, name)
    if rest:
        raise DataError(f"{name} has {len(rest)} bytes after its array: it is not a plain idx file.")
    return array


def split_idx(content: bytes, name: str) -> tuple[UInt8[Tensor, "..."], bytes]:
    """The first array in `content`, and what follows it."""
    if len(content) < 4 or content[:3] != bytes([0, 0, BYTES]):
        raise DataError(f"{name} is not an idx file of bytes: it starts with {content[:4].hex(' ') or 'nothing'}.")
    start = 4 + 4 * content[3]
    if len(content) < start:
        raise DataError(f"{name} is truncated in its header ({len(content)} bytes).")
    shape = [int(size) for size in np.frombuffer(content[4:start], dtype=">u4")]
    size = prod(shape)
    if len(content) < start + size:
        raise DataError(f"{name} is truncated: {shape} needs {size} bytes, but has {len(content) - start}.")
    array = np.frombuffer(content, dtype=np.uint8, count=size, offset=start).reshape(shape)
    return torch.from_numpy(array.copy()), content[start + size :]


def read_idx(path: Path) -> UInt8[Tensor, "..."]:
    """The array in an idx file, gzipped or not."""
    return decode_idx(read_gzipped(path), str(path))


def read_gzipped(path: Path) -> bytes:
    """The content of a file, decompressed if its name ends in .gz, to at most `MAX_BYTES`."""
    try:
        if path.suffix != ".gz":
            return path.read_bytes()
        with gzip.open(path) as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise DataError(f"{path} expands to more than {MAX_BYTES:,} bytes: decompress it if you trust it.")
        return content
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is not a complete gzip file ({error}): delete it and download it again.") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from error
