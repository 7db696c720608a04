"""Addresses of the files of the public data sets, with their checksums.

Checksums are from public sources: TensorFlow Datasets for MNIST, Fashion-MNIST, CIFAR-10 and tiny Shakespeare, projects
that pin the files for Multi30k (German and English) and the names. Where none is published, `checksum` is None, and the
loader verifies the structure of the download instead.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class RemoteFile:
    """One file: its path in the data directory, its addresses, and its checksum as "algorithm:digest" or None."""

    place: str
    mirrors: tuple[str, ...]
    checksum: str | None

    @property
    def name(self) -> str:
        return self.place.rsplit("/", maxsplit=1)[-1]


GITHUB = "https://raw.githubusercontent.com"
MNIST_MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    f"{GITHUB}/fgnt/mnist/master/",
)
FASHION_MIRRORS = (
    f"{GITHUB}/zalandoresearch/fashion-mnist/master/data/fashion/",
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
)
MULTI30K_MIRRORS = (f"{GITHUB}/multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1/raw/",)


def _files(folder: str, mirrors: tuple[str, ...], sha256: dict[str, str | None]) -> dict[str, RemoteFile]:
    return {
        name: RemoteFile(f"{folder}/{name}", tuple(mirror + name for mirror in mirrors), digest and f"sha256:{digest}")
        for name, digest in sha256.items()
    }


MNIST = _files(
    "mnist",
    MNIST_MIRRORS,
    {
        "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    },
)
FASHION_MNIST = _files(
    "fashion-mnist",
    FASHION_MIRRORS,
    {
        "train-images-idx3-ubyte.gz": "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        "train-labels-idx1-ubyte.gz": "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        "t10k-images-idx3-ubyte.gz": "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        "t10k-labels-idx1-ubyte.gz": "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
    },
)
CIFAR10 = RemoteFile(
    "cifar-10-binary.tar.gz",
    (
        "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        "https://cave.cs.toronto.edu/kriz/cifar-10-binary.tar.gz",
        "https://storage.googleapis.com/s4tf-hosted-binaries/datasets/CIFAR10/cifar-10-binary.tar.gz",
    ),
    "sha256:c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
)
TINY_SHAKESPEARE = RemoteFile(
    "text/tinyshakespeare.txt",
    (
        f"{GITHUB}/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
        f"{GITHUB}/jcjohnson/torch-rnn/master/data/tiny-shakespeare.txt",
    ),
    "sha256:86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
)
NAMES = RemoteFile(
    "text/names.txt",
    (f"{GITHUB}/karpathy/makemore/988aa59/names.txt", f"{GITHUB}/karpathy/makemore/master/names.txt"),
    "sha256:0a30b5557f192f32ab962680889aac5f6fda0f4cecf40a6d0b5694f58ea8cc4d",
)
MOBY_DICK = RemoteFile(
    "text/moby_dick.txt",
    ("https://www.gutenberg.org/cache/epub/2701/pg2701.txt", "https://www.gutenberg.org/files/2701/2701-0.txt"),
    None,  # Project Gutenberg updates its texts
)
JSB_CHORALES = RemoteFile(
    "jsb-chorales/Jsb16thSeparated.json",
    (f"{GITHUB}/czhuang/JSB-Chorales-dataset/master/Jsb16thSeparated.json",),
    None,
)
SPOKEN_DIGITS = RemoteFile(
    "fsdd/recordings.tar.gz",
    ("https://github.com/Jakobovski/free-spoken-digit-dataset/archive/refs/tags/v1.0.10.tar.gz",),
    None,  # the server repacks the archive
)
MULTI30K = _files(
    "multi30k",
    MULTI30K_MIRRORS,
    {
        "train.de.gz": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
        "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
        "train.fr.gz": None,
        "val.de.gz": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
        "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
        "val.fr.gz": None,
        "test_2016_flickr.de.gz": "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
        "test_2016_flickr.en.gz": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
        "test_2016_flickr.fr.gz": None,
    },
)
