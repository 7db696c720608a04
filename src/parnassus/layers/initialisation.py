"""Random initialisation with a scale that preserves the variance of signals (book sec. 3.4, Zhao sec. 5).

Each initialiser fills a weight (inputs × outputs) and sets the bias to 0: pass it as `Dense(…, initialise=…)`.
"""

from math import sqrt

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.errors import check_positive
from parnassus.layers.activations import Activation, identity, leaky_relu, relu, sigmoid, tanh
from parnassus.layers.dense import Initialiser
from parnassus.probability import normal_density


def leaky_relu_gain(alpha: float = 0.01) -> float:
    """√(2 / (1 + α²)); with α = 0 it is ReLU's √2."""
    return sqrt(2 / (1 + alpha**2))


GAINS: dict[Activation, float] = {
    identity: 1.0,
    sigmoid: 1.0,
    tanh: 5 / 3,
    relu: sqrt(2),
    leaky_relu: leaky_relu_gain(),
    torch.selu: 3 / 4,
}
"""torch's gains, to which the text refers (book sec. 3.4).

Not all of them preserve the variance: see `variance_preserving_gain`.
"""


def variance_preserving_gain(activation: Activation) -> float:
    """1 / √E[σ(z)²] for z ~ N(0, 1), the gain that preserves a second moment of 1 from layer to layer.

    E z_out² = n · gain²/n · E σ(z_in)². Equal to √2 for ReLU and 1 for the identity, but 1.59 for tanh (torch: 5/3),
    1.85 for the sigmoid (torch: 1) and 1 for SELU (torch: ¾).
    """
    z = torch.linspace(-12, 12, 24_001, dtype=torch.float64)
    density = normal_density(z, mean=0.0, variance=1.0)
    return 1 / sqrt(float(torch.trapezoid(activation(z).square() * density, z)))


def xavier_variance(inputs: int, outputs: int, gain: float = 1.0) -> float:
    """gain² · 2 / (inputs + outputs), a compromise of 1/inputs for values and 1/outputs for gradients.

    (book sec. 3.4, Zhao sec. 5; the book omits the square.)
    """
    check_positive(gain=gain)
    return gain**2 * 2 / (inputs + outputs)


def he_variance(inputs: int, gain: float = sqrt(2)) -> float:
    """gain² / inputs, which preserves the second moment of the values; √2 is ReLU's gain (book sec. 3.4)."""
    check_positive(gain=gain)
    return gain**2 / inputs


def normal_initialiser(std: float) -> Initialiser:
    """Weights from N(0, std²), independent of the layer size (Zhao sec. 5)."""
    check_positive(std=std)
    return lambda weight, bias: _fill_normal(weight, bias, std**2)


def xavier_normal(gain: float = 1.0) -> Initialiser:
    """Weights from N(0, gain² · 2 / (inputs + outputs)) (book sec. 3.4)."""
    check_positive(gain=gain)
    return lambda weight, bias: _fill_normal(weight, bias, xavier_variance(len(weight), len(bias), gain))


def xavier_uniform(gain: float = 1.0) -> Initialiser:
    """Uniform weights with the variance of `xavier_normal`: on ± gain √(6 / (inputs + outputs)) (Zhao sec. 5)."""
    check_positive(gain=gain)
    return lambda weight, bias: _fill_uniform(weight, bias, xavier_variance(len(weight), len(bias), gain))


def he_normal(gain: float = sqrt(2)) -> Initialiser:
    """Weights from N(0, gain² / inputs); with inputs = outputs the same as `xavier_normal` (book sec. 3.4)."""
    check_positive(gain=gain)
    return lambda weight, bias: _fill_normal(weight, bias, he_variance(len(weight), gain))


def he_uniform(gain: float = sqrt(2)) -> Initialiser:
    """Uniform weights with the variance of `he_normal`: on ± gain √(3 / inputs) (book sec. 3.4)."""
    check_positive(gain=gain)
    return lambda weight, bias: _fill_uniform(weight, bias, he_variance(len(weight), gain))


def zero_initialiser(weight: Float[Tensor, "inputs outputs"], bias: Float[Tensor, " outputs"]) -> None:
    """Weights and biases 0, as for a layer that is set by hand or a branch that starts as the zero function."""
    nn.init.zeros_(weight)
    nn.init.zeros_(bias)


def initialise_linear_layers(network: nn.Module, initialise: Initialiser) -> None:
    """Initialise every `nn.Linear` of the network; torch stores its weights as outputs × inputs."""
    for module in network.modules():
        if isinstance(module, nn.Linear):
            bias = module.weight.new_empty(module.out_features) if module.bias is None else module.bias
            initialise(module.weight.mT, bias)


def _fill_normal(weight: Float[Tensor, "inputs outputs"], bias: Float[Tensor, " outputs"], variance: float) -> None:
    nn.init.normal_(weight, std=sqrt(variance))
    nn.init.zeros_(bias)


def _fill_uniform(weight: Float[Tensor, "inputs outputs"], bias: Float[Tensor, " outputs"], variance: float) -> None:
    bound = sqrt(3 * variance)
    nn.init.uniform_(weight, -bound, bound)
    nn.init.zeros_(bias)
