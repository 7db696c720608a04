"""Claims about residual connections (Diehl sec. 1.6)."""

from functools import partial

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, jacrev, stack_module_state, vmap

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal, raises
from parnassus.layers.activations import Activation, sigmoid, tanh
from parnassus.layers.dense import Dense, mlp
from parnassus.layers.initialisation import xavier_normal, zero_initialiser
from parnassus.layers.residual import Residual, residual_mlp
from parnassus.probability import standard_normal


def first_layer_gradient_norm(network: nn.Module) -> Tensor:
    """Norm of the gradient of a squared error with respect to the first layer's weights."""
    weight = network.get_parameter("0.weight")
    (gradient,) = torch.autograd.grad(network(standard_normal(64, 8)).square().mean(), weight)
    return gradient.square().sum().sqrt()


@claim("D1.6.3")
def a_residual_block_adds_its_input() -> Evidence:
    """A block with F = 0 is the identity, ∂y/∂x = I + ∂F/∂x; a projection adapts shapes (Diehl sec. 1.6)."""
    torch.manual_seed(0)
    body, x = Dense(5, 5, activation=tanh).double(), standard_normal(1, 5)
    zero = Residual(Dense(5, 5, initialise=zero_initialiser).double())
    wide, projection = Dense(5, 7).double(), Dense(5, 7).double()
    jacobian = jacrev(Residual(body))(x).reshape(5, 5)
    return all_of(
        zero_body=close(zero(x), x),
        zero_body_jacobian=close(jacrev(zero)(x).reshape(5, 5), torch.eye(5)),
        jacobian=close(jacobian, torch.eye(5) + jacrev(body)(x).reshape(5, 5).detach(), atol=1e-14),
        projection=close(Residual(wide, projection)(x), wide(x) + projection(x), atol=1e-14),
        unequal_shapes_raise=raises(ValueError, lambda: Residual(wide)(x)),
    )


@claim("D1.6.4")
def skip_connections_preserve_the_first_gradient() -> Evidence:
    """Without skip connections first-layer gradients of deep sigmoid and tanh networks vanish (Diehl sec. 1.6)."""
    plain: dict[Activation, Tensor] = {}
    residual: dict[Activation, Tensor] = {}
    for activation in (sigmoid, tanh):
        torch.manual_seed(0)
        initialise = xavier_normal(0.8)
        plain[activation] = torch.stack(
            [
                first_layer_gradient_norm(
                    mlp((8, *[32] * depth, 1), activation=activation, initialise=initialise).double()
                )
                for depth in (5, 45)
            ]
        )
        residual[activation] = torch.stack(
            [
                first_layer_gradient_norm(
                    residual_mlp(
                        8, 1, width=32, blocks=depth // 2, activation=activation, initialise=initialise
                    ).double()
                )
                for depth in (5, 45)
            ]
        )
    return all_of(
        sigmoid_vanishes=less_equal(plain[sigmoid][1] / plain[sigmoid][0], 1e-20),
        tanh_vanishes=less_equal(plain[tanh][1] / plain[tanh][0], 1e-3),
        sigmoid_with_skips=greater_equal(residual[sigmoid][1] / residual[sigmoid][0], 0.1),
        tanh_with_skips=greater_equal(residual[tanh][1] / residual[tanh][0], 0.1),
    )


@erratum("D1.6.4", printed="no risk of vanishing gradients", right="less risk: I + ∂F/∂x may still be small")
def skip_connections_do_not_exclude_vanishing_gradients() -> Correction:
    """Each block with F(x) = −⅞ x scales values and gradients by 1/8 (Diehl sec. 1.6)."""

    def shrink(weight: Tensor, bias: Tensor) -> None:
        weight.data.copy_(-0.875 * torch.eye(len(weight)))
        nn.init.zeros_(bias)

    network = nn.Sequential(*(Residual(Dense(3, 3, initialise=shrink)) for _ in range(20))).double()
    jacobian = jacrev(network)(standard_normal(1, 3)).reshape(3, 3)
    return Correction(
        printed=greater_equal(jacobian.diagonal(), 0.01),
        corrected=close(jacobian, 0.125**20 * torch.eye(3, dtype=torch.float64)),
    )


@claim("D1.6.4")
def a_skip_connection_bypasses_a_bottleneck() -> Evidence:
    """A bottleneck of one unit has a Jacobian of rank 1; a skip connection restores rank 2 (Diehl sec. 1.6)."""
    torch.manual_seed(0)
    narrow = mlp((2, 1, 2), activation=tanh).double()
    x = standard_normal(200, 2)
    ranks = [
        torch.linalg.matrix_rank(vmap(jacrev(lambda one, f=f: f(one[None])[0]))(x), rtol=1e-9).double()
        for f in (narrow, Residual(narrow))
    ]
    outputs = narrow(x).detach()
    best = torch.linalg.lstsq(torch.cat([outputs, torch.ones(200, 1)], 1), x).solution
    unexplained = (torch.cat([outputs, torch.ones(200, 1)], 1) @ best - x).square().mean() / x.square().mean()
    return all_of(
        plain_rank=close(ranks[0], 1.0),
        rank_with_skip=close(ranks[1], 2.0),
        unexplained_variance=greater_equal(unexplained, 0.4),
    )


@claim("D1.6.3")
def near_identity_maps_are_easier_with_skip_connections() -> Evidence:
    """Deep networks fit x + 0.1 sin x with a much smaller error with skip connections (Diehl sec. 1.6)."""
    x = torch.linspace(-3, 3, 64, dtype=torch.float64)[:, None]
    y = x + 0.1 * torch.sin(x)
    body = partial(mlp, (1, 16, 1), activation=tanh)
    errors = {}
    for name, block in (("plain", body), ("residual", lambda: Residual(body()))):
        torch.manual_seed(0)
        networks = [nn.Sequential(*(block() for _ in range(8))).double() for _ in range(6)]
        weights = {key: value.detach() for key, value in stack_module_state(networks)[0].items()}

        def loss(weights: dict[str, Tensor], network: nn.Module = networks[0]) -> Tensor:
            output: Tensor = functional_call(network, weights, (x,))
            return (output - y).square().mean()

        for _ in range(120):
            gradients = vmap(grad(loss))(weights)
            weights = {key: value - 0.01 * gradients[key] for key, value in weights.items()}
        errors[name] = vmap(loss)(weights)
    return all_of(
        with_skips=less_equal(errors["residual"].median(), 0.01),
        error_ratio=greater_equal(errors["plain"].median() / errors["residual"].median(), 50.0),
    )
