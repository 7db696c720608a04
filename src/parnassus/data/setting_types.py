"""Types of the settings that name data: what is built in, beside a file or a folder of one's own."""

from typing import Annotated, TypeAlias

from parnassus.atlas.settings import BuiltIn

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
TextData: TypeAlias = Annotated[str, BuiltIn("pydoc", "tiny_shakespeare", "moby_dick", "names")]
EnvironmentId: TypeAlias = Annotated[
    str, BuiltIn("CartPole-v1", "Acrobot-v1", "MountainCar-v0", "Pendulum-v1", "LunarLander-v3")
]
