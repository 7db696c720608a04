"""Deep learning from one neuron to AlphaZero: methods as small reusable parts, formulas verified numerically.

The packages are imported when they are first used:

    import parnassus

    pca = parnassus.latent.PCA.fit(x, num_components=2)
"""

from importlib import import_module
from pathlib import Path
from types import ModuleType

__version__ = "0.2.0"


def __getattr__(name: str) -> ModuleType:
    """A package or module of this one, imported now."""
    if name in __dir__():
        return import_module(f"parnassus.{name}")
    raise AttributeError(f"module 'parnassus' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The names of the packages, and of what is defined here."""
    packages = (path.parent.name for path in Path(__file__).parent.glob("*/__init__.py"))
    return sorted({*globals(), *packages})
