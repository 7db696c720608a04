"""Claims about training and test error by model size, sample size and model selection (Diehl sec. 1.3)."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal, rate
from parnassus.data import load_digits
from parnassus.data.built_in.toy import curve
from parnassus.layers.activations import Activation, identity, relu, tanh
from parnassus.layers.claims.generalisation import (
    SIGMA,
    fit_polynomial,
    predict_polynomial,
    sample_noisy_sine,
    sine_density,
)
from parnassus.layers.classifier import check_labels, dense_classifier, evaluate
from parnassus.layers.dense import affine, mlp
from parnassus.layers.linear_models.linear_regression import least_squares, linear_model
from parnassus.layers.linear_models.ridge_regression import ridge_regression
from parnassus.losses.classification import cross_entropy
from parnassus.losses.regression import mean_squared_error, squared_error
from parnassus.losses.risk import empirical_risk, expected_risk
from parnassus.optim import SGD, AdaGrad, Adam, Momentum, RMSProp


def polynomial_errors(count: int, degree: int, *, draws: int, seed: int) -> tuple[Tensor, Tensor]:
    """Mean squared errors of a fitted polynomial on its training set and on new data, one pair per draw."""
    generator = torch.Generator().manual_seed(seed)
    new = sample_noisy_sine(2_000, generator)
    train, test = [], []
    for _ in range(draws):
        x, y = sample_noisy_sine(count, generator)
        model = fit_polynomial(x, y, degree)
        train.append(mean_squared_error(predict_polynomial(model, degree, x), y))
        test.append(mean_squared_error(predict_polynomial(model, degree, new[0]), new[1]))
    return torch.stack(train), torch.stack(test)


@claim("Z3.9", "Z3.12")
def model_size_and_data_determine_the_generalisation_gap() -> Evidence:
    """Generalisation gap: 0 for much data and a small model; with few data it grows with model size (Zhao sec. 3)."""
    x, y = sample_noisy_sine(30, torch.Generator().manual_seed(3))
    nested = torch.stack(
        [mean_squared_error(predict_polynomial(fit_polynomial(x, y, d), d, x), y) for d in range(1, 13)]
    )
    train, test = polynomial_errors(5_000, 3, draws=1, seed=0)
    fewer = torch.stack([polynomial_errors(count, 9, draws=60, seed=1)[1].median() for count in (400, 100, 40, 16)])
    larger = torch.stack([polynomial_errors(20, degree, draws=60, seed=2)[1].median() for degree in (4, 8, 12, 16)])
    overfitted = partial(predict_polynomial, fit_polynomial(x[:12], y[:12], 11), 11)
    its_risk = expected_risk(squared_error, overfitted, sine_density, x_range=(-1.0, 1.0), y_range=(-4.0, 4.0))
    return all_of(
        no_gap_with_much_data=close(train, test, rtol=0.1),
        training_error_falls=less_equal(nested.diff(), 1e-12),
        test_error_rises_with_fewer_data=greater_equal(fewer.diff(), 0.0),
        test_error_rises_with_degree=greater_equal(larger.diff(), 0.0),
        not_below_the_noise=greater_equal(fewer.min(), 0.9 * SIGMA**2),
        risk_of_an_interpolating_polynomial=greater_equal(its_risk, 0.3),
        its_training_error=less_equal(empirical_risk(squared_error, overfitted, x[:12], y[:12]), 1e-6),
    )


@claim("Z3.12")
def the_generalisation_gap_is_inversely_proportional_to_the_sample_size() -> Evidence:
    """For p coefficients and noise σ² the errors on new and on own labels differ by 2σ²p/n on average (Zhao sec. 3)."""
    generator = torch.Generator().manual_seed(0)
    sizes, degree = (25, 100, 400), 5
    gaps = []
    for count in sizes:
        differences = []
        for _ in range(500):
            x, y = sample_noisy_sine(count, generator)
            new_y = torch.sin(3 * x) + SIGMA * torch.randn(count, generator=generator, dtype=torch.float64)
            predicted = predict_polynomial(fit_polynomial(x, y, degree), degree, x)
            differences.append(mean_squared_error(predicted, new_y) - mean_squared_error(predicted, y))
        gaps.append(torch.stack(differences).mean())
    scaled = torch.stack(gaps) * torch.tensor(sizes) / (2 * SIGMA**2)
    return all_of(
        proportional_to_1_over_n=rate(torch.tensor(sizes), torch.stack(gaps), -1.0, atol=0.15),
        number_of_coefficients=close(scaled[0], degree + 1, rtol=0.15),
    )


def hidden_layer_errors(count: int, width: int) -> tuple[Tensor, Tensor]:
    """Training and test error of a random hidden ReLU layer with a least-squares output layer."""
    generator = torch.Generator().manual_seed(0)
    weight = 3 * torch.randn(1, width, generator=generator, dtype=torch.float64)
    bias = 3 * torch.rand(width, generator=generator, dtype=torch.float64)
    (x, y), (new_x, new_y) = sample_noisy_sine(count, generator), sample_noisy_sine(2_000, generator)
    h, new_h = (relu(affine(each[:, None], weight, bias)) for each in (x, new_x))
    w, b = least_squares(h, y)
    return mean_squared_error(linear_model(h, w, b), y), mean_squared_error(linear_model(new_h, w, b), new_y)


@claim("D1.3.3")
def wide_networks_overfit_small_training_sets() -> Evidence:
    """With 25 examples, width lowers the training error and raises the test error; more data help (Diehl sec. 1.3)."""
    narrow, wide, more_data = hidden_layer_errors(25, 6), hidden_layer_errors(25, 24), hidden_layer_errors(2_000, 24)
    return all_of(
        training_error_falls=less_equal(wide[0], narrow[0] / 2),
        test_error_rises=greater_equal(wide[1], 2 * narrow[1]),
        more_data_lowers_test_error=less_equal(more_data[1], narrow[1]),
        more_data_closes_the_gap=close(more_data[0], more_data[1], rtol=0.15),
    )


def selected_accuracies(seed: int) -> Tensor:
    """Accuracy of the best of 40 ridge classifiers of random labels, on the set of the selection and on another."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(250, 12, generator=generator, dtype=torch.float64)
    y = torch.randint(2, (250,), generator=generator) * 2.0 - 1
    accuracies = []
    for _ in range(40):
        features = relu(x @ torch.randn(12, 10, generator=generator, dtype=torch.float64))
        model = ridge_regression(features[:50], y[:50].double(), penalty=0.1)
        correct = (model.predict(features[50:]).sign() == y[50:]).double()
        accuracies.append(torch.stack([correct[:100].mean(), correct[100:].mean()]))
    return torch.stack(accuracies)[torch.stack(accuracies)[:, 0].argmax()]


@claim("D1.3.5")
def selecting_the_best_of_many_is_biased() -> Evidence:
    """The best of k random classifiers has accuracy E[max_k Bin(n, ½)]/n on n labels, ½ on others (Diehl sec. 1.3)."""
    n, k, repetitions = 100, 200, 300
    generator = torch.Generator().manual_seed(0)
    binomial = torch.distributions.Binomial(n, torch.tensor(0.5, dtype=torch.float64))
    counts = torch.arange(n + 1, dtype=torch.float64)
    below = binomial.log_prob(counts).exp().cumsum(0)
    expected = (1 - below[:-1] ** k).sum() / n
    selection, held_out = (torch.rand(2, repetitions, k, n, generator=generator) < 0.5).double().mean(-1)
    best_held_out = held_out[torch.arange(repetitions), selection.argmax(1)]
    error = float(selection.amax(1).std()) / repetitions**0.5
    fitted = torch.stack([selected_accuracies(seed) for seed in range(20)]).mean(0)
    return all_of(
        fitted_models_on_the_selection_set=greater_equal(fitted[0], 0.57),
        fitted_models_on_a_held_out_set=close(fitted[1], 0.5, atol=4 * 0.5 / (20 * 100) ** 0.5),
        on_the_selection_set=close(selection.amax(1).mean(), expected, atol=4 * error),
        above_chance=greater_equal(expected, 0.6),
        on_a_held_out_set=close(best_held_out.mean(), 0.5, atol=4 * 0.05 / repetitions**0.5),
    )


@claim("Z5.11")
def a_network_can_memorise_random_labels() -> Evidence:
    """A wide network fits random labels without error and has chance-level accuracy on new data (Zhao sec. 5)."""
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
        training_accuracy=close(evaluate(model, x, labels).accuracy, 1.0),
        test_accuracy=close(evaluate(model, new_x, new_labels).accuracy, 0.5, atol=4 * 0.5 / 2_000**0.5),
    )


def losses_at_the_listed_learning_rate(output: Activation) -> dict[str, float]:
    """Training loss on digits after 150 steps of each optimiser, with the settings of the book's listings."""
    data = load_digits()
    labels = check_labels(data.train.y, 10)
    batches = data.train.pairs(64, 150)
    losses: dict[str, float] = {}
    optimisers: dict[str, Callable[..., Optimizer]] = {
        "sgd": SGD,
        "momentum": partial(Momentum, momentum=0.8),
        "adagrad": AdaGrad,
        "rmsprop": partial(RMSProp, alpha=0.9),
        "adam": partial(Adam, betas=(0.9, 0.99)),
    }
    for name, optimiser in optimisers.items():
        torch.manual_seed(0)
        model = dense_classifier(64, 10, hidden=(64, 64), output=output)
        optimizer = optimiser(model.parameters(), lr=1e-3)
        for step in range(len(batches)):
            optimizer.zero_grad()
            model.loss(*batches.at(step)).backward()
            optimizer.step()
        losses[name] = evaluate(model, data.train.x, labels).loss
    return losses


@claim("B3.4-4")
def adaptive_methods_lead_at_the_listed_learning_rate() -> Evidence:
    """Losses: Adam, RMSProp < AdaGrad < momentum < SGD; a final ReLU raises the adaptive ones most (book ex. 3.5)."""
    fixed, printed = losses_at_the_listed_learning_rate(identity), losses_at_the_listed_learning_rate(relu)
    increase = {name: printed[name] - fixed[name] for name in fixed}
    pairs = ("sgd", "momentum"), ("momentum", "adagrad"), ("adagrad", "rmsprop"), ("adagrad", "adam")
    leads = [torch.tensor([losses[slower] - losses[faster] for slower, faster in pairs]) for losses in (fixed, printed)]
    return all_of(
        corrected_network=greater_equal(leads[0], 0.0),
        with_final_relu=greater_equal(leads[1], 0.0),
        adaptive_losses_increase_more=greater_equal(
            min(increase[name] for name in ("adagrad", "rmsprop", "adam")), max(increase["sgd"], increase["momentum"])
        ),
    )


@claim("C-09")
def learning_rates_decide_between_fit_and_divergence() -> Evidence:
    """80 hidden units fit 3 sin 5x + x³ with Adam; gradient descent with rate 0.3 diverges to NaN (Diehl sec. 1.3)."""
    data = curve(100, lambda x: 3 * (5 * x).sin() + x**3, noise=0.0, low=-2.0, high=2.0)
    assert data.y is not None
    errors = {}
    optimisers: dict[str, Callable[..., Optimizer]] = {"adam": partial(Adam, lr=2e-2), "sgd": partial(SGD, lr=0.3)}
    for name, optimiser in optimisers.items():
        torch.manual_seed(0)
        network = mlp((1, 80, 80, 1), activation=tanh)
        optimizer = optimiser(network.parameters())
        for _ in range(400):
            optimizer.zero_grad()
            mean_squared_error(network(data.x), data.y).backward()
            optimizer.step()
        errors[name] = mean_squared_error(network(data.x), data.y).detach()
    return all_of(
        values=close(data.y, 3 * torch.sin(5 * data.x) + data.x.pow(3), atol=1e-5),
        fit=less_equal(errors["adam"] / data.y.var(), 0.02),
        divergence=close(float(errors["sgd"].isfinite()), 0.0),
    )


@claim("D0.3")
def a_network_from_scratch_trains_as_in_torch() -> Evidence:
    """Layers, loss and optimiser of this library take the same twenty steps as those of torch (Diehl sec. 0)."""
    x, labels = load_digits().train.x[:200].flatten(1).double(), torch.arange(200) % 10
    torch.manual_seed(0)
    network = mlp((64, 20, 10)).double()
    reference = nn.Sequential(nn.Linear(64, 20), nn.ReLU(), nn.Linear(20, 10)).double()
    for index, layer in ((0, 0), (1, 2)):
        weight, bias = network.get_parameter(f"{index}.weight"), network.get_parameter(f"{index}.bias")
        reference[layer].load_state_dict({"weight": weight.mT, "bias": bias})
    ours, theirs = SGD(network.parameters(), lr=0.3), torch.optim.SGD(reference.parameters(), lr=0.3)
    for _ in range(20):
        ours.zero_grad()
        theirs.zero_grad()
        cross_entropy(network(x), labels).mean().backward()
        nn.functional.cross_entropy(reference(x), labels).backward()
        ours.step()
        theirs.step()
    return all_of(
        logits=close(network(x), reference(x), atol=1e-12),
        weights=close(network.get_parameter("0.weight").mT, reference.get_parameter("0.weight"), atol=1e-13),
    )
