"""Weight decay against torch's optimisers, autograd and known minimisers."""

import pytest
import torch
from torch import Tensor, nn
from torch.func import grad

from parnassus.optim import (
    decay_weights,
    gradient_descent,
    l2_gradient,
    l2_penalty,
    penalised_minimiser,
    shrinkage_factors,
    weight_decay_groups,
    weight_decay_step,
)

torch.manual_seed(0)
ROOT = torch.randn(4, 4, dtype=torch.float64)
H, MINIMISER = ROOT @ ROOT.T, torch.randn(4, dtype=torch.float64)


def quadratic(theta: Tensor) -> Tensor:
    return (theta - MINIMISER) @ H @ (theta - MINIMISER) / 2


def test_step_matches_torch_sgd_with_weight_decay() -> None:
    parameter = nn.Parameter(torch.ones(4, dtype=torch.float64))
    optimizer = torch.optim.SGD([parameter], lr=0.02, weight_decay=0.3)
    theta = parameter.detach().clone()
    for _ in range(5):
        optimizer.zero_grad()
        quadratic(parameter).backward()
        optimizer.step()
        theta = weight_decay_step(theta, grad(quadratic)(theta), learning_rate=0.02, weight_decay=0.3)
    torch.testing.assert_close(theta, parameter.detach())


def test_gradient_of_the_penalty_matches_autograd() -> None:
    gradient = grad(lambda theta: quadratic(theta) + l2_penalty(theta, 0.7))(MINIMISER + 1)
    torch.testing.assert_close(l2_gradient(MINIMISER + 1, grad(quadratic)(MINIMISER + 1), 0.7), gradient)


def test_decoupled_decay_with_adam_is_adamw() -> None:
    theta, expected = nn.Parameter(MINIMISER.clone()), nn.Parameter(MINIMISER.clone())
    adam, adamw = torch.optim.Adam([theta], lr=0.01), torch.optim.AdamW([expected], lr=0.01, weight_decay=0.5)
    for _ in range(10):
        for parameter, optimizer in ((theta, adam), (expected, adamw)):
            optimizer.zero_grad()
            quadratic(parameter).backward()
            if optimizer is adam:
                parameter.data = decay_weights(parameter.data, learning_rate=0.01, weight_decay=0.5)
            optimizer.step()
    torch.testing.assert_close(theta.detach(), expected.detach())


def test_descent_converges_to_the_penalised_minimiser() -> None:
    final = gradient_descent(
        lambda theta: quadratic(theta) + l2_penalty(theta, 0.5),
        torch.zeros(4, dtype=torch.float64),
        learning_rate=0.1,
        steps=3_000,
    )[-1]
    torch.testing.assert_close(penalised_minimiser(H, MINIMISER, 0.5), final, atol=1e-8, rtol=0)
    values, vectors = torch.linalg.eigh(H)
    torch.testing.assert_close(
        vectors.T @ final, shrinkage_factors(values, 0.5) * (vectors.T @ MINIMISER), atol=1e-8, rtol=0
    )


def test_parameter_groups_exempt_biases_from_weight_decay() -> None:
    model = nn.Sequential(nn.Linear(3, 5), nn.LayerNorm(5), nn.Linear(5, 2))
    matrices, vectors = torch.optim.AdamW(weight_decay_groups(model, 0.1), lr=1e-3).param_groups
    grouped = [id(each) for group in (matrices, vectors) for each in group["params"]]
    assert sorted(grouped) == sorted(id(each) for each in model.parameters())
    assert [each.shape for each in matrices["params"]] == [(5, 3), (2, 5)]
    assert (matrices["weight_decay"], vectors["weight_decay"]) == (0.1, 0.0)


def test_invalid_weight_decay_raises_value_error() -> None:
    with pytest.raises(ValueError, match=r"weight_decay must not be negative; got weight_decay=-1"):
        weight_decay_step(MINIMISER, MINIMISER, learning_rate=0.1, weight_decay=-1.0)
    with pytest.raises(ValueError, match=r"got weight_decay=nan"):
        shrinkage_factors(MINIMISER, float("nan"))
