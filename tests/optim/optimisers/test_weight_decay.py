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
H, BEST = ROOT @ ROOT.T, torch.randn(4, dtype=torch.float64)


def quadratic(theta: Tensor) -> Tensor:
    return (theta - BEST) @ H @ (theta - BEST) / 2


def test_a_step_is_that_of_sgd_with_weight_decay() -> None:
    parameter = nn.Parameter(torch.ones(4, dtype=torch.float64))
    optimizer = torch.optim.SGD([parameter], lr=0.02, weight_decay=0.3)
    theta = parameter.detach().clone()
    for _ in range(5):
        optimizer.zero_grad()
        quadratic(parameter).backward()
        optimizer.step()
        theta = weight_decay_step(theta, grad(quadratic)(theta), learning_rate=0.02, weight_decay=0.3)
    torch.testing.assert_close(theta, parameter.detach())


def test_the_penalty_has_its_gradient() -> None:
    gradient = grad(lambda theta: quadratic(theta) + l2_penalty(theta, 0.7))(BEST + 1)
    torch.testing.assert_close(l2_gradient(BEST + 1, grad(quadratic)(BEST + 1), 0.7), gradient)


def test_decay_beside_adam_is_adamw() -> None:
    ours, theirs = nn.Parameter(BEST.clone()), nn.Parameter(BEST.clone())
    adam, adamw = torch.optim.Adam([ours], lr=0.01), torch.optim.AdamW([theirs], lr=0.01, weight_decay=0.5)
    for _ in range(10):
        for parameter, optimizer in ((ours, adam), (theirs, adamw)):
            optimizer.zero_grad()
            quadratic(parameter).backward()
            if optimizer is adam:
                parameter.data = decay_weights(parameter.data, learning_rate=0.01, weight_decay=0.5)
            optimizer.step()
    torch.testing.assert_close(ours.detach(), theirs.detach())


def test_descent_ends_at_the_penalised_minimiser() -> None:
    end = gradient_descent(
        lambda theta: quadratic(theta) + l2_penalty(theta, 0.5),
        torch.zeros(4, dtype=torch.float64),
        learning_rate=0.1,
        steps=3_000,
    )[-1]
    torch.testing.assert_close(penalised_minimiser(H, BEST, 0.5), end, atol=1e-8, rtol=0)
    values, vectors = torch.linalg.eigh(H)
    torch.testing.assert_close(vectors.T @ end, shrinkage_factors(values, 0.5) * (vectors.T @ BEST), atol=1e-8, rtol=0)


def test_groups_hold_every_parameter_once_and_spare_the_biases() -> None:
    model = nn.Sequential(nn.Linear(3, 5), nn.LayerNorm(5), nn.Linear(5, 2))
    matrices, vectors = torch.optim.AdamW(weight_decay_groups(model, 0.1), lr=1e-3).param_groups
    grouped = [id(each) for group in (matrices, vectors) for each in group["params"]]
    assert sorted(grouped) == sorted(id(each) for each in model.parameters())
    assert [each.shape for each in matrices["params"]] == [(5, 3), (2, 5)]
    assert (matrices["weight_decay"], vectors["weight_decay"]) == (0.1, 0.0)


def test_a_negative_decay_is_refused() -> None:
    with pytest.raises(ValueError, match=r"weight_decay must not be negative; got weight_decay=-1"):
        weight_decay_step(BEST, BEST, learning_rate=0.1, weight_decay=-1.0)
    with pytest.raises(ValueError, match=r"got weight_decay=nan"):
        shrinkage_factors(BEST, float("nan"))
