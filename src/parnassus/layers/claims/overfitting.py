"""Claims about size, data and chance: what a fit on few rows promises and does not keep (Diehl sec. 1.3)."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.optim import Optimizer

from parnassus.atlas import Evidence, all_of, at_least, at_most, claim, close
from parnassus.data import load_digits
from parnassus.layers.activations import Activation, identity, relu
from parnassus.layers.claims.generalisation import SIGMA, answer, fitted_polynomial, sine_rows
from parnassus.layers.classifier import dense_classifier, evaluate, require_labels
from parnassus.layers.dense import affine
from parnassus.layers.linear_regression import least_squares, linear_model
from parnassus.losses.squared import mean_squared_error
from parnassus.optim import SGD, AdaGrad, Adam, Momentum, RMSProp


def polynomial_errors(count: int, degree: int, *, draws: int, seed: int) -> tuple[Tensor, Tensor]:
    """Mean squared errors of a fitted polynomial on its own rows and on new ones, a number for each draw."""
    source = torch.Generator().manual_seed(seed)
    new = sine_rows(2_000, source)
    seen, unseen = [], []
    for _ in range(draws):
        x, y = sine_rows(count, source)
        model = fitted_polynomial(x, y, degree)
        seen.append(mean_squared_error(answer(model, degree, x), y))
        unseen.append(mean_squared_error(answer(model, degree, new[0]), new[1]))
    return torch.stack(seen), torch.stack(unseen)


@claim("Z3.9", "Z3.12")
def size_and_data_set_the_gap() -> Evidence:
    """Simple with much data: no gap; size lowers training error; size on few rows costs new error (Zhao sec. 3)."""
    x, y = sine_rows(30, torch.Generator().manual_seed(3))
    nested = torch.stack([mean_squared_error(answer(fitted_polynomial(x, y, d), d, x), y) for d in range(1, 13)])
    seen, unseen = polynomial_errors(5_000, 3, draws=1, seed=0)
    fewer = torch.stack([polynomial_errors(count, 9, draws=60, seed=1)[1].median() for count in (400, 100, 40, 16)])
    larger = torch.stack([polynomial_errors(20, degree, draws=60, seed=2)[1].median() for degree in (4, 8, 12, 16)])
    return all_of(
        much_data=close(seen, unseen, rtol=0.1),
        training_error_falls=at_most(nested.diff(), 1e-12),
        fewer_rows_more_error=at_least(fewer.diff(), 0.0),
        more_size_more_error=at_least(larger.diff(), 0.0),
        noise_is_the_floor=at_least(fewer.min(), 0.9 * SIGMA**2),
    )


def hidden_layer_errors(count: int, width: int) -> tuple[Tensor, Tensor]:
    """Errors seen and unseen of a random hidden layer of relus whose last layer is fitted exactly."""
    source = torch.Generator().manual_seed(0)
    weight = 3 * torch.randn(1, width, generator=source, dtype=torch.float64)
    bias = 3 * torch.rand(width, generator=source, dtype=torch.float64)
    (x, y), (new_x, new_y) = sine_rows(count, source), sine_rows(2_000, source)
    h, new_h = (relu(affine(each[:, None], weight, bias)) for each in (x, new_x))
    w, b = least_squares(h, y)
    return mean_squared_error(linear_model(h, w, b), y), mean_squared_error(linear_model(new_h, w, b), new_y)


@claim("D1.3.3")
def a_wide_network_learns_the_noise_of_few_rows() -> Evidence:
    """On 25 rows width lowers the training error and raises the test error; more rows cure it (Diehl sec. 1.3)."""
    narrow, wide, cured = hidden_layer_errors(25, 6), hidden_layer_errors(25, 24), hidden_layer_errors(2_000, 24)
    return all_of(
        training_error_falls=at_most(wide[0], narrow[0] / 2),
        test_error_rises=at_least(wide[1], 2 * narrow[1]),
        more_rows_cure=at_most(cured[1], narrow[1]),
        and_close_the_gap=close(cured[0], cured[1], rtol=0.15),
    )


@claim("D1.3.5")
def the_best_of_many_coins_looks_skilled() -> Evidence:
    """The best of k guessers on n noise labels has E[max of k Bin(n, ½)]/n right, and ½ of others (Diehl sec. 1.3)."""
    n, k, repetitions = 100, 200, 300
    source = torch.Generator().manual_seed(0)
    hits = torch.distributions.Binomial(n, torch.tensor(0.5, dtype=torch.float64))
    counts = torch.arange(n + 1, dtype=torch.float64)
    below = hits.log_prob(counts).exp().cumsum(0)
    expected = (1 - below[:-1] ** k).sum() / n
    right, elsewhere = (torch.rand(2, repetitions, k, n, generator=source) < 0.5).double().mean(-1)
    sealed = elsewhere[torch.arange(repetitions), right.argmax(1)]
    error = float(right.amax(1).std()) / repetitions**0.5
    return all_of(
        on_the_set_chosen_by=close(right.amax(1).mean(), expected, atol=4 * error),
        looks_skilled=at_least(expected, 0.6),
        on_a_sealed_set=close(sealed.mean(), 0.5, atol=4 * 0.05 / repetitions**0.5),
    )


@claim("Z5.11")
def a_network_can_learn_labels_by_heart() -> Evidence:
    """A wide network makes no error on labels drawn at random, and learns nothing from them (Zhao sec. 5)."""
    torch.manual_seed(0)
    x, new_x = torch.randn(60, 20), torch.randn(2_000, 20)
    labels, new_labels = torch.randint(2, (60,)), torch.randint(2, (2_000,))
    model = dense_classifier(20, 2, hidden=(256,))
    optimizer = Adam(model.parameters(), lr=1e-2)
    for _ in range(100):
        optimizer.zero_grad()
        model.loss(x, labels).backward()
        optimizer.step()
    return all_of(
        training=close(evaluate(model, x, labels).accuracy, 1.0),
        new_rows=close(evaluate(model, new_x, new_labels).accuracy, 0.5, atol=4 * 0.5 / 2_000**0.5),
    )


def losses_at_the_listed_rate(output: Activation) -> dict[str, float]:
    """Training loss on digits after 150 steps of each optimiser with the settings of the book's listings."""
    data = load_digits()
    labels = require_labels(data.train.y, 10)
    batches = data.train.pairs(64, 150)
    ends: dict[str, float] = {}
    listed: dict[str, Callable[..., Optimizer]] = {
        "sgd": SGD,
        "momentum": partial(Momentum, momentum=0.8),
        "adagrad": AdaGrad,
        "rmsprop": partial(RMSProp, alpha=0.9),
        "adam": partial(Adam, betas=(0.9, 0.99)),
    }
    for name, optimiser in listed.items():
        torch.manual_seed(0)
        model = dense_classifier(64, 10, hidden=(64, 64), output=output)
        optimizer = optimiser(model.parameters(), lr=1e-3)
        for step in range(len(batches)):
            optimizer.zero_grad()
            model.loss(*batches.at(step)).backward()
            optimizer.step()
        ends[name] = evaluate(model, data.train.x, labels).loss
    return ends


@claim("B3.4-4")
def adaptive_methods_lead_at_the_listed_rate() -> Evidence:
    """Adam and RMSProp lead AdaGrad, it leads momentum, that SGD; a last ReLU costs the leaders most (book ex. 3.5)."""
    fixed, printed = losses_at_the_listed_rate(identity), losses_at_the_listed_rate(relu)
    cost = {name: printed[name] - fixed[name] for name in fixed}
    ahead = ("sgd", "momentum"), ("momentum", "adagrad"), ("adagrad", "rmsprop"), ("adagrad", "adam")
    leads = [torch.tensor([ends[behind] - ends[before] for behind, before in ahead]) for ends in (fixed, printed)]
    return all_of(
        fixed_network=at_least(leads[0], 0.0),
        with_the_last_relu=at_least(leads[1], 0.0),
        adaptive_pay_more=at_least(
            min(cost[name] for name in ("adagrad", "rmsprop", "adam")), max(cost["sgd"], cost["momentum"])
        ),
    )
