"""Loaders of the user's data on mutated files: data with finite numbers, or a sentence; never another exception.

PARNASSUS_FUZZ=SEED PARNASSUS_FUZZ_CASES=NUMBER pytest tests/fuzz/test_fuzz_own_data.py -k KIND
"""

import gzip
import io
import json
import lzma
import os
import tarfile
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from time import monotonic
from typing import TypeAlias

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.io import wavfile

from parnassus.data import Dataset, SoundDataset, TableSettings, array_file, image_folder, open_pairs, wav_folder
from parnassus.data.downloads.images import labelled_images
from parnassus.data.downloads.texts import text_file
from parnassus.data.downloads.unpack import open_tar, unpack_tar
from parnassus.data.files.idx import decode_idx, encode_idx
from parnassus.data.files.image_folder import read_image
from parnassus.data.files.wav import read_wav
from parnassus.data.preparation.table_preparation import TablePreparation
from parnassus.errors import UserError

SEED = int(os.environ.get("PARNASSUS_FUZZ", "0"))
CASES = int(os.environ.get("PARNASSUS_FUZZ_CASES", "2000"))
"""Number of cases of all fuzz tests together; those of each loader are a share of them."""
FIRST = int(os.environ.get("PARNASSUS_FUZZ_FIRST", "0"))
SHARE = 0.06
MAX_SECONDS = 60
CELLS = ["", "NaN", "?", "inf", "1e999", "-0", "1_0", "٣", "a", "A,B", 'q"q', "2020-01-02", "01/02/2020", "31.12.2021"]
CELLS += ["9999999999999-99", "0000-00-00", "1;5", "1,5", "x\ny", "x\u2028y", "\x00", "\t", "é", "yes", "10" * 200, "0"]


def write_table(random: Random, path: Path) -> None:
    """A table of random cells, in a random dialect, with or without a header."""
    width, height = random.choice((1, 2, 3, 8)), random.choice((0, 1, 2, 5, 30))
    kinds = [random.choice(("number", "word", "date", "odd")) for _ in range(width)]

    def cell(kind: str) -> str:
        if kind == "odd" or random.random() < 0.1:
            return random.choice(CELLS)
        drawn = {"number": f"{random.gauss(0, 3):.3g}", "word": random.choice("abc"), "date": "2020-01-0"}
        return drawn[kind] + (str(random.randrange(1, 9)) if kind == "date" else "")

    delimiter, quote = random.choice(",;\t|"), random.random() < 0.5
    header = random.choice(([], [f"c{n}" for n in range(width)], [str(n) for n in range(width)], [""] * width))
    rows = [header] * bool(header) + [[cell(kind) for kind in kinds] for _ in range(height)]
    text = random.choice(("\n", "\r\n", "\r")).join(
        delimiter.join(json.dumps(each, ensure_ascii=False) if quote else each for each in row) for row in rows
    )
    path.write_bytes(text.encode(random.choice(("utf-8", "utf-8", "utf-8-sig", "utf-16"))))


def write_arrays(random: Random, path: Path) -> None:
    generator = np.random.default_rng(random.randrange(1_000))
    shape = random.choice([(6,), (6, 2), (6, 4, 5), (6, 4, 5, 3), (6, 3, 4, 5), (0, 2), (), (6, 1, 1, 1, 1)])
    dtype = random.choice(["uint8", "uint16", "int64", "float32", "float64", "bool", "complex64", "U3", "float16"])
    x = generator.integers(0, 200, shape).astype(dtype)
    shapes: list[tuple[int, ...]] = [(6,), (6, 1), (6, 2), (5,)]
    y = generator.integers(-1, random.choice((2, 9, 10**6)), random.choice(shapes)).astype(
        random.choice(["int8", "float64", "U2", "uint64", "bool"])
    )
    names = random.choice([("x", "y"), ("images", "labels"), ("x_train", "y_train"), ("foo", "y"), ("X", "TARGET")])
    extra = {"x_test": x, "y_test": y} if names[0] == "x_train" and random.random() < 0.7 else {}
    with path.open("wb") as file:
        np.savez(file, allow_pickle=True, **{names[0]: x, names[1]: y, **extra})


def write_image(random: Random, path: Path) -> None:
    mode = random.choice(["L", "RGB", "RGBA", "P", "1", "I;16", "I", "F", "LA", "CMYK"])
    kind = {"CMYK": "tiff", "F": "tiff", "I": "tiff"}.get(mode) or random.choice(["png", "tiff"])
    image = Image.new(mode, (random.randrange(1, 9), random.randrange(1, 9)), random.choice((0, 1)))
    image.save(path, format=kind)


def write_wav(random: Random, path: Path) -> None:
    generator = np.random.default_rng(random.randrange(1_000))
    dtype = random.choice([np.uint8, np.int16, np.int32, np.float32, np.float64])
    shape = random.choice([(0,), (1,), (50,), (50, 2), (50, 5)])
    wavfile.write(path, random.choice([1, 8_000, 44_100, 700_000]), generator.integers(0, 2, shape).astype(dtype))


def write_tar(random: Random, path: Path) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for _ in range(random.randrange(4)):
            name = random.choice(["a.txt", "d/b.txt", "../c", "/abs", "d/" * 40 + "x", "a\x00b", "C:\\x"])
            info = tarfile.TarInfo(name)
            info.type = random.choice([tarfile.REGTYPE] * 4 + [tarfile.SYMTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE])
            content = random.randbytes(random.choice((0, 9, 600)))
            info.size = len(content) if info.type == tarfile.REGTYPE else 0
            info.linkname = "../../x"
            tar.addfile(info, io.BytesIO(content))
    path.write_bytes(random.choice((bytes, gzip.compress, lzma.compress))(packed.getvalue()))


def write_text(random: Random, path: Path) -> None:
    words = ["a", "der\tthe", "\t", "\n", "\u2028", "é", "\x00", "\ufeff", " ", "x" * 50]
    path.write_text("".join(random.choices(words, k=random.choice((0, 3, 60)))), encoding="utf-8")


def write_idx(random: Random, path: Path) -> None:
    path.write_bytes(encode_idx(torch.randint(0, 10, random.choice([(3,), (3, 4, 4), (0, 2)]), dtype=torch.uint8)))


def mutate(random: Random, content: bytes) -> bytes:
    """The content after up to three changes; a third of the cases remain as they are."""
    found = bytearray(content)
    for _ in range(random.choice((0, 1, 1, 2, 3)) if found else 0):
        at, size = random.randrange(len(found) + 1), random.choice((1, 1, 4, 64))
        match random.randrange(5):
            case 0 if at < len(found):
                found[at] ^= 1 << random.randrange(8)
            case 1:
                del found[at : at + size]
            case 2:
                found[at:at] = random.randbytes(size)
            case 3:
                del found[at:]
            case _:
                found[at : at + size] = random.choice((b"\xff", b"\0")) * len(found[at : at + size])
    return bytes(found)


def load_table(random: Random, path: Path) -> object:
    columns = [(), (), ("c0",), ("column 1", "c1"), ("0",)]
    data = TableSettings(
        str(path),
        target=random.choice((None, None, "c1", "column 1", "0", "nothing")),
        columns=random.choice(columns),
        drop=random.choice(columns),
        missing=random.choice(("impute", "drop")),
        categories=random.choice(("one_hot", "ordinal")),
    ).load_data()
    assert data.table is not None
    plain = json.loads(json.dumps(data.table.to_plain(), allow_nan=False))
    assert TablePreparation.from_plain(plain) == data.table
    return data


def load_image(_random: Random, path: Path) -> object:
    folder = path.parent / "images" / "a"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "0.png").write_bytes(path.read_bytes())
    return [read_image(path, size=(3, 4)), image_folder(folder.parent, test=0.0)]


def load_sounds(_random: Random, path: Path) -> object:
    folder = path.parent / "sounds" / "a"
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(2):
        (folder / f"{number}.wav").write_bytes(path.read_bytes())
    return [read_wav(path)[0], wav_folder(folder.parent)]


def load_tar(random: Random, path: Path) -> object:
    if random.random() < 0.5:
        with open_tar(path) as tar:
            return tar.getnames()
    target = path.parent / "unpacked"
    unpack_tar(path, target, max_bytes=1 << 20)
    for each in sorted(target.rglob("*"), reverse=True):
        each.rmdir() if each.is_dir() else each.unlink()
    return []


def load_text(_random: Random, path: Path) -> object:
    return [text_file(path), open_pairs(path)]


def load_idx(_random: Random, path: Path) -> object:
    return [decode_idx(path.read_bytes(), path.name), labelled_images(path, path)]


Write: TypeAlias = Callable[[Random, Path], None]
Load: TypeAlias = Callable[[Random, Path], object]
LOADERS: dict[str, tuple[str, Write, Load]] = {
    "csv": ("my.csv", write_table, load_table),
    "npz": ("my.npz", write_arrays, lambda _, path: array_file(path)),
    "png": ("my.png", write_image, load_image),
    "wav": ("my.wav", write_wav, load_sounds),
    "tar": ("my.tar", write_tar, load_tar),
    "text": ("my.txt", write_text, load_text),
    "idx": ("my.idx", write_idx, load_idx),
}


def check_finite(found: object) -> None:
    """Every number that a loader returns is finite."""
    for each in found if isinstance(found, list) else [found]:
        tensors = [each] if isinstance(each, torch.Tensor) else []
        if isinstance(each, Dataset):
            tensors = [each.train.x, each.test.x]
        if isinstance(each, SoundDataset):
            tensors = [*each.train.waves, *each.test.waves]
        assert all(bool(tensor.isfinite().all()) for tensor in tensors)


def run_case(kind: str, number: int, folder: Path) -> str:
    """The problem of one case, empty if it gives data or a sentence."""
    name, write, load = LOADERS[kind]
    random, path = Random(f"{SEED} {kind} {number}"), folder / name
    write(random, path)
    path.write_bytes(mutate(random, path.read_bytes()))
    began = monotonic()
    try:
        check_finite(load(random, path))
    except UserError as error:
        return "" if str(error).strip() and "Traceback" not in str(error) else "an error without a sentence"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "" if monotonic() - began < MAX_SECONDS else f"takes longer than {MAX_SECONDS} s"


@pytest.mark.parametrize("kind", LOADERS)
def test_mutated_files_give_data_or_a_sentence(kind: str, tmp_path: Path) -> None:
    problems = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Pillow and zipfile, on damaged files
        for number in range(round(FIRST * SHARE), round((FIRST + CASES) * SHARE)):
            folder = tmp_path / str(number)
            folder.mkdir()
            problem = run_case(kind, number, folder)
            if problem:
                problems.append(f"{kind} {number} (seed {SEED}): {problem}")
    assert not problems, "\n".join(problems[:20])


def test_the_harness_reports_other_exceptions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_random: Random, _path: Path) -> object:
        raise zipfile.BadZipFile("not a zip file")

    monkeypatch.setitem(LOADERS, "npz", ("my.npz", write_arrays, fail))
    assert run_case("npz", 0, tmp_path) == "BadZipFile: not a zip file"
