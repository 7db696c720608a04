"""Claims about affine maps, dense layers, XOR and linear regression (book secs. 1.1 to 1.3)."""

from inspect import isclass, ismodule
from itertools import pairwise
from math import pi

import torch
from torch import Tensor, nn
from torch.func import jacrev
from torch.nn import functional

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.data.built_in.toy import xor
from parnassus.layers.activations import identity, relu
from parnassus.layers.dense import Dense, affine, count_parameters, mlp
from parnassus.layers.initialisation import zero_initialiser
from parnassus.layers.linear_models.linear_regression import (
    LinearRegression,
    least_squares,
    linear_model,
    polynomial_features,
)
from parnassus.losses.regression import mean_squared_error
from parnassus.optim.optimisers.gradient_descent import gradient_descent
from parnassus.probability import standard_normal

XOR = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
XOR_VALUES = torch.tensor([0.0, 1.0, 1.0, 0.0], dtype=torch.float64)


@claim("B1.1-1")
def depth_needs_a_nonlinearity() -> Evidence:
    """A cascade of affine layers is one affine map; with ReLU in between it is not (book sec. 1.1)."""
    torch.manual_seed(0)
    affine_network = mlp((4, 9, 9, 3), activation=identity).double()
    relu_network = mlp((4, 9, 9, 3), activation=relu).double()
    first, second, third = (affine_network.get_parameter(f"{layer}.weight") for layer in range(3))
    bias = affine_network(torch.zeros(4, dtype=torch.float64))
    x, y = standard_normal(50, 4), standard_normal(50, 4, seed=1)
    deviation = ((relu_network(x) + relu_network(y)) / 2 - relu_network((x + y) / 2)).abs()
    return all_of(
        one_affine_map=close(affine_network(x), affine(x, first @ second @ third, bias), atol=1e-14),
        not_affine_with_relu=greater_equal(deviation.max(), 0.01),
    )


@claim("B1.1-1")
def a_product_is_a_superposition_of_univariate_functions() -> Evidence:
    """A product is Φ(x + y) − Φ(x − y) with Φ(t) = t²/4, an instance of Kolmogorov's theorem (book sec. 1.1)."""
    x, y = standard_normal(1_000), standard_normal(1_000, seed=1)

    def outer(t: Tensor) -> Tensor:
        return t.square() / 4

    return close(outer(x + y) - outer(x - y), x * y, atol=1e-13)


@claim("B1.1-2", "B1.3-1")
def closed_form_and_gradient_descent_recover_a_line() -> Evidence:
    """From points on y = a x + b the closed form and gradient descent both find a and b (book sec. 1.1)."""
    x = standard_normal(30)
    y = 2.5 * x - 0.75
    model = LinearRegression.fit(x[:, None], y)
    path = gradient_descent(
        lambda theta: mean_squared_error(theta[0] * x + theta[1], y),
        standard_normal(2, seed=1),
        learning_rate=0.2,
        steps=400,
    )
    truth = torch.tensor([2.5, -0.75], dtype=torch.float64)
    return all_of(
        closed_form=close(torch.cat([model.w, model.b[None]]), truth, atol=1e-12),
        descent=close(path[-1], truth, atol=1e-9),
    )


@claim("B1.3-1", "B1.3-2")
def gradient_descent_converges_to_least_squares() -> Evidence:
    """On noisy data gradient descent on the mean squared error converges to the least-squares fit (book sec. 1.3)."""
    x = standard_normal(60, 3) + 1
    y = x @ torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64) + 3 + 0.3 * standard_normal(60, seed=1)
    w, b = least_squares(x, y)

    def loss(theta: Tensor) -> Tensor:
        return mean_squared_error(linear_model(x, theta[:3], theta[3]), y)

    path = gradient_descent(loss, standard_normal(4, seed=2), learning_rate=0.15, steps=3_000)
    return all_of(
        same_point=close(path[-1], torch.cat([w, b[None]]), atol=1e-9),
        zero_gradient=close(jacrev(loss)(path[-1]), 0.0, atol=1e-9),
        loss_decreases=greater_equal(loss(path[0]) - loss(path[-1]), 1.0),
    )


@claim("B1.2-1", "B1.2-2", "B1.4-2")
def batched_predictions_are_rowwise() -> Evidence:
    """Row i of X w + b·1 is wᵀx_i + b, and x W + b is torch's linear with Wᵀ (book eqs. 1.1, 1.2)."""
    x, w, b = standard_normal(7, 4), standard_normal(4, seed=1), standard_normal(1, seed=2)[0]
    weight, bias = standard_normal(4, 3, seed=3), standard_normal(3, seed=4)
    one_by_one = torch.stack([(w * point).sum() + b for point in x])
    return all_of(
        rows=close(linear_model(x, w, b), one_by_one, atol=1e-14),
        one_point=close(linear_model(x[2], w, b), one_by_one[2], atol=1e-14),
        torch_linear=close(affine(x, weight, bias), functional.linear(x, weight.T, bias), atol=1e-14),
    )


@claim("B1.4-2")
def the_printed_relu_has_another_derivative_at_zero() -> Evidence:
    """clamp_min(0) has ReLU's values but derivative 1 at 0; torch's relu has derivative 0 (book sec. 1.4)."""
    x = torch.tensor([-1.5, 0.0, 2.0], dtype=torch.float64, requires_grad=True)
    (printed,) = torch.autograd.grad(x.clamp_min(0.0).sum(), x)
    (relu_gradient,) = torch.autograd.grad(relu(x).sum(), x)
    return all_of(
        values=close(x.clamp_min(0.0), functional.relu(x)),
        printed_derivative=close(printed, torch.tensor([0.0, 1.0, 1.0])),
        relu_derivative=close(relu_gradient, torch.tensor([0.0, 0.0, 1.0])),
    )


@erratum("B1.4-3", printed="torch.nn is a class", right="torch.nn is a module; Linear and ReLU are classes in it")
def torch_nn_is_a_module() -> Correction:
    """The text calls torch.nn a class; its Linear and ReLU are instances of this library's layer (book sec. 1.4)."""
    layer, torch_layer, x = Dense(4, 3, activation=relu).double(), nn.Linear(4, 3).double(), standard_normal(20, 4)
    torch_layer.load_state_dict({"weight": layer.weight.mT, "bias": layer.bias})
    return Correction(
        printed=close(float(isclass(torch.nn)), 1.0),
        corrected=all_of(
            module=close(float(ismodule(torch.nn)), 1.0),
            classes=close(float(isclass(nn.Linear) and isclass(nn.ReLU)), 1.0),
            same_layer=close(layer(x), nn.Sequential(torch_layer, nn.ReLU())(x), atol=1e-14),
        ),
    )


@claim("B1.2-5")
def no_affine_function_fits_xor() -> Evidence:
    """Affine functions have equal sums on both diagonals, XOR does not; the best fit is constant ½ (book sec. 1.2)."""
    w, b = least_squares(XOR, XOR_VALUES)
    angle = torch.linspace(0, 2 * pi, 721, dtype=torch.float64)
    scores = XOR @ torch.stack([angle.cos(), angle.sin()])  # (4, angles)
    thresholds = torch.linspace(-2, 2, 801, dtype=torch.float64)
    correct = ((scores[..., None] > thresholds) == (XOR_VALUES > 0)[:, None, None]).double().sum(0)
    diagonals = linear_model(XOR, standard_normal(2), standard_normal(1)[0])
    return all_of(
        equal_diagonal_sums=close(diagonals[0] + diagonals[3], diagonals[1] + diagonals[2], atol=1e-14),
        slopes=close(w, 0.0, atol=1e-14),
        intercept=close(b, 0.5, atol=1e-14),
        error=close(mean_squared_error(linear_model(XOR, w, b), XOR_VALUES), 0.25, atol=1e-14),
        at_most_three_correct=close(correct.max(), 3.0),
    )


@claim("B1.2-4", "B1.2-6")
def one_hidden_layer_fits_xor() -> Evidence:
    """relu(x₁ − x₂) + relu(x₂ − x₁) = |x₁ − x₂| is a 2-2-1 network that computes XOR (book sec. 1.2)."""
    network = mlp((2, 2, 1), initialise=zero_initialiser).double()
    with torch.no_grad():
        network.get_parameter("0.weight").copy_(torch.tensor([[1.0, -1.0], [-1.0, 1.0]]))
        network.get_parameter("1.weight").fill_(1.0)
    x, table = standard_normal(100, 2), xor()
    assert table.y is not None
    return all_of(
        data=close(torch.cat([table.x, table.y[:, None]], 1), torch.cat([XOR, XOR_VALUES[:, None]], 1)),
        on_the_four_points=close(network(XOR)[:, 0], XOR_VALUES),
        everywhere=close(network(x)[:, 0], (x[:, 0] - x[:, 1]).abs(), atol=1e-14),
    )


@claim("B1.2-7", "B1.2-14", "B1.2-15")
def an_mlp_is_a_loop_over_dense_layers() -> Evidence:
    """A loop over σ(W_lᵀ h + b_l) equals mlp and torch, with Σ (n_{l−1} + 1) n_l parameters (book sec. 1.2)."""
    torch.manual_seed(0)
    sizes = (6, 11, 5, 2)
    network = mlp(sizes, activation=relu, output=relu).double()
    linear = [nn.Linear(inputs, outputs).double() for inputs, outputs in pairwise(sizes)]
    torch_network = nn.Sequential(*(part for layer in linear for part in (layer, nn.ReLU())))
    h = x = standard_normal(20, 6)
    for index, layer in enumerate(linear):
        layer.load_state_dict({"weight": network.get_parameter(f"{index}.weight").mT, "bias": network[index].bias})
        columns = network.get_parameter(f"{index}.weight").mT @ h.mT + network.get_parameter(f"{index}.bias")[:, None]
        h = columns.mT.clamp_min(0)
    neuron = Dense(6, 1, activation=torch.tanh).double()
    by_hand = torch.tanh(x @ neuron.weight[:, 0] + neuron.bias[0])
    return all_of(
        loop=close(network(x), h, atol=1e-14),
        torch_network=close(network(x), torch_network(x), atol=1e-14),
        single_neuron=close(neuron(x)[:, 0], by_hand, atol=1e-14),
        parameters=close(count_parameters(network), 7 * 11 + 12 * 5 + 6 * 2),
    )


@claim("B1.4-14")
def the_classifier_has_669706_parameters() -> Evidence:
    """784-512-512-10 with biases has 669,706 parameters (book ex. 1.1)."""
    return close(count_parameters(mlp((784, 512, 512, 10))), 669_706)


@claim("B1.2-3")
def a_perfect_fit_can_generalise_badly() -> Evidence:
    """Training error decreases in the degree of a polynomial; held-out error has a minimum (book sec. 1.2)."""
    x = torch.linspace(-1, 1, 16, dtype=torch.float64)
    x_test = torch.linspace(-0.99, 0.99, 400, dtype=torch.float64)
    degrees = range(1, 16)
    train_error, test_error = torch.zeros(15, dtype=torch.float64), torch.zeros(15, dtype=torch.float64)
    for seed in range(20):  # average over noise draws: a single draw may be atypical
        y = torch.sin(3 * x) + 0.3 * standard_normal(16, seed=seed)
        for index, degree in enumerate(degrees):
            model = LinearRegression.fit(polynomial_features(x, degree), y)
            train_error[index] += mean_squared_error(model.predict(polynomial_features(x, degree)), y) / 20
            fitted = model.predict(polynomial_features(x_test, degree))
            test_error[index] += mean_squared_error(fitted, torch.sin(3 * x_test)) / 20
    best = int(test_error.argmin())
    return all_of(
        training_error_non_increasing=less_equal(train_error.diff(), 1e-12),
        interpolates_with_sixteen_coefficients=close(train_error[-1], 0.0, atol=1e-12),
        best_degree=close(degrees[best], 3),
        underfitting=greater_equal(test_error[0] / test_error[best], 3.0),
        overfitting=greater_equal(test_error[-1] / test_error[best], 30.0),
    )
