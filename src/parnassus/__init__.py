"""Deep learning from one neuron to AlphaZero: methods as small reusable parts, formulas verified numerically.

The packages are imported when they are first used:

    import parnassus

    pca = parnassus.latent.PCA.fit(x, num_components=2)
"""

import os
from types import ModuleType

__version__ = "0.2.0"


def __getattr__(name: str) -> ModuleType:
    """A package of this one, imported now."""
    if name in _packages():
        from importlib import import_module

        return import_module(f"parnassus.{name}")
    raise AttributeError(f"module 'parnassus' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The names of the packages, and the module's own attributes."""
    return sorted([*(name for name in globals() if name.startswith("__")), *_packages()])


def _packages() -> list[str]:
    folder = os.path.dirname(__file__)  # noqa: PTH120 - pathlib takes ten times as long to import as this module
    return [each.name for each in os.scandir(folder) if os.path.isfile(os.path.join(each.path, "__init__.py"))]  # noqa: PTH113, PTH118
