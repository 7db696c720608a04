"""The contract of models: every public nn.Module with `loss`, `sample` or `log_prob`."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn

from .checks import (
    Offences,
    as_double,
    check_cast_or_refused,
    check_equal,
    other_default_device,
    perturb,
    seeded,
    unchanged,
    unchanged_globals,
    without_shape_checks,
)
from .models import MODELS, Model
from .public_members import check_factories, has_any, public_classes

VERBS = ("loss", "log_prob", "sample")
FAMILY = [name for name, member in public_classes(nn.Module).items() if has_any(member, *VERBS)]


@pytest.fixture
def offences() -> Offences:
    return Offences()


def test_every_model_has_a_factory() -> None:
    check_factories(FAMILY, MODELS)


def arguments(case: Model, verb: str) -> tuple[Any, ...]:
    if verb == "sample":
        return case.sample
    return case.log_prob() if verb == "log_prob" and case.log_prob is not None else case.inputs()


def call(model: Any, verb: str, case: Model, inputs: Sequence[Any] | None = None) -> Tensor:
    inputs = arguments(case, verb) if inputs is None else inputs
    if verb == "sample" and case.sample_steps is not None:
        return cast("Tensor", model.sample(*inputs, steps=case.sample_steps))
    return cast("Tensor", getattr(model, verb)(*inputs))


def verbs(model: nn.Module) -> list[str]:
    return [verb for verb in VERBS if callable(getattr(model, verb, None))]


def test_results_have_the_shape_dtype_and_device_of_model_and_input(offences: Offences) -> None:
    for name, case in MODELS.items():
        with offences.record(name, "float64"):
            check_results(case, as_double, torch.float64)
        with offences.record(name, "device"):
            model = seeded(case.build)
            for verb in verbs(model):
                inputs = arguments(case, verb)
                with other_default_device():
                    result = call(model, verb, case, inputs)
                assert result.device.type == "cpu", f"{verb} does not use the device of the model"
    offences.check()


def check_results(case: Model, convert: Callable[[Any], Any], dtype: torch.dtype) -> None:
    model = seeded(case.build).to(dtype)
    for verb in verbs(model):
        inputs = [convert(each) for each in arguments(case, verb)]
        result: Tensor = call(model, verb, case, inputs)
        batch = inputs[0] if verb == "sample" else len(inputs[0])
        expected = () if verb == "loss" else (batch,)
        assert result.shape[: 1 if verb == "sample" else None] == expected, f"{verb} has shape {tuple(result.shape)}"
        assert not result.is_floating_point() or result.dtype == dtype, f"{verb} is {result.dtype}"
        assert bool(result.isfinite().all()), f"{verb} is not finite"
        assert verb == "loss" or not result.requires_grad or verb == "log_prob", f"{verb} requires a gradient"


def test_gradients_reach_every_parameter(offences: Offences) -> None:
    for name, case in MODELS.items():
        with offences.record(name, "gradients"):
            model: Any = perturb(seeded(case.build).train())
            if not hasattr(model, "loss"):
                continue
            model.loss(*case.inputs()).backward()
            trained = {key: p for key, p in model.named_parameters() if not key.startswith(case.untrained)}
            unreached = [key for key, p in trained.items() if p.grad is None or not bool(p.grad.any())]
            assert not unreached, f"no gradient at {', '.join(unreached)}"
            assert all(bool(p.grad.isfinite().all()) for p in trained.values()), "not finite"
    offences.check()


def test_a_state_dict_restores_the_model(offences: Offences) -> None:
    for name, case in MODELS.items():
        with offences.record(name, "state_dict"):
            first, second = perturb(seeded(case.build)).eval(), perturb(case.build()).eval()
            second.load_state_dict(first.state_dict())
            for verb in verbs(first):
                check_equal(*(seeded(partial(call, model, verb, case)) for model in (first, second)))
    offences.check()


def test_the_same_seed_gives_the_same_result_and_nothing_else_changes(offences: Offences) -> None:
    for name, case in MODELS.items():
        model = seeded(case.build).eval()
        for verb in verbs(model):
            inputs = arguments(case, verb)
            is_random = verb != "log_prob" or case.log_prob_is_random
            with without_shape_checks(), offences.record(name, verb), unchanged(*inputs):
                with unchanged_globals(torch_generator=not is_random):
                    first = call(model, verb, case, inputs)
                check_equal(*(seeded(partial(call, model, verb, case, inputs)) for _ in range(2)))
                assert is_random or torch.equal(first, call(model, verb, case, inputs)), "is random"
                assert not model.training, "changed the mode of the model"
    offences.check()


def test_reprs_show_no_tensors(offences: Offences) -> None:
    for name, case in MODELS.items():
        with offences.record(name, "repr"):
            lines = repr(seeded(case.build)).splitlines()
            assert not any("tensor(" in line or len(line) > 200 for line in lines), "shows tensors or long lines"
    offences.check()


def test_log_densities_of_numpy_and_integer_arrays_are_cast_or_refused(offences: Offences) -> None:
    """The loss takes tensors only: it is called at every step, often compiled."""
    for name, case in MODELS.items():
        model: Any = seeded(case.build)
        if "log_prob" in verbs(model):
            with without_shape_checks(), offences.record(name, "log_prob"):
                check_cast_or_refused(model.log_prob, arguments(case, "log_prob"))
    offences.check()
