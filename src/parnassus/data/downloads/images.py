"""Image data sets: MNIST, Fashion-MNIST and CIFAR-10 are downloaded once; the membranes of the U-Net paper are not.

Files that the user has placed in the data directory are used if their structure is valid.
"""

import io
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int, UInt8
from torch import Tensor

from parnassus.data.downloads.folder import data_folder, find_file
from parnassus.data.downloads.sources import CIFAR10, FASHION_MNIST, MNIST, RemoteFile
from parnassus.data.downloads.transfer import obtain
from parnassus.data.downloads.unpack import open_tar, read_member, unpack_tar
from parnassus.data.errors import DataError
from parnassus.data.files.idx import read_idx
from parnassus.data.splits import Dataset, Split

CLOTHES = (
    "T-shirt/top",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)
THINGS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
MNIST_FOLDERS = ("mnist", "MNIST/raw")  # of this library, and of torchvision
FASHION_FOLDERS = ("fashion-mnist", "FashionMNIST/raw")
CIFAR_FOLDERS = ("cifar-10-batches-bin", "cifar10/cifar-10-batches-bin")
CIFAR_RECORD = 1 + 3 * 32 * 32
MEMBRANE = "membrane/train.tar"


def mnist() -> Dataset:
    """70,000 handwritten digits of 28×28 pixels, 60,000 of them for training."""
    about = "MNIST (Y. LeCun, C. Cortes, C. J. C. Burges)"
    return _idx_dataset("mnist", MNIST, MNIST_FOLDERS, tuple("0123456789"), about)


def fashion_mnist() -> Dataset:
    """70,000 pieces of clothing of 28×28 pixels, 60,000 of them for training."""
    about = "Fashion-MNIST (H. Xiao, K. Rasul, R. Vollgraf 2017)"
    return _idx_dataset("fashion_mnist", FASHION_MNIST, FASHION_FOLDERS, CLOTHES, about)


def cifar10() -> Dataset:
    """60,000 colour photographs of 32×32 pixels in 10 classes, 50,000 of them for training."""
    folder = cifar_folder()
    if folder is None:
        is_local = find_file(CIFAR10.place.removesuffix(".gz")) is not None
        archive = obtain(CIFAR10)
        unpack_tar(archive, data_folder())
        if not is_local:
            archive.unlink()
        folder = data_folder() / CIFAR_FOLDERS[0]
    train = _cifar_split([folder / f"data_batch_{number}.bin" for number in range(1, 6)])
    test = _cifar_split([folder / "test_batch.bin"])
    return Dataset("cifar10", train, test, THINGS, about="CIFAR-10 (A. Krizhevsky 2009)")


def cifar_folder() -> Path | None:
    """The folder of the six binary batches, if it exists."""
    folders = [data_folder() / name for name in CIFAR_FOLDERS]
    return next((folder for folder in folders if (folder / "test_batch.bin").is_file()), None)


def membrane(*, test: int = 6) -> Dataset:
    """30 electron micrographs of 512×512 pixels; y is 1 inside a cell, 0 on a membrane; the last `test` held out."""
    path = find_file(MEMBRANE)
    if path is None:
        raise DataError(
            f"the membrane images are not downloaded automatically: put the ISBI 2012 training stack, a tar archive of "
            f"image/0.png … and label/0.png …, at {data_folder() / MEMBRANE}."
        )
    images, labels = _png_stacks(path)
    x, y = images[:, None].float() / 255, (labels > 127).long()
    if not 0 <= test <= len(x):
        raise ValueError(f"test must be from 0 to {len(x)}; got test={test}")
    last = len(x) - test
    about = "ISBI 2012 segmentation challenge (I. Arganda-Carreras et al. 2015)"
    return Dataset("membrane", Split(x[:last], y[:last]), Split(x[last:], y[last:]), ("membrane", "cell"), about)


def _idx_dataset(
    name: str, sources: dict[str, RemoteFile], folders: tuple[str, ...], classes: tuple[str, ...], about: str
) -> Dataset:
    def split(part: str) -> Split:
        images, labels = f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte"
        return labelled_images(*(_idx_file(file, sources, folders) for file in (images, labels)))

    return Dataset(name, split("train"), split("t10k"), classes, about)


def _idx_file(file: str, sources: dict[str, RemoteFile], folders: tuple[str, ...]) -> Path:
    return obtain(sources[f"{file}.gz"], folders=folders)


def labelled_images(images: Path, labels: Path) -> Split:
    """A pair of idx files as images in [0, 1] with one channel and labels from 0 to 9."""
    x, y = read_idx(images), read_idx(labels)
    if x.ndim != 3 or y.ndim != 1:
        raise DataError(
            f"{images} and {labels} must contain images and labels; their shapes are {[*x.shape]}, {[*y.shape]}."
        )
    if len(x) != len(y):
        raise DataError(f"{images} has {len(x)} images and {labels} {len(y)} labels: they do not match.")
    if len(y) and int(y.max()) > 9:
        raise DataError(f"{labels} contains the label {int(y.max())}, but the classes are 0 to 9.")
    return Split(x[:, None].float().div_(255), y.long())


def _cifar_split(paths: list[Path]) -> Split:
    labels, images = zip(*(_cifar_batch(path) for path in paths), strict=True)
    return Split(torch.cat(images).float().div_(255), torch.cat(labels))


def _cifar_batch(path: Path) -> tuple[Int[Tensor, " rows"], UInt8[Tensor, "rows 3 32 32"]]:
    if not path.is_file():
        raise DataError(f"{path} is missing: delete its folder to download CIFAR-10 again.")
    content = np.fromfile(path, dtype=np.uint8)
    if len(content) == 0 or len(content) % CIFAR_RECORD:
        raise DataError(f"{path} has {len(content)} bytes, which is not a multiple of {CIFAR_RECORD} bytes.")
    records = torch.from_numpy(content).view(-1, CIFAR_RECORD)
    labels = records[:, 0].long()
    if int(labels.max()) > 9:
        raise DataError(f"{path} contains the label {int(labels.max())}: it is not a CIFAR-10 batch.")
    return labels, records[:, 1:].reshape(-1, 3, 32, 32)


def _png_stacks(path: Path) -> tuple[UInt8[Tensor, "count h w"], UInt8[Tensor, "count h w"]]:
    """The images image/N.png and label/N.png of a tar archive, in the order of N."""
    from PIL import Image, UnidentifiedImageError

    stacks: dict[str, dict[int, Tensor]] = {"image": {}, "label": {}}
    with open_tar(path) as tar:
        for member in tar:
            place = Path(member.name)
            is_png = member.isfile() and place.suffix == ".png" and place.stem.isdecimal()
            if is_png and place.parent.name in stacks:
                try:
                    grey = Image.open(io.BytesIO(read_member(tar, member, path))).convert("L")
                except UnidentifiedImageError as error:
                    raise DataError(f"{member.name} in {path} is not an image.") from error
                stacks[place.parent.name][int(place.stem)] = torch.from_numpy(np.array(grey))
    images, labels = stacks["image"], stacks["label"]
    if not images or images.keys() != labels.keys() or len({each.shape for each in (images | labels).values()}) != 1:
        raise DataError(
            f"{path} must contain image/N.png and label/N.png for the same N and of one size; "
            f"it has {len(images)} images and {len(labels)} labels."
        )
    return torch.stack([images[n] for n in sorted(images)]), torch.stack([labels[n] for n in sorted(labels)])
