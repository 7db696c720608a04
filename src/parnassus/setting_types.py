"""Types of settings: limits, choices, and the names of built-in data sets and environments.

    steps: Positive[int] = 4_000  # gradient steps
    dropout: UnitInterval = 0.1  # fraction of activations set to zero
    data: Annotated[str, BuiltIn("digits", "mnist")] = "digits"  # images by class, or your own folder

`atlas.settings` reads them: the command line checks values against these limits and the lab builds its forms from them.
"""

from dataclasses import dataclass
from typing import Annotated, TypeAlias, TypeVar, get_args

Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class AtLeast:
    """value ≥ low.

    >>> AtLeast(2).low
    2
    """

    low: float


@dataclass(frozen=True)
class GreaterThan:
    """value > low.

    >>> GreaterThan(0).low
    0
    """

    low: float


@dataclass(frozen=True)
class Between:
    """low ≤ value ≤ high.

    >>> Between(0, 1).high
    1
    """

    low: float
    high: float


@dataclass(frozen=True)
class StrictlyBetween:
    """low < value < high.

    >>> StrictlyBetween(-1, 1).low
    -1
    """

    low: float
    high: float


class BuiltIn:
    """Suggested names; other values, such as the path of a file, are accepted too.

    >>> BuiltIn("moons", "rings").names
    ('moons', 'rings')
    """

    def __init__(self, *names: str) -> None:
        self.names = names


class FreeText:
    """Free text, such as a sentence or a map; never the name of a file."""


Positive: TypeAlias = Annotated[Number, GreaterThan(0)]
NonNegative: TypeAlias = Annotated[Number, AtLeast(0)]
UnitInterval: TypeAlias = Annotated[float, Between(0, 1)]
Correlation: TypeAlias = Annotated[float, StrictlyBetween(-1, 1)]
Text: TypeAlias = Annotated[str, FreeText()]
DeviceName: TypeAlias = Annotated[str, BuiltIn("auto", "cpu", "cuda", "mps")]

ImageData: TypeAlias = Annotated[str, BuiltIn("digits", "mnist_mini", "mnist", "fashion_mnist", "cifar10")]
GreyImageData: TypeAlias = Annotated[str, BuiltIn("digits", "mnist_mini", "mnist", "fashion_mnist")]
PlaneData: TypeAlias = Annotated[str, BuiltIn("moons", "rings", "spirals", "eight_gaussians", "checkerboard")]
TableData: TypeAlias = Annotated[str, BuiltIn("iris", "wine", "breast_cancer", "diabetes")]
AnyData: TypeAlias = Annotated[
    str,
    BuiltIn(
        "digits", "mnist_mini", "mnist", "fashion_mnist", "cifar10", "membrane", "iris", "wine", "breast_cancer",
        "diabetes", "linnerud", "moons", "rings", "spirals", "eight_gaussians", "checkerboard", "swiss_roll", "sines",
    ),
]  # fmt: skip
SoundData: TypeAlias = Annotated[str, BuiltIn("vowels", "spoken_digits")]
TextData: TypeAlias = Annotated[str, BuiltIn("pydoc", "tiny_shakespeare", "moby_dick", "names")]
EnvironmentId: TypeAlias = Annotated[
    str, BuiltIn("CartPole-v1", "Acrobot-v1", "MountainCar-v0", "Pendulum-v1", "LunarLander-v3")
]
DATA_NAMES: frozenset[str] = frozenset(
    name for kind in (AnyData, SoundData, TextData) for name in get_args(kind)[1].names
) | {"jsb_chorales", "multi30k"}
"""The names of all built-in data sets."""
