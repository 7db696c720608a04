"""Optimisers against `torch.optim`: steps, interface and invalid settings."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import OneCycleLR, StepLR

from parnassus.optim import SGD, AdaGrad, Adam, AdamW, FullAdaGrad, Momentum, Nesterov, NesterovMomentum, RMSProp
from parnassus.train.checkpoint import load_tree, save_tree

Factory = Callable[[Iterable[nn.Parameter]], Optimizer]
PAIRS: dict[str, tuple[Factory, Factory]] = {
    "SGD": (partial(SGD, lr=0.1), partial(torch.optim.SGD, lr=0.1)),
    "SGD, L2": (partial(SGD, lr=0.1, weight_decay=0.3), partial(torch.optim.SGD, lr=0.1, weight_decay=0.3)),
    "Momentum": (partial(Momentum, lr=0.03, momentum=0.8), partial(torch.optim.SGD, lr=0.03, momentum=0.8)),
    "Momentum, L2": (
        partial(Momentum, lr=0.03, momentum=0.8, weight_decay=0.1),
        partial(torch.optim.SGD, lr=0.03, momentum=0.8, weight_decay=0.1),
    ),
    "NesterovMomentum": (
        partial(NesterovMomentum, lr=0.03, momentum=0.8, weight_decay=0.1),
        partial(torch.optim.SGD, lr=0.03, momentum=0.8, nesterov=True, weight_decay=0.1),
    ),
    "AdaGrad": (partial(AdaGrad, lr=0.3), partial(torch.optim.Adagrad, lr=0.3)),
    "AdaGrad, L2": (partial(AdaGrad, weight_decay=0.2), partial(torch.optim.Adagrad, weight_decay=0.2)),
    "RMSProp": (partial(RMSProp, lr=0.03, alpha=0.9), partial(torch.optim.RMSprop, lr=0.03, alpha=0.9)),
    "RMSProp, L2": (partial(RMSProp, weight_decay=0.2), partial(torch.optim.RMSprop, weight_decay=0.2)),
    "Adam": (partial(Adam, lr=0.03, betas=(0.9, 0.99)), partial(torch.optim.Adam, lr=0.03, betas=(0.9, 0.99))),
    "Adam, large eps": (partial(Adam, eps=0.1), partial(torch.optim.Adam, eps=0.1)),
    "Adam, L2": (partial(Adam, weight_decay=0.2), partial(torch.optim.Adam, weight_decay=0.2)),
    "AdamW": (partial(AdamW, lr=0.03, weight_decay=0.2), partial(torch.optim.AdamW, lr=0.03, weight_decay=0.2)),
}
OPTIMISERS: dict[str, Factory] = {name: factory for name, (factory, _) in PAIRS.items()} | {
    "Nesterov": partial(Nesterov, lr=0.03),
    "FullAdaGrad": partial(FullAdaGrad, lr=0.3),
}


def parameters(dtype: torch.dtype = torch.float64) -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(0)
    return [nn.Parameter(torch.randn(shape, generator=generator, dtype=dtype)) for shape in ((3, 2), (4,), ())]


def loss(theta: list[nn.Parameter]) -> Tensor:
    matrix, vector, scalar = theta
    return (
        matrix.exp().sum() + matrix.square().sum() + (vector - scalar).square().sum() + (matrix.sum() - scalar).cosh()
    )


def run_steps(theta: list[nn.Parameter], optimizer: Optimizer, steps: int) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        loss(theta).backward()
        optimizer.step()


@pytest.mark.parametrize("name", PAIRS)
def test_each_step_matches_torch(name: str) -> None:
    (factory, torch_factory), theta, torch_theta = PAIRS[name], parameters(), parameters()
    optimizer, torch_optimizer = factory(theta), torch_factory(torch_theta)
    for _ in range(60):
        run_steps(theta, optimizer, 1)
        run_steps(torch_theta, torch_optimizer, 1)
        for tensor, expected in zip(theta, torch_theta, strict=True):
            torch.testing.assert_close(tensor, expected, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("name", PAIRS)
def test_each_parameter_counts_its_own_steps(name: str) -> None:
    results = []
    for factory in PAIRS[name]:
        theta = parameters()
        optimizer = factory(theta)
        for step in range(6):
            optimizer.zero_grad()
            loss(theta).backward()
            if step % 3 == 1:
                theta[1].grad = None
            optimizer.step()
        results.append(theta)
    for tensor, expected in zip(*results, strict=True):
        torch.testing.assert_close(tensor, expected, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("name", OPTIMISERS)
def test_training_resumes_from_a_saved_state(name: str) -> None:
    uninterrupted, resumed = parameters(), parameters()
    run_steps(uninterrupted, OPTIMISERS[name](uninterrupted), 12)
    first = OPTIMISERS[name](resumed)
    run_steps(resumed, first, 6)
    second = OPTIMISERS[name](resumed)
    second.load_state_dict(first.state_dict())
    run_steps(resumed, second, 6)
    for left, right in zip(uninterrupted, resumed, strict=True):
        assert torch.equal(left, right)


@pytest.mark.parametrize("name", OPTIMISERS)
def test_float32_parameters_descend_and_keep_their_dtype(name: str) -> None:
    theta = parameters(torch.float32)
    initial_loss = loss(theta).item()
    run_steps(theta, OPTIMISERS[name](theta), 20)
    assert loss(theta).item() < initial_loss
    assert all(parameter.dtype == torch.float32 for parameter in theta)


@pytest.mark.parametrize("name", OPTIMISERS)
def test_optimisers_converge_on_a_quadratic(name: str) -> None:
    theta = nn.Parameter(torch.tensor([0.3, -0.2], dtype=torch.float64))
    optimizer = OPTIMISERS[name]([theta])
    for _ in range(3_000):
        optimizer.zero_grad()
        theta.square().sum().backward()
        optimizer.step()
    assert theta.abs().max() < 0.02  # RMSProp and Adam keep moving by about their learning rate


def test_parameter_groups_have_separate_settings() -> None:
    parameters_1, parameters_2 = parameters(), parameters()
    groups = [({"params": theta[:1], "lr": 0.03}, {"params": theta[1:]}) for theta in (parameters_1, parameters_2)]
    run_steps(parameters_1, Momentum(groups[0], lr=0.01, momentum=0.5), 5)
    run_steps(parameters_2, torch.optim.SGD(groups[1], lr=0.01, momentum=0.5), 5)
    for left, right in zip(parameters_1, parameters_2, strict=True):
        torch.testing.assert_close(left, right, atol=1e-12, rtol=1e-12)


def test_torch_schedulers_set_the_learning_rate() -> None:
    theta = nn.Parameter(torch.zeros(1, dtype=torch.float64))
    optimizer = SGD([theta], lr=1.0)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.5)
    for _ in range(4):
        theta.grad = torch.ones_like(theta)
        optimizer.step()
        scheduler.step()
    assert theta.item() == -(1 + 0.5 + 0.25 + 0.125)


def test_momentum_with_one_cycle_matches_torch() -> None:
    factories: tuple[Callable[..., Optimizer], ...] = (Momentum, torch.optim.SGD)
    results = []
    for factory in factories:
        theta = parameters()
        optimizer = factory(theta, lr=0.01, momentum=0.9)
        scheduler = OneCycleLR(optimizer, max_lr=0.03, total_steps=20)
        for _ in range(20):
            run_steps(theta, optimizer, 1)
            scheduler.step()
        results.append(theta)
    for tensor, expected in zip(*results, strict=True):
        torch.testing.assert_close(tensor, expected, atol=1e-12, rtol=1e-12)


def test_one_cycle_cannot_add_momentum_to_plain_sgd() -> None:
    """With torch's SGD it would silently become SGD with momentum."""
    with pytest.raises(ValueError, match="must support momentum"):
        OneCycleLR(SGD(parameters(), lr=0.01), max_lr=0.1, total_steps=10)
    OneCycleLR(SGD(parameters(), lr=0.01), max_lr=0.1, total_steps=10, cycle_momentum=False)


def test_step_calls_the_closure_and_returns_its_loss() -> None:
    theta = nn.Parameter(torch.tensor([3.0]))
    optimizer = SGD([theta], lr=0.5)

    def closure() -> float:
        optimizer.zero_grad()
        value = theta.square().sum()
        value.backward()
        return value.item()

    assert optimizer.step(closure) == 9.0
    assert theta.item() == 0.0


def test_frozen_parameters_are_unchanged() -> None:
    free, frozen = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
    optimizer = AdamW([free, frozen], lr=0.1)
    free.sum().backward()
    optimizer.step()
    assert (free != 1).all()
    assert (frozen == 1).all()
    assert frozen not in optimizer.state


INVALID: list[tuple[Callable[[list[nn.Parameter]], Optimizer], str]] = [
    (partial(SGD, lr=0.0), "the learning rate must be positive; got lr=0.0"),
    (partial(Adam, lr=-1.0), "the learning rate must be positive; got lr=-1.0"),
    (partial(AdaGrad, lr=float("nan")), "the learning rate must be positive; got lr=nan"),
    (partial(Adam, weight_decay=-0.1), "the weight decay must not be negative; got weight_decay=-0.1"),
    (partial(Momentum, momentum=1.0), "the momentum must satisfy 0 ≤ μ < 1; got momentum=1.0"),
    (partial(NesterovMomentum, momentum=-0.1), "the momentum must satisfy 0 ≤ μ < 1; got momentum=-0.1"),
    (partial(Nesterov, damping=0.0), "the damping must be positive; got damping=0.0"),
    (partial(RMSProp, alpha=1.0), "alpha must satisfy 0 ≤ alpha < 1; got alpha=1.0"),
    (partial(RMSProp, eps=-1.0), "eps must not be negative; got eps=-1.0"),
    (partial(Adam, betas=(0.9, 1.0)), r"betas must satisfy 0 ≤ beta < 1; got betas=\(0.9, 1.0\)"),
]


@pytest.mark.parametrize(("make", "message"), INVALID)
def test_invalid_settings_raise_value_error(make: Callable[[list[nn.Parameter]], Optimizer], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(parameters())


def test_invalid_group_raises_value_error_and_is_not_added() -> None:
    optimizer = SGD(parameters(), lr=0.1)
    with pytest.raises(ValueError, match=r"must be positive; got lr=0\.0"):
        optimizer.add_param_group({"params": parameters(), "lr": 0.0})
    assert len(optimizer.param_groups) == 1


def test_sparse_gradients_raise_value_error() -> None:
    table = nn.Embedding(5, 2, sparse=True)
    table(torch.tensor([1])).sum().backward()
    with pytest.raises(ValueError, match="Adam needs dense gradients; got a sparse one"):
        Adam(table.parameters()).step()


@pytest.mark.parametrize("name", ["Momentum", "Adam", "Nesterov", "FullAdaGrad"])
def test_state_round_trips_through_a_checkpoint(name: str, tmp_path: Path) -> None:
    uninterrupted, resumed = parameters(), parameters()
    run_steps(uninterrupted, OPTIMISERS[name](uninterrupted), 8)
    first = OPTIMISERS[name](resumed)
    run_steps(resumed, first, 4)
    save_tree(tmp_path / "state.safetensors", first.state_dict())
    second = OPTIMISERS[name](resumed)
    state = load_tree(tmp_path / "state.safetensors")
    assert isinstance(state, dict)
    second.load_state_dict(state)
    run_steps(resumed, second, 4)
    for left, right in zip(uninterrupted, resumed, strict=True):
        assert torch.equal(left, right)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("name", OPTIMISERS)
def test_gpu_steps_match_cpu_steps(name: str) -> None:
    on_cpu, on_gpu = parameters(), [nn.Parameter(tensor.detach().cuda()) for tensor in parameters()]
    run_steps(on_cpu, OPTIMISERS[name](on_cpu), 20)
    run_steps(on_gpu, OPTIMISERS[name](on_gpu), 20)
    for left, right in zip(on_cpu, on_gpu, strict=True):
        torch.testing.assert_close(left, right.cpu(), atol=1e-9, rtol=1e-9)
