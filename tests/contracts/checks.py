"""Parts of contracts: what a call may not change, and a default device that differs from the device of the input."""

import inspect
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jaxtyping
import numpy as np
import torch
from torch import Tensor, nn


@dataclass
class Offences:
    """What members do against the contract, one line each."""

    lines: list[str] = field(default_factory=list)

    @contextmanager
    def record(self, member: str, rule: str) -> Iterator[None]:
        """Turn a failed assertion or an error within the block into a line."""
        try:
            yield
        except Exception as error:  # every kind of failure is an offence of this member
            reason = " ".join(str(error).split()) or type(error).__name__
            self.lines.append(f"{member}: {rule}: {type(error).__name__}: {reason[:200]}")

    def check(self) -> None:
        assert not self.lines, f"{len(self.lines)} offences:\n" + "\n".join(self.lines)


@contextmanager
def unchanged_globals(*, torch_generator: bool) -> Iterator[None]:
    """Fail if the block changes a global state: modes, defaults, and the random states.

    A method without an argument `generator` draws from torch's global generator; `torch_generator` is False for these.
    """
    before, numbers = _global_state(), torch.get_rng_state()
    yield
    changed = [name for name, value in _global_state().items() if before[name] != value]
    assert not changed, f"changed globally: {', '.join(changed)}"
    assert not torch_generator or torch.equal(numbers, torch.get_rng_state()), "changed torch's random state"


def _global_state() -> dict[str, object]:
    return {
        "default dtype": torch.get_default_dtype(),
        "grad mode": torch.is_grad_enabled(),
        "inference mode": torch.is_inference_mode_enabled(),
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "threads": torch.get_num_threads(),
        "python's random state": hash(random.getstate()),
        "numpy's random state": hash(np.random.get_state()[1].tobytes()),  # type: ignore[index]  # noqa: NPY002 - reads the legacy tuple
    }


@contextmanager
def unchanged(*tensors: object) -> Iterator[None]:
    """Fail if the block writes to a tensor of the input."""
    before = [(each, each.clone()) for each in tensors if isinstance(each, Tensor)]
    yield
    assert all(torch.equal(each, copy) for each, copy in before), "changed its input"


@contextmanager
def without_shape_checks() -> Iterator[None]:
    """Switch off the check of jaxtyping's annotations, which users do not have: invalid input must reach the code."""
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)


def other_default_device() -> torch.device:
    """As context manager: tensors created without a device lie on another one than the input.

    A new tensor must take its device from the input or from the parameters, or combining the two fails.
    """
    return torch.device("meta")


def perturb(module: nn.Module) -> nn.Module:
    """Add noise to all parameters: gradients do not pass through layers that are initialised with zeros."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return module


def as_double(value: Any) -> Any:
    return value.double() if isinstance(value, Tensor) and value.is_floating_point() else value


def seeded(call: Callable[[], Any]) -> Any:
    torch.manual_seed(0)
    return call()


def tensors_of(value: object) -> list[Tensor]:
    """The tensors of a result: of a tensor, a tuple, or an object with fields."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [tensor for each in value for tensor in tensors_of(each)]
    if isinstance(value, dict):
        return [tensor for each in value.values() for tensor in tensors_of(each)]
    return tensors_of(list(vars(value).values())) if hasattr(value, "__dict__") and not callable(value) else []


def check_equal(first: object, second: object) -> None:
    a, b = tensors_of(first), tensors_of(second)
    assert len(a) == len(b), f"{len(a)} and {len(b)} tensors"
    assert all(torch.equal(x, y) or torch.equal(x.nan_to_num(), y.nan_to_num()) for x, y in zip(a, b, strict=True)), (
        "not the same result"
    )


def check_cast_or_refused(call: Callable[..., Any], arrays: Sequence[Any]) -> None:
    """Numpy arrays and integers are cast, or refused by a sentence that names an argument."""
    names = [name for name in inspect.signature(call).parameters if name not in {"cls", "self"}]
    for convert in (to_numpy, to_integers):
        changed, refusal = [convert(each) for each in arrays], None
        try:
            call(*changed)
        except (TypeError, ValueError) as error:
            refusal = str(error)
        except Exception as error:
            raise AssertionError(f"{convert.__name__}: {type(error).__name__}: {error}") from error
        assert refusal is None or any(name in refusal for name in names), f"{convert.__name__}: {refusal}"


def to_numpy(value: Any) -> Any:
    return value.detach().numpy() if isinstance(value, Tensor) else value


def to_integers(value: Any) -> Any:
    """Floating-point numbers as integers, of which some differ."""
    if not isinstance(value, Tensor) or not value.is_floating_point():
        return value
    return (value if bool((value == value.round()).all()) else (4 * value).ceil()).long()
