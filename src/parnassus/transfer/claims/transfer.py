"""Claims about freezing, fine-tuning and reprogramming (book sec. 10.1.2)."""

import torch
from torch import nn

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal
from parnassus.layers.dense import count_parameters, mlp
from parnassus.optim import Adam
from parnassus.transfer.freezing import TransferClassifier, freeze, unfreeze
from parnassus.transfer.reprogramming import LearnedFrame, ReprogrammedModel, learned_frame


def _quadrant_data(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points in the plane, labelled by quadrant."""
    x = torch.randn(count, 2, generator=torch.Generator().manual_seed(seed))
    return x, 2 * (x[:, 0] > 0).long() + (x[:, 1] > 0).long()


def _fit(model: TransferClassifier | ReprogrammedModel, x: torch.Tensor, y: torch.Tensor, steps: int = 200) -> float:
    optimizer = Adam([weight for weight in model.parameters() if weight.requires_grad], lr=0.03)
    for _ in range(steps):
        optimizer.zero_grad()
        model.loss(x, y).backward()
        optimizer.step()
    return float((model(x).argmax(1) == y).double().mean())


def _changes(before: list[torch.Tensor], model: nn.Module) -> list[float]:
    """The largest change of an entry of each parameter."""
    return [float((old - new).detach().abs().max()) for old, new in zip(before, model.parameters(), strict=True)]


@claim("B10.1.2-1", "B10.1.2-2")
def frozen_layers_stay_fixed_and_unfrozen_layers_train() -> Evidence:
    """Training a new head leaves a frozen body unchanged; an unfrozen layer trains with the head."""
    torch.manual_seed(0)
    body = freeze(nn.Sequential(*mlp((2, 16, 16), output=torch.relu)))
    before = [weight.clone() for weight in body.parameters()]
    tuned = TransferClassifier(body, nn.Linear(16, 4))
    x, y = _quadrant_data(200, 0)
    accuracy = _fit(tuned, x, y)
    change = max(_changes(before, body))
    unfreeze(body[1])
    _fit(tuned, x, y, steps=20)
    changes = _changes(before, body)
    return all_of(
        body_change=close(change, 0.0, atol=0),
        head_accuracy=greater_equal(accuracy, 0.85),
        frozen_layer_change=close(max(changes[:2]), 0.0, atol=0),
        unfrozen_layer_change=greater_equal(max(changes[2:]), 0.01),
        trained_parameters=close(float(count_parameters(tuned)), 16 * 16 + 16 + 16 * 4 + 4.0, atol=0),
    )


@claim("B10.1.2-3")
def a_learned_frame_surrounds_the_image() -> Evidence:
    """The image in the centre of tanh(W), and only W gets a gradient from a frozen model (Elsayed et al. 2019)."""
    torch.manual_seed(0)
    frame = learned_frame((2, 5, 8), 3, 4)
    nn.init.normal_(frame.frame)
    x = torch.randn(6, 2, 3, 4)
    model = nn.Sequential(nn.Flatten(), nn.Linear(80, 5))
    reprogrammed = ReprogrammedModel(model, frame, torch.tensor([3, 0]))
    reprogrammed.loss(x, torch.tensor([0, 1, 0, 1, 1, 0])).backward()
    framed, expected = frame(x).detach(), frame.frame.detach().tanh().repeat(6, 1, 1, 1)
    expected[:, :, 1:4, 2:6] = x
    gradient = frame.frame.grad
    assert gradient is not None
    return all_of(
        framed=close(framed, expected),
        type=close(float(isinstance(frame, LearnedFrame)), 1.0),
        logits=close(reprogrammed(x).detach(), model(expected)[:, [3, 0]].detach(), atol=1e-6),
        no_gradient_inside=close(gradient[:, 1:4, 2:6], 0.0),
        gradient_outside=greater_equal(gradient[:, 0].abs().max(), 1e-4),
        model_without_gradient=close(float(sum(part.grad is not None for part in model.parameters())), 0.0),
    )


@claim("B10.1.2-3")
def reprogramming_solves_a_new_task_with_a_frozen_model() -> Evidence:
    """A frozen classifier of quadrants classifies quadrants rotated by 45° once an input map is trained."""
    torch.manual_seed(0)
    x, y = _quadrant_data(400, 0)
    model = nn.Sequential(*mlp((2, 32, 4)))
    old = TransferClassifier(nn.Identity(), model)
    old_accuracy = _fit(old, x, y)
    rotation = torch.tensor([[1.0, -1.0], [1.0, 1.0]]) / 2**0.5
    label_map = torch.tensor([2, 0, 3, 1])  # the old class for each new one
    new_x, new_y = x @ rotation, torch.tensor([1, 3, 0, 2])[y]
    input_map = nn.Linear(2, 2)
    nn.init.eye_(input_map.weight)
    before = [weight.clone() for weight in model.parameters()]
    reprogrammed = ReprogrammedModel(model, input_map, label_map)
    with torch.no_grad():
        before_training = float((reprogrammed(new_x).argmax(1) == new_y).double().mean())
    after = _fit(reprogrammed, new_x, new_y)
    change = max(_changes(before, model))
    return all_of(
        old_task=greater_equal(old_accuracy, 0.95),
        new_task_before=less_equal(before_training, 0.8),
        new_task=greater_equal(after, 0.95),
        model_change=close(change, 0.0, atol=0),
        trained_parameters=close(float(count_parameters(reprogrammed)), 6.0, atol=0),
    )
