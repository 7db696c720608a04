"""Files of the public data sets in the data directory: small synthetic ones, and the real ones if present."""

import gzip
import hashlib
import io
import json
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from parnassus.data import (
    DataError,
    cifar10,
    fashion_mnist,
    jsb_chorales,
    membrane,
    mnist,
    moby_dick,
    multi30k,
    names,
    tiny_shakespeare,
)
from parnassus.data.downloads import images, sources
from parnassus.data.downloads.sources import RemoteFile
from parnassus.data.downloads.texts import book_body
from parnassus.data.files import idx
from parnassus.data.files.idx import decode_idx, encode_idx, read_idx
from parnassus.notices import pass_notices

from ..conftest import Server


def write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def write_digits(folder: Path, suffix: str = ".gz") -> None:
    generator = torch.Generator().manual_seed(0)
    for part, count in (("train", 12), ("t10k", 5)):
        images = torch.randint(256, (count, 28, 28), generator=generator, dtype=torch.uint8)
        write(folder / f"{part}-images-idx3-ubyte{suffix}", encode_idx(images))
        write(folder / f"{part}-labels-idx1-ubyte{suffix}", encode_idx(torch.arange(count, dtype=torch.uint8) % 10))


@pytest.mark.parametrize("shape", [(3,), (2, 4), (2, 3, 4), (0, 5)])
def test_idx_round_trip(shape: tuple[int, ...]) -> None:
    array = torch.randint(256, shape, dtype=torch.uint8)
    assert decode_idx(encode_idx(array), "array").equal(array)


@pytest.fixture
def without_checksums(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files in the place of downloads are accepted."""
    for name in ("MNIST", "FASHION_MNIST", "MULTI30K"):
        files = getattr(sources, name)
        monkeypatch.setattr(sources, name, files)
        for file, source in files.items():
            monkeypatch.setitem(files, file, replace(source, checksum=None))
    monkeypatch.setattr(images, "CIFAR10", replace(sources.CIFAR10, checksum=None))


@pytest.mark.parametrize(("folder", "suffix"), [("mnist", ".gz"), ("mnist", ""), ("MNIST/raw", "")])
@pytest.mark.usefixtures("without_checksums")
def test_user_idx_files_are_used(data_dir: Path, folder: str, suffix: str) -> None:
    write_digits(data_dir / folder, suffix)
    data = mnist()
    assert (len(data.train), len(data.test), data.shape) == (12, 5, (1, 28, 28))
    assert data.train.y is not None
    assert data.train.y.tolist() == [*range(10), 0, 1]
    assert 0.9 < float(data.train.x.max()) <= 1


@pytest.mark.usefixtures("without_checksums")
def test_damaged_idx_files_raise(data_dir: Path) -> None:
    write_digits(data_dir / "mnist")
    images = data_dir / "mnist" / "train-images-idx3-ubyte.gz"
    good = images.read_bytes()
    images.write_bytes(good[: len(good) // 2])
    with pytest.raises(DataError, match=r"train-images-idx3-ubyte\.gz is not a complete gzip file"):
        mnist()
    images.write_bytes(b"<html>not found</html>")
    with pytest.raises(DataError, match="is not a complete gzip file"):
        mnist()
    write(images, gzip.decompress(good)[:-1])
    with pytest.raises(DataError, match=r"is truncated: \[12, 28, 28\] needs 9408 bytes, but has 9407"):
        mnist()
    write(images, gzip.decompress(good) + b"more")
    with pytest.raises(DataError, match="has 4 bytes after its array"):
        mnist()
    write(images, b"\x00\x00\x0d\x03" + gzip.decompress(good)[4:])
    with pytest.raises(DataError, match="is not an idx file of bytes: it starts with 00 00 0d 03"):
        mnist()
    write(images, encode_idx(torch.zeros(11, 28, 28, dtype=torch.uint8)))
    with pytest.raises(DataError, match=r"has 11 images and .* 12 labels"):
        mnist()


@pytest.mark.usefixtures("without_checksums")
def test_label_above_nine_raises_data_error(data_dir: Path) -> None:
    write_digits(data_dir / "fashion-mnist")
    write(data_dir / "fashion-mnist" / "t10k-labels-idx1-ubyte.gz", encode_idx(torch.arange(8, 13, dtype=torch.uint8)))
    with pytest.raises(DataError, match="contains the label 12"):
        fashion_mnist()


def test_missing_idx_file_raises_data_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read: No such file"):
        read_idx(tmp_path / "nothing")


@pytest.mark.parametrize("folder", ["cifar-10-batches-bin", "cifar10/cifar-10-batches-bin"])
def test_cifar_records_are_planes(data_dir: Path, folder: str) -> None:
    red = bytes([255] * 1_024 + [0] * 2_048)
    for number in range(1, 6):
        write(data_dir / folder / f"data_batch_{number}.bin", bytes([number]) + red)
    write(data_dir / folder / "test_batch.bin", bytes([9]) + red)
    data = cifar10()
    assert data.train.y is not None
    assert data.train.y.tolist() == [1, 2, 3, 4, 5]
    assert data.train.x.mean((0, 2, 3)).tolist() == [1, 0, 0]
    write(data_dir / folder / "test_batch.bin", bytes([9]) + red[1:])
    with pytest.raises(DataError, match=r"test_batch\.bin has 3072 bytes, which is not a multiple of"):
        cifar10()
    (data_dir / folder / "data_batch_3.bin").unlink()
    with pytest.raises(DataError, match=r"data_batch_3\.bin is missing"):
        cifar10()


@pytest.mark.network
def test_cifar_is_downloaded_and_unpacked_and_the_archive_is_deleted(
    data_dir: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        for number, name in enumerate([*(f"data_batch_{batch}.bin" for batch in range(1, 6)), "test_batch.bin"]):
            info = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            info.size = 3_073
            tar.addfile(info, io.BytesIO(bytes([number] * 3_073)))
    server.files["/cifar"] = content.getvalue()
    checksum = f"sha256:{hashlib.sha256(content.getvalue()).hexdigest()}"
    source = RemoteFile("cifar-10-binary.tar.gz", (f"{server.url}/cifar",), checksum)
    monkeypatch.setattr("parnassus.data.downloads.images.CIFAR10", source)
    data = cifar10()
    assert data.train.y is not None
    assert data.train.y.tolist() == [0, 1, 2, 3, 4]
    assert [item.name for item in data_dir.iterdir()] == ["cifar-10-batches-bin"]
    cifar10()
    assert len(server.requests) == 1


def test_a_file_that_expands_without_limit_raises_data_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idx, "MAX_BYTES", 1_000)
    path = write(tmp_path / "large.gz", bytes(1_001))
    with pytest.raises(DataError, match=r"large\.gz expands to more than 1,000 bytes: decompress it if you trust it"):
        idx.read_gzipped(path)
    write(path, bytes(1_000))
    assert idx.read_gzipped(path) == bytes(1_000)


@pytest.mark.parametrize("folder", ["mnist", "MNIST/raw"])
def test_files_in_place_with_another_checksum_are_announced(data_dir: Path, folder: str) -> None:
    write_digits(data_dir / folder)
    lines: list[str] = []
    with pass_notices(lines.append):
        mnist()
    assert len(lines) == 4
    assert "train-images-idx3-ubyte.gz is not the public file" in lines[0]


@pytest.mark.usefixtures("without_checksums")
def test_user_archive_is_kept(data_dir: Path) -> None:
    batch = bytes([3] * 3_073)
    data_dir.mkdir()
    with tarfile.open(data_dir / "cifar-10-binary.tar.gz", mode="w:gz") as tar:
        for name in [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]:
            info = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            info.size = len(batch)
            tar.addfile(info, io.BytesIO(batch))
    assert len(cifar10().train) == 5
    assert (data_dir / "cifar-10-binary.tar.gz").is_file()


def test_chorales_have_chords_of_four_pitches(data_dir: Path) -> None:
    path = data_dir / "jsb-chorales" / "Jsb16thSeparated.json.gz"
    piece = [[60, 55, 52, -1], [62, 55, 52, 48]]
    write(path, json.dumps({"train": [piece], "valid": [piece, piece], "test": []}).encode())
    chorales = jsb_chorales()
    assert [each.tolist() for each in chorales.train] == [piece]
    assert (len(chorales.valid), len(chorales.test)) == (2, 0)
    for content, message in (
        (b"{", "is not JSON"),
        (b"[]", "must contain the lists train, valid and test"),
        (b'{"train": [[[1, 2, 3]]], "valid": [], "test": []}', r"shape \[1, 3\]; chords have four"),
        (b'{"train": [[[1, 2, 3, 200]]], "valid": [], "test": []}', "pitches from 1 to 200"),
        (b'{"train": [[[1, 2, 3], [4]]], "valid": [], "test": []}', "not a list of chords"),
    ):
        write(path, content)
        with pytest.raises(DataError, match=message):
            jsb_chorales()


@pytest.mark.usefixtures("without_checksums")
def test_wrong_number_of_captions_raises_data_error(data_dir: Path) -> None:
    write(data_dir / "multi30k" / "train.de.gz", b"Ein Hund\n")
    with pytest.raises(DataError, match=r"train\.de\.gz has 1 lines instead of 29,000"):
        multi30k()
    with pytest.raises(ValueError, match="pair must be two of de, en, fr"):
        multi30k(("de", "de"))


def test_membrane_images_are_in_numerical_order(data_dir: Path) -> None:
    def encode_image(value: int) -> bytes:
        content = io.BytesIO()
        Image.fromarray(np.full((8, 8), value, dtype=np.uint8)).save(content, "PNG")
        return content.getvalue()

    members = {f"image/{n}.png": encode_image(n) for n in (10, 2, 0)} | {
        f"label/{n}.png": encode_image(255 * (n > 5)) for n in (0, 2, 10)
    }
    path = data_dir / "membrane" / "train.tar"
    path.parent.mkdir(parents=True)
    with tarfile.open(path, "w") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    data = membrane(test=1)
    assert (data.train.x[:, 0, 0, 0] * 255).round().tolist() == [0, 2]
    assert data.test.y is not None
    assert data.test.y.unique().tolist() == [1]
    path.unlink()
    with pytest.raises(DataError, match="not downloaded automatically"):
        membrane()


def test_book_body_starts_after_the_table_of_contents() -> None:
    contents, chapter = "CHAPTER 1. Loomings.\n\nCHAPTER 2.\n\n", "CHAPTER 1. Loomings.\n\nCall me Ishmael."
    text = f"Licence\n{contents}{chapter} It only found another\norphan.\n\nEnd of Project Gutenberg"
    assert book_body(text, "book") == f"{chapter} It only found another\norphan.\n"
    with pytest.raises(DataError, match="book is not the Project Gutenberg edition"):
        book_body("Call me Ahab.", "book")


def test_real_mnist(real_data: Path) -> None:
    if not (real_data / "mnist").is_dir():
        pytest.skip("MNIST is not in the data directory")
    data = mnist()
    assert (len(data.train), len(data.test)) == (60_000, 10_000)
    assert abs(float(data.train.x.mean()) - 0.1307) < 1e-4
    assert data.test.y is not None
    assert torch.bincount(data.test.y).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


def test_real_membrane(real_data: Path) -> None:
    if not (real_data / "membrane").is_dir():
        pytest.skip("the membranes are not in the data directory")
    data = membrane()
    assert (len(data.train), len(data.test), data.shape) == (24, 6, (1, 512, 512))
    assert data.train.y is not None
    assert 0.7 < float(data.train.y.float().mean()) < 0.85  # most pixels are inside cells


def test_real_sequences(real_data: Path) -> None:
    if not (real_data / "jsb-chorales").is_dir() or not (real_data / "multi30k").is_dir():
        pytest.skip("chorales or captions are not in the data directory")
    chorales = jsb_chorales()
    assert (len(chorales.train), len(chorales.valid), len(chorales.test)) == (229, 76, 77)
    captions = multi30k(("de", "en"))
    assert (len(captions.train), len(captions.valid), len(captions.test)) == (29_000, 1_014, 1_000)
    assert captions.train[0][1].startswith("Two young, White males")


def test_real_texts(real_data: Path) -> None:
    if not (real_data / "text").is_dir():
        pytest.skip("the texts are not in the data directory")
    shakespeare = tiny_shakespeare()
    assert (len(shakespeare.train), len(shakespeare.test), len(shakespeare.alphabet)) == (1_003_854, 111_540, 65)
    assert "Call me Ishmael" in moby_dick().train[:60]
    assert len(names().train.split()) + len(names().test.split()) == 32_033
    assert len(names().alphabet) == 27
