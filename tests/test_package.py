"""`import parnassus`: its packages are listed, and imported when they are first used."""

import subprocess
import sys
from types import ModuleType

import pytest

import parnassus

SCRIPT = """
import sys
import parnassus
assert {"latent", "estimators", "train", "__version__"} <= set(dir(parnassus))
assert not any(name in sys.modules for name in ("torch", "numpy", "sklearn", "parnassus.latent"))
print(parnassus.latent.PCA.__name__)
assert parnassus.latent is sys.modules["parnassus.latent"]
"""


def test_packages_are_imported_when_they_are_used() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert done.stdout == "PCA\n"


def test_all_listed_packages_can_be_imported() -> None:
    pytest.importorskip("nicegui")  # needed by the lab
    packages = [name for name in dir(parnassus) if not name.startswith("_") and name.islower()]
    assert {"latent", "kernels", "reinforcement", "estimators"} <= set(packages)
    for name in ("latent", "kernels", "estimators", "data"):
        assert isinstance(getattr(parnassus, name), ModuleType)


def test_unknown_names_raise_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'parnassus' has no attribute 'latnet'"):
        parnassus.latnet  # noqa: B018 - the access is what is tested
