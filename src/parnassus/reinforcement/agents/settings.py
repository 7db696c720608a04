"""Settings tuned for an environment, overridden by those given explicitly."""

from dataclasses import fields, replace
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable


@runtime_checkable
class IsDataclass(Protocol):
    """Any dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


Settings = TypeVar("Settings", bound=IsDataclass)


def resolve_settings(defaults: Settings, overrides: object) -> Settings:
    """`defaults` with every value replaced that `overrides` has under the same name and that is not None."""
    given = {field.name: getattr(overrides, field.name, None) for field in fields(defaults)}
    return replace(defaults, **{name: value for name, value in given.items() if value is not None})


def num_updates(total_timesteps: int, n_envs: int, n_steps: int) -> int:
    """The number of updates of `n_steps` per environment that fit into `total_timesteps`."""
    if total_timesteps < n_envs * n_steps:
        raise ValueError(
            f"one update needs {n_envs} environments × {n_steps} steps; got total_timesteps={total_timesteps:,}: "
            "increase total_timesteps, or decrease n_envs or n_steps"
        )
    return total_timesteps // (n_envs * n_steps)
