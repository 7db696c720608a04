"""Claims about gradient descent and its mini-batches (book sec. 1.3)."""

import torch
from torch import Tensor
from torch.func import grad, vmap
from torch.utils.data import DataLoader, TensorDataset

from parnassus.atlas import Correction, Evidence, all_of, at_least, claim, close, erratum, rate
from parnassus.optim.gradient_descent import gradient_descent, per_sample_gradients, stochastic_gradient_descent
from parnassus.optim.minibatches import in_order, partition_once, reshuffle, with_replacement


def error(theta: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """ℰ(θ; x) of a small tanh network with one hidden layer of three units, its nine weights in one vector."""
    hidden = torch.tanh(theta[:6].reshape(3, 2) @ x)
    return (hidden @ theta[6:] - y).square()


def regression(count: int = 96, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Points, values and a random θ for `error`."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 2, generator=generator, dtype=torch.float64)
    theta = torch.randn(9, generator=generator, dtype=torch.float64)
    return x, x[:, 0] * x[:, 1], theta


@claim("B1.3-4")
def a_small_step_descends() -> Evidence:
    """A small step lowers the loss by about η‖∇ℓ‖², a large one need not lower it (book eq. 1.13)."""
    x, y, theta = regression()

    def loss(theta: Tensor) -> Tensor:
        return vmap(error, in_dims=(None, 0, 0))(theta, x, y).mean()

    slope = grad(loss)(theta)
    small, large = 1e-6, 10.0
    after_small = gradient_descent(loss, theta, rate=small, steps=1)[-1]
    after_large = gradient_descent(loss, theta, rate=large, steps=1)[-1]
    return all_of(
        gain=close((loss(theta) - loss(after_small)) / small, slope.square().sum(), rtol=1e-3),
        too_large=at_least(loss(after_large) - loss(theta), 0.0),
    )


@claim("B1.3-5", "B1.3-6", "B1.3-7")
def the_gradient_of_the_mean_is_the_mean_gradient() -> Evidence:
    """Gradients of single examples average to the full gradient: online SGD is unbiased (book eq. 1.16)."""
    x, y, theta = regression()
    each = per_sample_gradients(error, theta, x, y)
    whole = grad(lambda theta: vmap(error, in_dims=(None, 0, 0))(theta, x, y).mean())(theta)
    fifth = grad(error)(theta, x[5], y[5])
    return all_of(
        mean=close(each.mean(0), whole, atol=1e-12),
        one_example=close(each[5], fifth, atol=1e-12),
        one_example_is_not_the_mean=at_least((fifth - whole).abs().max(), 0.01),
    )


@claim("B1.3-5", "B1.3-6")
def a_mean_over_examples_tends_to_the_expectation() -> Evidence:
    """Loss and gradient over N examples come within 1/√N of E ℰ and ∇E ℰ, their values for all D (book eq. 1.17).

    With normal x and y = tᵀx + ε the risk of a linear model is ‖θ − t‖² + Var ε, and its gradient 2(θ − t).
    """
    generator = torch.Generator().manual_seed(0)
    truth, theta = torch.tensor([[1.0, -2.0, 0.5], [0.0, -1.0, 1.0]], dtype=torch.float64)
    sizes = [100, 400, 1_600, 6_400]
    off, gradients_off = [], []
    for size in sizes:
        x = torch.randn(100, size, 3, generator=generator, dtype=torch.float64)  # a hundred data sets
        noise = 0.5 * torch.randn(100, size, generator=generator, dtype=torch.float64)
        residual = x @ (theta - truth) - noise
        off.append(residual.square().mean(1) - (theta - truth).square().sum() - 0.25)
        gradients_off.append(2 * (residual[..., None] * x).mean(1) - 2 * (theta - truth))
    count = torch.tensor(sizes)
    return all_of(
        loss=rate(count, torch.stack([each.square().mean().sqrt() for each in off]), -0.5, atol=0.1),
        gradient=rate(count, torch.stack([each.square().mean().sqrt() for each in gradients_off]), -0.5, atol=0.1),
        unbiased=close(torch.stack(gradients_off).mean(1), 0.0, atol=0.2),
    )


@erratum("B1.3-2", printed="a sequence of parameters x⁽ᵗ⁾ and b⁽ᵗ⁾", right="w⁽ᵗ⁾ and b⁽ᵗ⁾")
def weights_are_trained_and_not_the_data() -> Correction:
    """Descent in X and b bends the data until a random w fits them, and learns nothing of them (book sec. 1.3)."""
    generator = torch.Generator().manual_seed(0)
    x, fresh = torch.randn(2, 40, 3, generator=generator, dtype=torch.float64)
    truth, start = torch.randn(2, 3, generator=generator, dtype=torch.float64)

    y, target = x @ truth + 1, fresh @ truth + 1

    def loss(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        value: Tensor = (x @ w + b - y).square().mean()
        return value

    bias = torch.zeros(1, dtype=torch.float64)
    over_data = gradient_descent(
        lambda theta: loss(theta[:-1].reshape(40, 3), start, theta[-1]),
        torch.cat([x.flatten(), bias]),
        rate=0.5,
        steps=300,
    )[-1]
    over_weights = gradient_descent(
        lambda theta: loss(x, theta[:-1], theta[-1]), torch.cat([start, bias]), rate=0.2, steps=300
    )[-1]
    return Correction(
        printed=close(fresh @ start + over_data[-1], target, atol=0.1),
        corrected=all_of(
            new_points=close(fresh @ over_weights[:-1] + over_weights[-1], target, atol=1e-6),
            the_bent_data_do_fit=close(loss(over_data[:-1].reshape(40, 3), start, over_data[-1]), 0.0, atol=1e-3),
            and_are_no_longer_the_data=at_least((over_data[:-1].reshape(40, 3) - x).abs().max(), 0.5),
        ),
    )


@claim("B1.3-8", "Z3.4")
def every_epoch_sees_every_example_once() -> Evidence:
    """A partition deals each row once an epoch, kept or reshuffled; drawing anew does not (book sec. 1.3)."""
    generator = torch.Generator().manual_seed(0)
    kept = list(partition_once(20, 6, epochs=2, generator=generator))
    fresh = list(reshuffle(20, 6, epochs=2, generator=generator))
    drawn = list(with_replacement(20, 6, epochs=2, generator=generator))
    seen = [torch.cat(batches[4 * epoch : 4 * epoch + 4]) for batches in (kept, fresh) for epoch in (0, 1)]
    return all_of(
        each_once=close(torch.stack([rows.sort().values for rows in seen]), torch.arange(20)),
        kept_batches=close(seen[0], seen[1]),
        fresh_batches=at_least((seen[2] != seen[3]).double().sum(), 1.0),
        not_in_order=at_least((seen[0] != torch.arange(20)).double().sum(), 1.0),
        drawing_misses_some=at_least(20 - float(len(torch.cat(drawn[:4]).unique())), 1.0),
    )


@claim("B1.3-8", "D1.5.5", "Z3.4")
def equal_batches_average_to_the_full_gradient() -> Evidence:
    """Gradients of equal batches average to the full gradient; their variance falls as 1/|B| (book eq. 1.18)."""
    x, y, theta = regression()
    each = per_sample_gradients(error, theta, x, y)
    generator = torch.Generator().manual_seed(0)
    parts = torch.stack([each[rows].mean(0) for rows in partition_once(96, 16, generator=generator)])
    sizes = [1, 2, 4, 8, 16, 32]
    variances = []
    for size in sizes:
        draws = torch.stack(list(with_replacement(96, size, epochs=4_000 * size // 96 + 1, generator=generator)))
        variances.append(each[draws].mean(1).var(0).sum())
    return all_of(
        average=close(parts.mean(0), each.mean(0), atol=1e-12),
        single_batch_is_off=at_least((parts[0] - each.mean(0)).abs().max(), 0.01),
        variance=rate(torch.tensor(sizes), torch.stack(variances), -1.0, atol=0.05),
    )


@erratum("B1.3-8", "B1.4-10", printed="each mini-batch contributes equally", right="weigh batches by their size")
def a_short_batch_counts_double() -> Correction:
    """60,000 examples in batches of 64 leave 32, which the plain average of batches counts twice (book sec. 1.3)."""
    values = torch.arange(60_000, dtype=torch.float64)  # sorted, as any order left to itself may be
    batches = list(in_order(60_000, 64))
    means = torch.stack([values[rows].mean() for rows in batches])
    sizes = torch.tensor([len(rows) for rows in batches], dtype=torch.float64)
    return Correction(
        printed=close(means.mean(), values.mean(), rtol=1e-6),
        corrected=all_of(
            weighed=close((sizes * means).sum() / sizes.sum(), values.mean(), rtol=1e-12),
            batches=close(len(batches), 938),
            last=close(sizes[-1], 32),
            test_batches=close(len(list(in_order(10_000, 64))), 157),
            last_test_batch=close(len(list(in_order(10_000, 64))[-1]), 16),
        ),
    )


@erratum("B1.3-8", "B1.4-10", printed="DataLoader(data, batch_size=64): a random partition", right="shuffle=True")
def a_loader_does_not_shuffle_unasked() -> Correction:
    """The text asks for a random partition; the loaders of its listing deal the rows as they lie (book sec. 1.4)."""
    torch.manual_seed(0)
    rows = torch.arange(600)
    labels = rows // 60  # ten classes, one after the other
    data = TensorDataset(rows, labels)
    plain, shuffled = DataLoader(data, batch_size=60), DataLoader(data, batch_size=60, shuffle=True)

    def classes_in_a_batch(loader: DataLoader[tuple[Tensor, ...]]) -> Tensor:
        return torch.tensor([len(seen.unique()) for _, seen in loader])

    def dealt(loader: DataLoader[tuple[Tensor, ...]]) -> Tensor:
        return torch.cat([seen for seen, _ in loader])

    first, second = dealt(shuffled), dealt(shuffled)
    return Correction(
        printed=at_least(classes_in_a_batch(plain), 5),
        corrected=all_of(
            shuffled_batches_mix_classes=at_least(classes_in_a_batch(shuffled), 5),
            each_row_once=close(first.sort().values, rows),
            anew_each_epoch=at_least((first != second).sum(), 1),
            ours_as_printed=close(torch.cat(list(in_order(600, 60))), dealt(plain)),
        ),
    )


@claim("B1.3-2", "B1.3-7", "B1.3-8")
def small_noisy_steps_find_the_minimum() -> Evidence:
    """From a random start, online and mini-batch descent reach the truth on noise-free linear data (book eq. 1.18)."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(64, 3, generator=generator, dtype=torch.float64)
    truth = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    start = torch.randn(3, generator=generator, dtype=torch.float64)

    def squared(theta: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return (x @ theta - y).square()

    ends = [
        stochastic_gradient_descent(
            squared, start, (x, x @ truth), batches=reshuffle(64, size, epochs=epochs, generator=generator), rate=0.05
        )[-1]
        for size, epochs in ((1, 8), (8, 40), (64, 320))
    ]
    return close(torch.stack(ends), truth, atol=1e-6)
