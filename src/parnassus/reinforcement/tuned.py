"""Settings that suit an environment, unless some are told."""

from dataclasses import fields, replace
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable


@runtime_checkable
class HasFields(Protocol):
    """A dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


Settings = TypeVar("Settings", bound=HasFields)


def settled(known: Settings, told: object) -> Settings:
    """What is known to suit, with every number that `told` has under the same name and that is not None."""
    asked = {field.name: getattr(told, field.name, None) for field in fields(known)}
    return replace(known, **{name: value for name, value in asked.items() if value is not None})


def whole_updates(budget: int, copies: int, horizon: int) -> int:
    """How many times a budget of steps lets every copy go `horizon` steps; a sentence where it does not even once."""
    if budget < copies * horizon:
        raise ValueError(
            f"one update needs {copies} copies × {horizon} steps, more than the budget of {budget:,}: "
            "raise the budget, or lower copies or horizon"
        )
    return budget // (copies * horizon)
