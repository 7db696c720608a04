"""Data sets: embedded ones, toy generators, verified downloads, and user files."""

from parnassus.data.built_in.embedded import breast_cancer, diabetes, iris, linnerud, load_digits, sample_images, wine
from parnassus.data.built_in.mnist_mini import mnist_mini
from parnassus.data.built_in.phrases import german_phrases
from parnassus.data.built_in.vowels import vowels
from parnassus.data.downloads.chorales_and_captions import Chorales, Translations, jsb_chorales, multi30k
from parnassus.data.downloads.folder import data_folder
from parnassus.data.downloads.images import cifar10, fashion_mnist, membrane, mnist
from parnassus.data.downloads.status import DataStatus, data_status
from parnassus.data.downloads.texts import TextDataset, moby_dick, names, pydoc_text, text_file, tiny_shakespeare
from parnassus.data.errors import DataError
from parnassus.data.files.arrays import array_file
from parnassus.data.files.image_folder import image_folder
from parnassus.data.files.sound import Recordings, SoundDataset, spoken_digits, wav_folder
from parnassus.data.files.tables import csv_file
from parnassus.data.files.wav import read_wav, resample
from parnassus.data.loading import (
    check_target,
    open_curve,
    open_data,
    open_grey_images,
    open_images,
    open_labelled_images,
    open_sounds,
    open_text,
)
from parnassus.data.plane_points import SampledPoints, open_points
from parnassus.data.preparation.partition import standardise_features
from parnassus.data.preparation.regression_task import RegressionTask
from parnassus.data.sentence_pairs import open_pairs
from parnassus.data.splits import Batches, Dataset, Split
from parnassus.data.table_settings import TableSettings

__all__ = [
    "Batches",
    "Chorales",
    "DataError",
    "DataStatus",
    "Dataset",
    "Recordings",
    "RegressionTask",
    "SampledPoints",
    "SoundDataset",
    "Split",
    "TableSettings",
    "TextDataset",
    "Translations",
    "array_file",
    "breast_cancer",
    "check_target",
    "cifar10",
    "csv_file",
    "data_folder",
    "data_status",
    "diabetes",
    "fashion_mnist",
    "german_phrases",
    "image_folder",
    "iris",
    "jsb_chorales",
    "linnerud",
    "load_digits",
    "membrane",
    "mnist",
    "mnist_mini",
    "moby_dick",
    "multi30k",
    "names",
    "open_curve",
    "open_data",
    "open_grey_images",
    "open_images",
    "open_labelled_images",
    "open_pairs",
    "open_points",
    "open_sounds",
    "open_text",
    "pydoc_text",
    "read_wav",
    "resample",
    "sample_images",
    "spoken_digits",
    "standardise_features",
    "text_file",
    "tiny_shakespeare",
    "vowels",
    "wav_folder",
    "wine",
]
