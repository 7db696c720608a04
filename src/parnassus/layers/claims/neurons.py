"""Errata on neurons and layers: activation σ, biases b_l, order of normalisation and ReLU (book secs. 1.2, 2.2)."""

import torch
from torch import Tensor, nn

from parnassus.atlas import Correction, all_of, close, erratum, greater_equal, less_equal, runs
from parnassus.layers.activations import relu, sigmoid, tanh
from parnassus.layers.dense import Dense, affine, mlp
from parnassus.layers.linear_models.linear_regression import linear_model
from parnassus.layers.normalisation import BatchNorm, norm_after_activation, norm_before_activation
from parnassus.probability import standard_normal


@erratum(
    "B1.2-7",
    printed="σ is applied to each element of wᵀx + b",
    right="σ is applied to the scalar wᵀx + b; only a layer has elements",
)
def a_neuron_has_a_scalar_pre_activation() -> Correction:
    """wᵀx + b of a neuron is a scalar without elements; Wᵀx + b of a layer is a vector (book eq. 1.3)."""
    x, w, b = standard_normal(4), standard_normal(4, seed=1), standard_normal(1, seed=2)[0]
    layer = Dense(4, 3, activation=tanh).double()
    return Correction(
        printed=runs(lambda: [tanh(each) for each in linear_model(x, w, b)], unless=TypeError),
        corrected=all_of(
            scalar=close(linear_model(x, w, b).ndim, 0),
            neuron=close(tanh(linear_model(x, w, b)), tanh((w * x).sum() + b), atol=1e-14),
            layer=close(
                layer(x), torch.stack([tanh(each) for each in affine(x, layer.weight, layer.bias)]), atol=1e-14
            ),
        ),
    )


@erratum(
    "B1.2-11",
    printed="σ is both any activation and the sigmoid",
    right="σ any activation, sigmoid the logistic function",
)
def sigma_denotes_two_functions() -> Correction:
    """σ denotes the logistic function next to tanh, but any activation in a neuron: values differ (book sec. 1.2).

    Other S-shaped functions are not logistic either, though some are rescaled logistic functions (tanh).
    """
    x = torch.linspace(-4, 4, 161, dtype=torch.float64)
    arctangent = torch.atan(torch.pi / 4 * x) / torch.pi + 0.5  # sigmoidal from 0 to 1, with slope ¼ at 0
    return Correction(
        printed=all_of(relu=close(relu(x), sigmoid(x), atol=0.1), tanh=close(tanh(x), sigmoid(x), atol=0.1)),
        corrected=all_of(
            logistic=close(sigmoid(x), 1 / (1 + torch.exp(-x)), atol=1e-14),
            rescaled_tanh=close((1 + tanh(x / 2)) / 2, sigmoid(x), atol=1e-14),
            arctangent_differs=greater_equal((arctangent - sigmoid(x)).abs().max(), 0.05),
        ),
    )


@erratum("B1.2-14", printed="W_l ∈ ℝ^(n_{l−1} × n_l) and b ∈ ℝ^(n_l)", right="b_l ∈ ℝ^(n_l), one per layer")
def every_layer_has_its_own_bias() -> Correction:
    """A bias shared by all layers requires equal widths, and even then changes the network (book sec. 1.2)."""
    torch.manual_seed(0)
    uneven, even = (mlp(sizes, activation=tanh, output=tanh).double() for sizes in ((5, 8, 3), (5, 5, 5)))
    x = standard_normal(7, 5)

    def forward(network: nn.Sequential, biases: tuple[str, str]) -> Tensor:
        h = x
        for layer, bias in enumerate(biases):
            h = tanh(h @ network.get_parameter(f"{layer}.weight") + network.get_parameter(bias))
        return h

    shared, own = ("0.bias", "0.bias"), ("0.bias", "1.bias")
    return Correction(
        printed=runs(lambda: forward(uneven, shared), unless=RuntimeError),
        corrected=all_of(
            own_biases=close(forward(uneven, own), uneven(x), atol=1e-14),
            own_biases_equal_widths=close(forward(even, own), even(x), atol=1e-14),
            shared_bias_differs=greater_equal((forward(even, shared) - even(x)).abs().max(), 0.1),
        ),
    )


@erratum("B2.2-2", printed="BN after or before the ReLU, without distinction", right="two functions: centred, or ≥ 0")
def the_order_of_normalisation_matters() -> Correction:
    """BN(relu(z)) of the listing and relu(BN(z)) of the autoencoder (ch. 4) are different functions (book sec. 2.2).

    With BN last, each unit has mean 0 and variance 1 over the batch; with BN first, it is non-negative, and for
    normal inputs half of the values are 0, with mean 1/√(2π) and variance ½ − 1/(2π).
    """
    torch.manual_seed(0)
    last, first = norm_after_activation(30, 20).double(), norm_before_activation(30, 20).double()
    dense = last.get_submodule("0")
    first.load_state_dict(dense.state_dict(), strict=False)  # the same weights
    x = standard_normal(20_000, 30)
    centred, positive = last(x).detach(), first(x).detach()
    mean = (2 * torch.pi) ** -0.5
    return Correction(
        printed=close(centred, positive, atol=0.1),
        corrected=all_of(
            last_has_mean_0=close(centred.mean(0), 0.0, atol=1e-9),
            last_has_variance_1=close(centred.var(0, correction=0), 1.0, atol=1e-3),
            last_has_negative_values=less_equal(centred.amin(0), -0.5),
            first_is_non_negative=greater_equal(positive, 0.0),
            first_has_half_zeros=close((positive == 0).double().mean(0), 0.5, atol=0.03),
            first_has_mean=close(positive.mean(0), mean, atol=0.02),
            first_has_variance=close(positive.var(0), 0.5 - mean**2, atol=0.02),
            normalising_again_does_not_agree=greater_equal(
                (BatchNorm(20).double()(positive) - centred).abs().max(), 0.1
            ),
        ),
    )
