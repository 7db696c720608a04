"""The public names of all rooms, and the families that their types and signatures put them in."""

import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import parnassus

PACKAGE = Path(parnassus.__file__).parent
Factory = TypeVar("Factory")


@cache
def public_members() -> dict[str, Any]:
    """Every public name of every room with its object, as in "latent.VAE"."""
    rooms = [path.parent.name for path in sorted(PACKAGE.glob("*/room.toml")) if (path.parent / "__init__.py").exists()]
    modules = {room: importlib.import_module(f"parnassus.{room}") for room in rooms}
    return {f"{room}.{name}": getattr(module, name) for room, module in modules.items() for name in module.__all__}


def public_classes(base: type = object) -> dict[str, type]:
    """The public classes that derive from `base`; protocols describe members and are none themselves."""
    return {
        name: member
        for name, member in public_members().items()
        if inspect.isclass(member) and issubclass(member, base) and not getattr(member, "_is_protocol", False)
    }


def has_any(member: type, *methods: str) -> bool:
    """Whether the class has one of these methods."""
    return any(callable(getattr(member, method, None)) for method in methods)


def functions_returning(*annotations: object) -> dict[str, Callable[..., Any]]:
    """The public functions whose return annotation is one of these."""
    return {
        name: member
        for name, member in public_members().items()
        if inspect.isfunction(member) and member.__annotations__.get("return") in annotations
    }


def check_factories(family: Iterable[str], factories: Mapping[str, Factory]) -> None:
    """Fail if a member of the family has no factory, or a factory no member."""
    missing, stale = sorted(set(family) - set(factories)), sorted(set(factories) - set(family))
    assert not missing, f"public members without a factory in tests/contracts: {', '.join(missing)}"
    assert not stale, f"factories in tests/contracts of names that are not public members: {', '.join(stale)}"
