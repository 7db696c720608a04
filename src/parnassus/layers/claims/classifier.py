"""Claims about the first classifier, its final ReLU and its training and test loops (book sec. 1.4)."""

from collections.abc import Callable
from math import log

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, stack_module_state, vmap

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal, runs
from parnassus.data import load_digits
from parnassus.layers.activations import Activation, identity, relu
from parnassus.layers.classifier import Classifier, dead_logits, dense_classifier, evaluate
from parnassus.losses.classification import cross_entropy
from parnassus.optim.training.learning_rate_schedules import one_cycle_momentum, one_cycle_rate
from parnassus.optim.training.minibatches import shuffled_batches

SEEDS = 8


def train_on_digits(
    output: Activation,
    steps: int,
    learning_rate: Callable[[int], float],
    momentum: Callable[[int], float] = lambda _: 0.0,
) -> tuple[Tensor, Tensor]:
    """Test loss and accuracy of eight 64-64-64-10 classifiers trained in parallel by SGD with batch size 64."""
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
    batches = shuffled_batches(len(x), 64, epochs=steps, generator=torch.Generator().manual_seed(1))
    for step, rows in zip(range(steps), batches, strict=False):
        gradients = vmap(grad(loss), in_dims=(0, None, None))(weights, x[rows], y[rows])
        for name, gradient in gradients.items():
            velocity[name] = momentum(step) * velocity[name] + gradient
            weights[name] = weights[name] - learning_rate(step) * velocity[name]
    logits = vmap(lambda own: functional_call(models[0], own, (digits.test.x,)))(weights)
    labels = digits.test.y.expand(SEEDS, -1)
    return cross_entropy(logits, labels).mean(1), (logits.argmax(-1) == labels).double().mean(1)


@claim("B1.4-8")
def a_dead_logit_stays_dead() -> Evidence:
    """With a final ReLU a class with negative logits on all data has gradient 0 and loss ≥ ln 10 (book sec. 1.4)."""
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
        dead_classes=close(dead_logits(model, x), torch.tensor([3])),
        zero_gradient=close(last[:, 3], 0.0),
        other_gradients=greater_equal(last[:, [0, 1, 2, 4]].abs().max(), 1e-3),
        loss_floor=greater_equal(losses[y == 3], log(10)),
    )


@erratum("B1.4-8", "B1.4-13", printed="nn.ReLU() after the last Linear", right="the last Linear returns the logits")
def a_final_relu_lowers_accuracy() -> Correction:
    """With the final ReLU of the listing, accuracy on digits is lower for each of eight seeds (book sec. 1.4)."""
    loss_with_relu, with_relu = train_on_digits(relu, 400, lambda _: 0.1)
    loss_without, without_relu = train_on_digits(identity, 400, lambda _: 0.1)
    return Correction(
        printed=all_of(accuracy=greater_equal(with_relu, 0.85), loss=less_equal(loss_with_relu, 0.4)),
        corrected=all_of(
            accuracy=greater_equal(without_relu, 0.85),
            loss=less_equal(loss_without, 0.4),
            better_for_every_seed=greater_equal(without_relu - with_relu, 0.02),
        ),
    )


@claim("B1.4-13")
def the_printed_network_learns() -> Evidence:
    """Even with the final ReLU, the loss decreases and the accuracy exceeds chance for every seed (book sec. 1.4)."""
    early_loss, _ = train_on_digits(relu, 20, lambda _: 0.1)
    late_loss, accuracy = train_on_digits(relu, 400, lambda _: 0.1)
    return all_of(
        loss_falls=less_equal(late_loss / early_loss, 0.9),
        above_chance=greater_equal(accuracy, 0.25),
        starts_near_ln_10=less_equal(early_loss, 2.33),
    )


@erratum(
    "B1.4-13",
    printed="the accuracy improves with every epoch",
    right="the loss decreases with every epoch; the accuracy may decrease",
)
def accuracy_does_not_rise_with_every_epoch() -> Correction:
    """In four epochs of the printed network the loss decreases in each, the accuracy does not (book sec. 1.4)."""
    epoch = 23  # batches of 64 per epoch of 1,437 digits
    stages = [train_on_digits(relu, epoch * passes, lambda _: 0.1) for passes in range(1, 5)]
    losses, accuracies = (torch.stack(each) for each in zip(*stages, strict=True))
    return Correction(
        printed=greater_equal(accuracies.diff(dim=0), 0.0),
        corrected=all_of(
            loss_falls=less_equal(losses.diff(dim=0), 0.0),
            accuracy_rises_overall=greater_equal(accuracies[-1] - accuracies[0], 0.0),
            above_chance=greater_equal(accuracies[-1], 0.2),
        ),
    )


@claim("B1.4-15")
def one_cycle_beats_a_constant_learning_rate() -> Evidence:
    """1cycle, with peak at ten times a constant rate, is more accurate, mostly through momentum (book ex. 1.2)."""
    steps, rate = 300, 0.005

    def cycle(step: int) -> float:
        return one_cycle_rate(step, steps, peak=10 * rate)

    _, constant = train_on_digits(identity, steps, lambda _: rate)
    _, without_momentum = train_on_digits(identity, steps, cycle)
    _, with_momentum = train_on_digits(identity, steps, cycle, lambda step: one_cycle_momentum(step, steps))
    return all_of(
        learning_rate_alone=greater_equal(without_momentum - constant, 0.1),
        with_momentum=greater_equal(with_momentum, 0.9),
        momentum_adds=greater_equal(with_momentum - without_momentum, 0.1),
    )


@erratum("B1.4-11", printed="{current:.5d}/{size:.5d}", right="{current:>5d}/{size:>5d}")
def integers_have_no_precision() -> Correction:
    """The progress message of the training loop raises ValueError as printed (book sec. 1.4)."""
    model = dense_classifier(6, 10, hidden=(5,))
    for parameter in model.parameters():
        nn.init.zeros_(parameter)
    loss = float(model.loss(torch.randn(20, 6), torch.arange(20) % 10).detach())  # ln 10
    message = f"loss: {loss:>7f} [{6_400:>5d}/{60_000:>5d}]"
    return Correction(
        printed=runs(lambda: f"loss: {loss:>7f} [{6_400:.5d}/{60_000:.5d}]", unless=ValueError),
        corrected=close(float(message == "loss: 2.302585 [ 6400/60000]"), 1.0),
    )


@erratum("B1.4-12", printed="test loop without model.eval()", right="model.eval() before the loop")
def testing_needs_evaluation_mode() -> Correction:
    """Without eval() dropout is active during testing, and two tests of the same model differ (book sec. 1.4)."""
    torch.manual_seed(0)
    model = Classifier(nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 4)))
    x, y = torch.randn(500, 6), torch.arange(500) % 4

    def loss_in_training_mode() -> float:
        with torch.no_grad():
            return float(model.loss(x, y))

    return Correction(
        printed=close(loss_in_training_mode(), loss_in_training_mode(), atol=1e-6),
        corrected=all_of(
            deterministic=close(evaluate(model, x, y).loss, evaluate(model, x, y).loss),
            training_mode_restored=close(float(model.training), 1.0),
        ),
    )


@erratum("B1.4-12", printed="mean of the batch means", right="sum over examples divided by their number")
def a_short_batch_is_overweighted() -> Correction:
    """The mean of batch losses gives the 16 examples of the last batch four times their weight (book sec. 1.4)."""
    torch.manual_seed(0)
    model = dense_classifier(6, 4, hidden=(8,))
    x, y = torch.randn(144, 6), torch.arange(144) % 4
    each = cross_entropy(model(x), y)
    batch_means = torch.stack([batch.mean() for batch in torch.split(each, 64)]).mean()
    return Correction(
        printed=close(batch_means, each.mean(), atol=1e-5),
        corrected=close(evaluate(model, x, y, batch_size=64).loss, each.mean(), atol=1e-6),
    )
