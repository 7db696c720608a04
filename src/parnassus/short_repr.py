"""A `repr` of one or two lines for dataclasses that hold tensors, texts or long lists."""

from dataclasses import fields

LONGEST = 40
"""Maximal number of characters of a value that is shown in full."""


def short_repr(instance: object) -> str:
    """`Name(field=value, …)`: the shape of an array and the length of a long text or collection in place of its values.

    A dataclass uses it by `__repr__ = short_repr`. Private fields and fields that are None, empty or hidden by
    `field(repr=False)` are left out.
    """
    shown = {
        each.name: getattr(instance, each.name)
        for each in fields(instance)  # type: ignore[arg-type]  # `self` of a dataclass
        if each.repr and not each.name.startswith("_")
    }
    described = [f"{name}={_describe(value)}" for name, value in shown.items() if not _is_empty(value)]
    return f"{type(instance).__name__}({', '.join(described)})"


def _describe(value: object) -> str:
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return f"{type(value).__name__}[{' × '.join(map(str, shape))}]" if shape else f"{value:.4g}"
    shown = repr(value)
    if type(value).__repr__ is short_repr or (len(shown) <= LONGEST and "\n" not in shown):
        return shown
    if isinstance(value, str):
        return f"{value[: LONGEST // 2]!r}… ({len(value):,} characters)"
    if isinstance(value, list | tuple | dict | set | frozenset):
        return f"{type(value).__name__} of {len(value):,}"
    return getattr(value, "__name__", type(value).__name__)


def _is_empty(value: object) -> bool:
    return value is None or (isinstance(value, str | list | tuple | dict) and not value)
