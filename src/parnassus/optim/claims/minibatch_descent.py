"""Claims about gradient descent and mini-batch SGD (book sec. 1.3)."""

import torch
from torch import Tensor
from torch.func import grad, vmap
from torch.utils.data import DataLoader, TensorDataset

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, rate
from parnassus.optim.optimisers.gradient_descent import (
    gradient_descent,
    per_sample_gradients,
    stochastic_gradient_descent,
)
from parnassus.optim.training.minibatches import (
    batches_with_replacement,
    fixed_partition_batches,
    sequential_batches,
    shuffled_batches,
)


def squared_network_error(theta: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """ℰ(θ; x) of a small tanh network with one hidden layer of three units, its nine weights in one vector."""
    hidden = torch.tanh(theta[:6].reshape(3, 2) @ x)
    return (hidden @ theta[6:] - y).square()


def sample_regression(count: int = 96, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Inputs, targets and a random θ for `squared_network_error`."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 2, generator=generator, dtype=torch.float64)
    theta = torch.randn(9, generator=generator, dtype=torch.float64)
    return x, x[:, 0] * x[:, 1], theta


@claim("B1.3-4")
def small_gradient_step_decreases_the_loss() -> Evidence:
    """A small step decreases the loss by about η‖∇ℓ‖², a large one may increase it (book eq. 1.13)."""
    x, y, theta = sample_regression()

    def loss(theta: Tensor) -> Tensor:
        return vmap(squared_network_error, in_dims=(None, 0, 0))(theta, x, y).mean()

    gradient = grad(loss)(theta)
    small, large = 1e-6, 10.0
    after_small = gradient_descent(loss, theta, learning_rate=small, steps=1)[-1]
    after_large = gradient_descent(loss, theta, learning_rate=large, steps=1)[-1]
    return all_of(
        decrease=close((loss(theta) - loss(after_small)) / small, gradient.square().sum(), rtol=1e-3),
        large_step_increases=greater_equal(loss(after_large) - loss(theta), 0.0),
    )


@claim("B1.3-5", "B1.3-6", "B1.3-7")
def the_gradient_of_the_mean_is_the_mean_gradient() -> Evidence:
    """Gradients of single examples average to the full gradient: online SGD is unbiased (book eq. 1.16)."""
    x, y, theta = sample_regression()
    gradients = per_sample_gradients(squared_network_error, theta, x, y)
    full_gradient = grad(lambda theta: vmap(squared_network_error, in_dims=(None, 0, 0))(theta, x, y).mean())(theta)
    fifth = grad(squared_network_error)(theta, x[5], y[5])
    return all_of(
        mean=close(gradients.mean(0), full_gradient, atol=1e-12),
        one_example=close(gradients[5], fifth, atol=1e-12),
        one_example_is_not_the_mean=greater_equal((fifth - full_gradient).abs().max(), 0.01),
    )


def squared_linear_error(theta: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return (theta @ x - y).square()


@claim("B1.3-5", "B1.3-6")
def empirical_loss_and_gradient_converge_to_the_expectation() -> Evidence:
    """Empirical loss and gradient over N examples converge as 1/√N to E ℰ and ∇E ℰ (book eq. 1.17).

    With normal x and y = tᵀx + ε the risk of a linear model is ‖θ − t‖² + Var ε, and its gradient 2(θ − t).
    """
    generator = torch.Generator().manual_seed(0)
    truth, theta = torch.tensor([[1.0, -2.0, 0.5], [0.0, -1.0, 1.0]], dtype=torch.float64)
    sizes = [100, 400, 1_600, 6_400]
    loss_errors, gradient_errors = [], []
    for size in sizes:
        x = torch.randn(100, size, 3, generator=generator, dtype=torch.float64)  # a hundred data sets
        noise = 0.5 * torch.randn(100, size, generator=generator, dtype=torch.float64)
        y = x @ truth + noise
        loss_errors.append((x @ theta - y).square().mean(1) - (theta - truth).square().sum() - 0.25)
        gradients = vmap(lambda x, y: per_sample_gradients(squared_linear_error, theta, x, y).mean(0))(x, y)
        gradient_errors.append(gradients - 2 * (theta - truth))
    count = torch.tensor(sizes)
    return all_of(
        loss=rate(count, torch.stack([each.square().mean().sqrt() for each in loss_errors]), -0.5, atol=0.1),
        gradient=rate(count, torch.stack([each.square().mean().sqrt() for each in gradient_errors]), -0.5, atol=0.1),
        unbiased=close(torch.stack(gradient_errors).mean(1), 0.0, atol=0.2),
    )


@erratum("B1.3-2", printed="a sequence of parameters x⁽ᵗ⁾ and b⁽ᵗ⁾", right="w⁽ᵗ⁾ and b⁽ᵗ⁾")
def gradient_descent_updates_weights_and_not_inputs() -> Correction:
    """Descent in X and b changes the data until a random w fits them, and does not generalise (book sec. 1.3)."""
    generator = torch.Generator().manual_seed(0)
    x, x_test = torch.randn(2, 40, 3, generator=generator, dtype=torch.float64)
    truth, start = torch.randn(2, 3, generator=generator, dtype=torch.float64)

    y, y_test = x @ truth + 1, x_test @ truth + 1

    def loss(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        value: Tensor = (x @ w + b - y).square().mean()
        return value

    bias = torch.zeros(1, dtype=torch.float64)
    over_data = gradient_descent(
        lambda theta: loss(theta[:-1].reshape(40, 3), start, theta[-1]),
        torch.cat([x.flatten(), bias]),
        learning_rate=0.5,
        steps=300,
    )[-1]
    over_weights = gradient_descent(
        lambda theta: loss(x, theta[:-1], theta[-1]), torch.cat([start, bias]), learning_rate=0.2, steps=300
    )[-1]
    return Correction(
        printed=close(x_test @ start + over_data[-1], y_test, atol=0.1),
        corrected=all_of(
            test_points=close(x_test @ over_weights[:-1] + over_weights[-1], y_test, atol=1e-6),
            changed_data_fit=close(loss(over_data[:-1].reshape(40, 3), start, over_data[-1]), 0.0, atol=1e-3),
            data_have_changed=greater_equal((over_data[:-1].reshape(40, 3) - x).abs().max(), 0.5),
        ),
    )


@claim("B1.3-8", "Z3.4")
def partitions_use_every_example_once_per_epoch() -> Evidence:
    """A partition uses each example once per epoch; sampling with replacement does not (book sec. 1.3)."""
    generator = torch.Generator().manual_seed(0)
    fixed = list(fixed_partition_batches(20, 6, epochs=2, generator=generator))
    shuffled = list(shuffled_batches(20, 6, epochs=2, generator=generator))
    replaced = list(batches_with_replacement(20, 6, epochs=2, generator=generator))
    epochs = [torch.cat(batches[4 * epoch : 4 * epoch + 4]) for batches in (fixed, shuffled) for epoch in (0, 1)]
    return all_of(
        each_once=close(torch.stack([rows.sort().values for rows in epochs]), torch.arange(20)),
        fixed_partition=close(epochs[0], epochs[1]),
        new_partition_each_epoch=greater_equal((epochs[2] != epochs[3]).double().sum(), 1.0),
        random_order=greater_equal((epochs[0] != torch.arange(20)).double().sum(), 1.0),
        replacement_misses_some=greater_equal(20 - float(len(torch.cat(replaced[:4]).unique())), 1.0),
    )


@claim("B1.3-8", "D1.5.5", "Z3.4")
def equal_batches_average_to_the_full_gradient() -> Evidence:
    """Gradients of equal batches average to the full gradient, with variance ∝ 1/|B| (book eq. 1.18)."""
    x, y, theta = sample_regression()
    gradients = per_sample_gradients(squared_network_error, theta, x, y)
    generator = torch.Generator().manual_seed(0)
    parts = torch.stack([gradients[rows].mean(0) for rows in fixed_partition_batches(96, 16, generator=generator)])
    sizes = [1, 2, 4, 8, 16, 32]
    variances = []
    for size in sizes:
        draws = torch.stack(
            list(batches_with_replacement(96, size, epochs=4_000 * size // 96 + 1, generator=generator))
        )
        variances.append(gradients[draws].mean(1).var(0).sum())
    return all_of(
        average=close(parts.mean(0), gradients.mean(0), atol=1e-12),
        single_batch_differs=greater_equal((parts[0] - gradients.mean(0)).abs().max(), 0.01),
        variance=rate(torch.tensor(sizes), torch.stack(variances), -1.0, atol=0.05),
    )


@erratum("B1.3-8", "B1.4-10", printed="each mini-batch contributes equally", right="weight batches by their size")
def short_batches_must_be_weighted_by_size() -> Correction:
    """60,000 examples in batches of 64 leave a last batch of 32, whose examples weigh twice as much (book sec. 1.3)."""
    values = torch.arange(60_000, dtype=torch.float64)  # sorted data
    batches = list(sequential_batches(60_000, 64))
    means = torch.stack([values[rows].mean() for rows in batches])
    sizes = torch.tensor([len(rows) for rows in batches], dtype=torch.float64)
    return Correction(
        printed=close(means.mean(), values.mean(), rtol=1e-6),
        corrected=all_of(
            weighted=close((sizes * means).sum() / sizes.sum(), values.mean(), rtol=1e-12),
            batches=close(len(batches), 938),
            last=close(sizes[-1], 32),
            test_batches=close(len(list(sequential_batches(10_000, 64))), 157),
            last_test_batch=close(len(list(sequential_batches(10_000, 64))[-1]), 16),
        ),
    )


@erratum("B1.3-8", "B1.4-10", printed="DataLoader(data, batch_size=64): a random partition", right="shuffle=True")
def data_loader_does_not_shuffle_by_default() -> Correction:
    """The text requires a random partition; the loaders of its listing keep the order of the data (book sec. 1.4)."""
    torch.manual_seed(0)
    rows = torch.arange(600)
    labels = rows // 60  # ten classes, one after the other
    data = TensorDataset(rows, labels)
    plain, shuffled = DataLoader(data, batch_size=60), DataLoader(data, batch_size=60, shuffle=True)

    def classes_in_a_batch(loader: DataLoader[tuple[Tensor, ...]]) -> Tensor:
        return torch.tensor([len(batch.unique()) for _, batch in loader])

    def load_rows(loader: DataLoader[tuple[Tensor, ...]]) -> Tensor:
        return torch.cat([batch for batch, _ in loader])

    first, second = load_rows(shuffled), load_rows(shuffled)
    return Correction(
        printed=greater_equal(classes_in_a_batch(plain), 5),
        corrected=all_of(
            shuffled_batches_mix_classes=greater_equal(classes_in_a_batch(shuffled), 5),
            each_row_once=close(first.sort().values, rows),
            new_partition_each_epoch=greater_equal((first != second).sum(), 1),
            sequential_batches_as_printed=close(torch.cat(list(sequential_batches(600, 60))), load_rows(plain)),
        ),
    )


@claim("B1.3-2", "B1.3-7", "B1.3-8")
def minibatch_sgd_converges_on_noise_free_linear_data() -> Evidence:
    """Online and mini-batch SGD converge to the true weights on noise-free linear data (book eq. 1.18)."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(64, 3, generator=generator, dtype=torch.float64)
    truth = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    start = torch.randn(3, generator=generator, dtype=torch.float64)

    def squared_loss(theta: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return (x @ theta - y).square()

    ends = [
        stochastic_gradient_descent(
            squared_loss,
            start,
            (x, x @ truth),
            batches=shuffled_batches(64, size, epochs=epochs, generator=generator),
            learning_rate=0.05,
        )[-1]
        for size, epochs in ((1, 8), (8, 40), (64, 320))
    ]
    return close(torch.stack(ends), truth, atol=1e-6)
