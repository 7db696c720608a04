"""What the text leaves open about neurons and layers: which σ, which b, which order (book secs. 1.2 and 2.2)."""

import torch
from torch import Tensor, nn

from parnassus.atlas import Correction, all_of, at_least, at_most, close, erratum, runs
from parnassus.layers.activations import relu, sigmoid, tanh
from parnassus.layers.claims.dense import normal
from parnassus.layers.dense import Dense, affine, mlp
from parnassus.layers.linear_regression import linear_model
from parnassus.layers.normalisation import BatchNorm, norm_after_activation, norm_before_activation


@erratum(
    "B1.2-7", printed="σ is applied to each element of wᵀx + b", right="to the number wᵀx + b; a layer has elements"
)
def one_neuron_has_no_elements() -> Correction:
    """Of one point wᵀx + b is a number, which cannot be gone through; of a layer Wᵀx + b is a vector (book eq. 1.3)."""
    x, w, b = normal(4), normal(4, seed=1), normal(1, seed=2)[0]
    layer = Dense(4, 3, activation=tanh).double()
    return Correction(
        printed=runs(lambda: [tanh(each) for each in linear_model(x, w, b)], unless=TypeError),
        corrected=all_of(
            a_number=close(linear_model(x, w, b).ndim, 0),
            neuron=close(tanh(linear_model(x, w, b)), tanh((w * x).sum() + b), atol=1e-14),
            layer=close(
                layer(x), torch.stack([tanh(each) for each in affine(x, layer.weight, layer.bias)]), atol=1e-14
            ),
        ),
    )


@erratum(
    "B1.2-11", printed="σ is both any activation and the sigmoid", right="σ any activation, sigmoid the logistic one"
)
def one_letter_for_two_things() -> Correction:
    """Set against tanh, σ means the logistic function; in a neuron it means any: the values differ (book sec. 1.2).

    Other curves of the shape of an S are not the logistic one either, though some are it in other units.
    """
    x = torch.linspace(-4, 4, 161, dtype=torch.float64)
    arctangent = torch.atan(torch.pi / 4 * x) / torch.pi + 0.5  # an S from 0 to 1, of slope ¼ at 0
    return Correction(
        printed=all_of(relu=close(relu(x), sigmoid(x), atol=0.1), tanh=close(tanh(x), sigmoid(x), atol=0.1)),
        corrected=all_of(
            logistic=close(sigmoid(x), 1 / (1 + torch.exp(-x)), atol=1e-14),
            tanh_in_other_units=close((1 + tanh(x / 2)) / 2, sigmoid(x), atol=1e-14),
            another_s=at_least((arctangent - sigmoid(x)).abs().max(), 0.05),
        ),
    )


@erratum("B1.2-14", printed="W_l ∈ ℝ^(n_{l−1} × n_l) and b ∈ ℝ^(n_l)", right="b_l ∈ ℝ^(n_l), one for each layer")
def a_bias_belongs_to_its_layer() -> Correction:
    """One b for all layers fits only where all are equally wide, and even there is another network (book sec. 1.2)."""
    torch.manual_seed(0)
    uneven, even = (mlp(sizes, activation=tanh, output=tanh).double() for sizes in ((5, 8, 3), (5, 5, 5)))
    x = normal(7, 5)

    def through(network: nn.Sequential, biases: tuple[str, str]) -> Tensor:
        h = x
        for layer, bias in enumerate(biases):
            h = tanh(h @ network.get_parameter(f"{layer}.weight") + network.get_parameter(bias))
        return h

    shared, own = ("0.bias", "0.bias"), ("0.bias", "1.bias")
    return Correction(
        printed=runs(lambda: through(uneven, shared), unless=RuntimeError),
        corrected=all_of(
            each_its_own=close(through(uneven, own), uneven(x), atol=1e-14),
            equally_wide_too=close(through(even, own), even(x), atol=1e-14),
            where_one_would_do=at_least((through(even, shared) - even(x)).abs().max(), 0.1),
        ),
    )


@erratum(
    "B2.2-2", printed="BN behind the ReLU or before it: no difference told", right="two functions: centred, or ≥ 0"
)
def the_order_of_normalisation_matters() -> Correction:
    """The listing has BN(relu(z)), the autoencoder of chapter 4 relu(BN(z)): not the same numbers (book sec. 2.2).

    Normalised last, each unit has mean 0 and variance 1 over the batch; normalised first, it is never negative, and of
    normal inputs half are 0, with mean 1/√(2π) and variance ½ − 1/(2π).
    """
    torch.manual_seed(0)
    last, first = norm_after_activation(30, 20).double(), norm_before_activation(30, 20).double()
    dense = last.get_submodule("0")
    first.load_state_dict(dense.state_dict(), strict=False)  # the same weights
    x = normal(20_000, 30)
    centred, positive = last(x).detach(), first(x).detach()
    mean = (2 * torch.pi) ** -0.5
    return Correction(
        printed=close(centred, positive, atol=0.1),
        corrected=all_of(
            last_has_mean_0=close(centred.mean(0), 0.0, atol=1e-9),
            last_has_variance_1=close(centred.var(0, correction=0), 1.0, atol=1e-3),
            last_goes_below_0=at_most(centred.amin(0), -0.5),
            first_is_never_negative=at_least(positive, 0.0),
            first_is_half_0=close((positive == 0).double().mean(0), 0.5, atol=0.03),
            first_has_mean=close(positive.mean(0), mean, atol=0.02),
            first_has_variance=close(positive.var(0), 0.5 - mean**2, atol=0.02),
            normalised_again_they_still_differ=at_least((BatchNorm(20).double()(positive) - centred).abs().max(), 0.1),
        ),
    )
