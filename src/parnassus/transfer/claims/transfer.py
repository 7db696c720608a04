"""Frozen bodies and reprogramming, checked (book sec. 10.1.2)."""

import torch
from torch import nn

from parnassus.atlas import Evidence, all_of, at_least, at_most, claim, close
from parnassus.layers.dense import mlp, parameter_count
from parnassus.optim import Adam
from parnassus.transfer.freezing import Tuned, freeze, thaw
from parnassus.transfer.reprogramming import Reprogrammed


def _problem(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points in the plane by quadrant."""
    x = torch.randn(count, 2, generator=torch.Generator().manual_seed(seed))
    return x, 2 * (x[:, 0] > 0).long() + (x[:, 1] > 0).long()


def _fit(model: Tuned | Reprogrammed, x: torch.Tensor, y: torch.Tensor, steps: int = 200) -> float:
    optimizer = Adam([weight for weight in model.parameters() if weight.requires_grad], lr=0.03)
    for _ in range(steps):
        optimizer.zero_grad()
        model.loss(x, y).backward()
        optimizer.step()
    return float((model(x).argmax(1) == y).double().mean())


@claim("B10.1.2-1", "B10.1.2-2")
def a_frozen_body_stays_and_a_thawed_part_moves() -> Evidence:
    """Training a new head leaves every number of a frozen body as it was; a part that is thawed moves with the head."""
    torch.manual_seed(0)
    body = freeze(nn.Sequential(*mlp((2, 16, 16), output=torch.relu)))
    before = [weight.clone() for weight in body.parameters()]
    tuned = Tuned(body, nn.Linear(16, 4))
    x, y = _problem(200, 0)
    learned = _fit(tuned, x, y)
    stayed = max(float((old - new).detach().abs().max()) for old, new in zip(before, body.parameters(), strict=True))
    thaw(body[1])
    _fit(tuned, x, y, steps=20)
    moved = [float((old - new).detach().abs().max()) for old, new in zip(before, body.parameters(), strict=True)]
    return all_of(
        body_moved_by=close(stayed, 0.0, atol=0),
        head_learned=at_least(learned, 0.85),
        frozen_layer_moved_by=close(max(moved[:2]), 0.0, atol=0),
        thawed_layer_moved_by=at_least(max(moved[2:]), 0.01),
        trained=close(float(parameter_count(tuned)), 16 * 16 + 16 + 16 * 4 + 4.0, atol=0),
    )


@claim("B10.1.2-3")
def a_frozen_model_does_another_task_by_its_input_alone() -> Evidence:
    """Quadrants turned by 45° are named by a frozen model of upright ones, once the map in front of it is learned."""
    torch.manual_seed(0)
    x, y = _problem(400, 0)
    model = nn.Sequential(*mlp((2, 32, 4)))
    old = Tuned(nn.Identity(), model)
    known = _fit(old, x, y)
    turn = torch.tensor([[1.0, -1.0], [1.0, 1.0]]) / 2**0.5
    shuffled = torch.tensor([2, 0, 3, 1])  # the old class that stands for each new one
    new_x, new_y = x @ turn, torch.tensor([1, 3, 0, 2])[y]
    enter = nn.Linear(2, 2)
    nn.init.eye_(enter.weight)
    before = [weight.clone() for weight in model.parameters()]
    reprogrammed = Reprogrammed(model, enter, shuffled)
    with torch.no_grad():
        at_first = float((reprogrammed(new_x).argmax(1) == new_y).double().mean())
    after = _fit(reprogrammed, new_x, new_y)
    stayed = max(float((was - now).detach().abs().max()) for was, now in zip(before, model.parameters(), strict=True))
    return all_of(
        old_task=at_least(known, 0.95),
        new_task_at_first=at_most(at_first, 0.8),
        new_task=at_least(after, 0.95),
        model_moved_by=close(stayed, 0.0, atol=0),
        numbers_trained=close(float(parameter_count(reprogrammed)), 6.0, atol=0),
    )
