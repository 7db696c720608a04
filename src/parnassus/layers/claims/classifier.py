"""Claims about the first classifier, its last ReLU and its test loop (book sec. 1.4)."""

from collections.abc import Callable
from math import log

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, stack_module_state, vmap

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum, runs
from parnassus.data import load_digits
from parnassus.layers.activations import Activation, identity, relu
from parnassus.layers.classifier import Classifier, dead_logits, dense_classifier, evaluate
from parnassus.losses.classification import cross_entropy
from parnassus.optim.minibatches import reshuffle
from parnassus.optim.schedules import one_cycle_momentum, one_cycle_rate

SEEDS = 8


def train_on_digits(
    output: Activation, steps: int, rate: Callable[[int], float], momentum: Callable[[int], float] = lambda _: 0.0
) -> tuple[Tensor, Tensor]:
    """Test loss and accuracy of eight 64-64-64-10 classifiers trained side by side by SGD in batches of 64."""
    digits = load_digits()
    torch.manual_seed(0)
    models = [dense_classifier(64, 10, hidden=(64, 64), output=output) for _ in range(SEEDS)]
    stacked, _ = stack_module_state(models)
    weights = {name: weight.detach() for name, weight in stacked.items()}
    velocity = {name: torch.zeros_like(weight) for name, weight in weights.items()}

    def loss(own: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return cross_entropy(functional_call(models[0], own, (x,)), y).mean()

    assert digits.train.y is not None
    assert digits.test.y is not None
    x, y = digits.train.x, digits.train.y
    batches = reshuffle(len(x), 64, epochs=steps, generator=torch.Generator().manual_seed(1))
    for step, rows in zip(range(steps), batches, strict=False):
        slopes = vmap(grad(loss), in_dims=(0, None, None))(weights, x[rows], y[rows])
        for name, slope in slopes.items():
            velocity[name] = momentum(step) * velocity[name] + slope
            weights[name] = weights[name] - rate(step) * velocity[name]
    logits = vmap(lambda own: functional_call(models[0], own, (digits.test.x,)))(weights)
    labels = digits.test.y.expand(SEEDS, -1)
    return cross_entropy(logits, labels).mean(1), (logits.argmax(-1) == labels).double().mean(1)


@claim("B1.4-8")
def a_dead_logit_stays_dead() -> Evidence:
    """Under a last ReLU, a class negative on all data gets gradient 0 and loss at least ln 10 (book sec. 1.4)."""
    torch.manual_seed(0)
    model = dense_classifier(6, 10, hidden=(8,), output=relu)
    with torch.no_grad():
        bias = model.get_parameter("network.2.bias")
        bias.fill_(3.0)
        bias[3] = -100.0
    x, y = torch.randn(200, 6), torch.arange(200) % 10
    model.loss(x, y).backward()
    last = model.get_parameter("network.2.weight").grad
    assert last is not None
    losses = cross_entropy(model(x), y)
    return all_of(
        found=close(dead_logits(model, x), torch.tensor([3])),
        gradient=close(last[:, 3], 0.0),
        others_learn=at_least(last[:, [0, 1, 2, 4]].abs().max(), 1e-3),
        loss_floor=at_least(losses[y == 3], log(10)),
    )


@erratum("B1.4-8", "B1.4-13", printed="nn.ReLU() after the last Linear", right="logits as the last Linear gives them")
def the_last_relu_costs_classes() -> Correction:
    """The listing ends in a ReLU; on digits no network of eight learns as well with it (book sec. 1.4)."""
    loss_of_book, book = train_on_digits(relu, 400, lambda _: 0.1)
    loss_of_fixed, fixed = train_on_digits(identity, 400, lambda _: 0.1)
    return Correction(
        printed=all_of(accuracy=at_least(book, 0.85), loss=at_most(loss_of_book, 0.4)),
        corrected=all_of(
            accuracy=at_least(fixed, 0.85),
            loss=at_most(loss_of_fixed, 0.4),
            better_each_time=at_least(fixed - book, 0.02),
        ),
    )


@claim("B1.4-13")
def even_the_printed_network_learns() -> Evidence:
    """With the last ReLU the loss still falls and accuracy ends far above guessing, for every seed (book sec. 1.4)."""
    early_loss, _ = train_on_digits(relu, 20, lambda _: 0.1)
    late_loss, accuracy = train_on_digits(relu, 400, lambda _: 0.1)
    return all_of(
        loss_falls=at_most(late_loss / early_loss, 0.9),
        above_guessing=at_least(accuracy, 0.25),
        ln_10=at_most(early_loss, 2.33),
    )


@erratum("B1.4-13", printed="the accuracy keeps improving with the epochs", right="the loss does; accuracy may fall")
def accuracy_does_not_rise_with_every_epoch() -> Correction:
    """In four epochs of eight printed networks the loss falls each time, the accuracy does not (book sec. 1.4)."""
    epoch = 23  # batches of 64 in 1,437 digits
    stages = [train_on_digits(relu, epoch * passes, lambda _: 0.1) for passes in range(1, 5)]
    losses, accuracies = (torch.stack(each) for each in zip(*stages, strict=True))
    return Correction(
        printed=at_least(accuracies.diff(dim=0), 0.0),
        corrected=all_of(
            loss_falls=at_most(losses.diff(dim=0), 0.0),
            accuracy_rises_in_the_end=at_least(accuracies[-1] - accuracies[0], 0.0),
            above_guessing=at_least(accuracies[-1], 0.2),
        ),
    )


@claim("B1.4-15")
def one_cycle_beats_the_constant_rate() -> Evidence:
    """A 1cycle up to ten times the rate beats the constant rate, and most of it is its momentum (book ex. 1.2)."""
    steps, rate = 300, 0.005

    def cycle(step: int) -> float:
        return one_cycle_rate(step, steps, peak=10 * rate)

    _, constant = train_on_digits(identity, steps, lambda _: rate)
    _, without = train_on_digits(identity, steps, cycle)
    _, with_momentum = train_on_digits(identity, steps, cycle, lambda step: one_cycle_momentum(step, steps))
    return all_of(
        rate_alone=at_least(without - constant, 0.1),
        with_momentum=at_least(with_momentum, 0.9),
        momentum_adds=at_least(with_momentum - without, 0.1),
    )


@erratum("B1.4-11", printed="{current:.5d}/{size:.5d}", right="{current:>5d}/{size:>5d}")
def whole_numbers_have_no_precision() -> Correction:
    """The progress line of the training loop raises ValueError as printed (book sec. 1.4)."""
    return Correction(
        printed=runs(lambda: f"[{6_400:.5d}/{60_000:.5d}]", unless=ValueError),
        corrected=all_of(
            formats=runs(lambda: f"[{6_400:>5d}/{60_000:>5d}]", unless=ValueError),
            width=close(len(f"{6_400:>5d}"), 5),
        ),
    )


@erratum("B1.4-12", printed="test loop without model.eval()", right="evaluation mode around the loop")
def a_test_needs_evaluation_mode() -> Correction:
    """Without eval() dropout stays on while testing, and two tests of one model disagree (book sec. 1.4)."""
    torch.manual_seed(0)
    model = Classifier(nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 4)))
    x, y = torch.randn(500, 6), torch.arange(500) % 4

    def printed() -> float:
        with torch.no_grad():
            return float(model.loss(x, y))

    return Correction(
        printed=close(printed(), printed(), atol=1e-6),
        corrected=all_of(
            same_twice=close(evaluate(model, x, y).loss, evaluate(model, x, y).loss),
            training_goes_on=close(float(model.training), 1.0),
        ),
    )


@erratum("B1.4-12", printed="mean of batch means", right="sum over examples divided by their number")
def a_short_batch_weighs_too_much() -> Correction:
    """Averaging batch losses counts the 16 examples of the last test batch four times (book sec. 1.4)."""
    torch.manual_seed(0)
    model = dense_classifier(6, 4, hidden=(8,))
    x, y = torch.randn(144, 6), torch.arange(144) % 4
    each = cross_entropy(model(x), y)
    batch_means = torch.stack([batch.mean() for batch in torch.split(each, 64)]).mean()
    return Correction(
        printed=close(batch_means, each.mean(), atol=1e-5),
        corrected=close(evaluate(model, x, y, batch=64).loss, each.mean(), atol=1e-6),
    )
