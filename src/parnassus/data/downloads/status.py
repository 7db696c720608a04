"""Available data sets, and how to obtain the others, for `parnassus doctor`."""

from collections.abc import Iterable
from typing import NamedTuple

from parnassus.data.downloads.folder import VARIABLE, data_folder, find_file
from parnassus.data.downloads.images import FASHION_FOLDERS, MEMBRANE, MNIST_FOLDERS, cifar_folder
from parnassus.data.downloads.sources import (
    FASHION_MNIST,
    JSB_CHORALES,
    MNIST,
    MOBY_DICK,
    MULTI30K,
    NAMES,
    SPOKEN_DIGITS,
    TINY_SHAKESPEARE,
    RemoteFile,
)

EMBEDDED = {
    "digits": "scikit-learn",
    "iris": "scikit-learn",
    "wine": "scikit-learn",
    "breast_cancer": "scikit-learn",
    "diabetes": "scikit-learn",
    "linnerud": "scikit-learn",
    "sample_images": "scikit-learn",
    "mnist_mini": "the package",
    "pydoc": "Python's standard library",
    "toy data sets": "generated",
    "vowels": "generated",
}


class DataStatus(NamedTuple):
    """One data set: whether it is present, its path, and how to obtain it.

    >>> data_status()[0].name
    'digits'
    """

    name: str
    present: bool
    where: str
    how: str


def data_status() -> list[DataStatus]:
    """The status of all data sets, the embedded ones first; nothing is downloaded or read."""
    embedded = [DataStatus(name, True, where, "") for name, where in EMBEDDED.items()]
    remote = [
        _download_status("mnist", MNIST.values(), MNIST_FOLDERS),
        _download_status("fashion_mnist", FASHION_MNIST.values(), FASHION_FOLDERS),
        _cifar(),
        _download_status("tiny_shakespeare", [TINY_SHAKESPEARE]),
        _download_status("moby_dick", [MOBY_DICK]),
        _download_status("names", [NAMES]),
        _download_status("jsb_chorales", [JSB_CHORALES]),
        _download_status("multi30k", MULTI30K.values()),
        _download_status("spoken_digits", [SPOKEN_DIGITS]),
        _membrane(),
    ]
    return embedded + remote


def _download_status(name: str, sources: Iterable[RemoteFile], folders: tuple[str, ...] = ()) -> DataStatus:
    sources = list(sources)
    present = all(_is_present(source, folders) for source in sources)
    place = data_folder() / sources[0].place
    where = place if len(sources) == 1 else place.parent
    how = "" if present else f"downloaded on first use; or put {_listing(sources)} there"
    return DataStatus(name, present, str(where), how)


def _is_present(source: RemoteFile, folders: tuple[str, ...]) -> bool:
    file = source.name.removesuffix(".gz")
    return find_file(source.place.removesuffix(".gz"), *(f"{folder}/{file}" for folder in folders)) is not None


def _listing(sources: list[RemoteFile]) -> str:
    return sources[0].name if len(sources) == 1 else f"its {len(sources)} files ({sources[0].name}, …)"


def _cifar() -> DataStatus:
    folder = cifar_folder()
    if folder is not None:
        return DataStatus("cifar10", True, str(folder), "")
    how = "downloaded on first use; or unpack cifar-10-binary.tar.gz there"
    return DataStatus("cifar10", False, str(data_folder()), how)


def _membrane() -> DataStatus:
    path = find_file(MEMBRANE)
    if path is not None:
        return DataStatus("membrane", True, str(path), "")
    how = f"put the ISBI 2012 training stack there, a tar of image/N.png and label/N.png ({VARIABLE} sets the folder)"
    return DataStatus("membrane", False, str(data_folder() / MEMBRANE), how)
