"""The contract of optimisers: every public torch optimiser."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from parnassus import optim, reinforcement

from .checks import Offences, other_default_device, unchanged, unchanged_globals, without_shape_checks
from .public_members import check_factories, public_classes

Factory = Callable[[list[nn.Parameter]], Optimizer]

OPTIMISERS: dict[str, Factory] = {
    "optim.AdaGrad": lambda parameters: optim.AdaGrad(parameters, 0.5, weight_decay=0.01),
    "optim.Adam": lambda parameters: optim.Adam(parameters, 0.05, weight_decay=0.01),
    "optim.AdamW": lambda parameters: optim.AdamW(parameters, 0.05),
    "optim.FullAdaGrad": lambda parameters: optim.FullAdaGrad(parameters, 0.5, weight_decay=0.01),
    "optim.Momentum": lambda parameters: optim.Momentum(parameters, 0.02, weight_decay=0.01),
    "optim.Nesterov": lambda parameters: optim.Nesterov(parameters, 0.02, weight_decay=0.01),
    "optim.NesterovMomentum": lambda parameters: optim.NesterovMomentum(parameters, 0.02, weight_decay=0.01),
    "optim.RMSProp": lambda parameters: optim.RMSProp(parameters, 0.02, weight_decay=0.01),
    "optim.SGD": lambda parameters: optim.SGD(parameters, 0.1, weight_decay=0.01),
    "reinforcement.FlatAdam": lambda parameters: reinforcement.FlatAdam(parameters, 0.05),
}
CURVATURES = (1.0, 3.0, 0.5)


def test_every_optimiser_has_a_factory() -> None:
    abstract = [optim.ForeachOptimizer]
    check_factories([name for name, each in public_classes(Optimizer).items() if each not in abstract], OPTIMISERS)


def parameters(dtype: torch.dtype) -> list[nn.Parameter]:
    """Two parameters of different shapes, away from the minimum at 0."""
    return [nn.Parameter(torch.tensor([1.0, -2.0, 0.5], dtype=dtype)), nn.Parameter(torch.tensor([[1.5]], dtype=dtype))]


def loss(theta: list[nn.Parameter]) -> Tensor:
    curvature = torch.tensor(CURVATURES, dtype=theta[0].dtype, device="cpu")
    return (curvature * theta[0].square()).sum() / 2 + theta[1].square().sum()


def steps(theta: list[nn.Parameter], optimizer: Optimizer, count: int) -> None:
    for _ in range(count):
        optimizer.zero_grad()
        loss(theta).backward()
        optimizer.step()


def test_optimisers_decrease_the_loss_in_the_dtype_and_on_the_device_of_the_parameters() -> None:
    offences = Offences()
    for name, build in OPTIMISERS.items():
        for dtype in (torch.float32, torch.float64):
            with offences.record(name, str(dtype)), other_default_device():
                with torch.device("cpu"):
                    theta = parameters(dtype)
                before, optimizer = loss(theta).item(), build(theta)
                steps(theta, optimizer, 150)
                after = loss(theta).item()
                assert after < 0.05 * before, f"the loss fell from {before:g} to {after:g} only"
                state = [each for values in optimizer.state.values() for each in values.values()]
                moments = [each for each in state if isinstance(each, Tensor) and each.dim()]
                assert all(each.dtype == dtype and each.device.type == "cpu" for each in moments), "state"
    offences.check()


def test_a_state_dict_resumes_with_the_same_bits() -> None:
    offences = Offences()
    for name, build in OPTIMISERS.items():
        with offences.record(name, "state_dict"):
            whole, first, second = (parameters(torch.float32) for _ in range(3))
            steps(whole, build(whole), 7)
            interrupted = build(first)
            steps(first, interrupted, 3)
            with torch.no_grad():
                for target, source in zip(second, first, strict=True):
                    target.copy_(source)
            resumed = build(second)
            resumed.load_state_dict(interrupted.state_dict())
            steps(second, resumed, 4)
            assert all(torch.equal(a, b) for a, b in zip(whole, second, strict=True)), "other parameters after resuming"
    offences.check()


def test_a_step_changes_the_parameters_only() -> None:
    offences = Offences()
    for name, build in OPTIMISERS.items():
        theta = parameters(torch.float32)
        optimizer: Any = build(theta)
        steps(theta, optimizer, 1)
        gradients, frozen = [each.grad for each in theta], nn.Parameter(torch.ones(2))
        guard = unchanged_globals(torch_generator=True)
        with offences.record(name, "side effects"), without_shape_checks(), unchanged(*gradients), guard:
            optimizer.step()
        with offences.record(name, "no gradient"):
            mixed = [*parameters(torch.float32), frozen]
            other = build(mixed)
            steps(mixed[:2], other, 1)
            assert torch.equal(frozen, torch.ones(2)), "moved a parameter without a gradient"
        with offences.record(name, "repr"):
            assert "tensor(" not in repr(optimizer)[:400] == repr(optimizer), "long repr"
    offences.check()
