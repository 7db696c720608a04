"""Claims about the limit of the tangent kernel and the deviations of random networks (book sec. 15.4)."""

from math import prod

import torch
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal, rate
from parnassus.kernels.claims.tangent_kernel import PAIR, TANH, sample_weights
from parnassus.kernels.finite_width.backpropagation import layerwise_ntk, propagate_signals
from parnassus.kernels.infinite_width.layer_kernels import layer_kernels
from parnassus.kernels.infinite_width.network import fully_connected
from parnassus.kernels.infinite_width.nonlinearity import Erf, Nonlinearity, ReLU
from parnassus.probability import points_on_sphere


@claim("B15.4-10")
def backward_products_tend_to_products_of_derivative_covariances() -> Evidence:
    """⟨b^h(x), b^h(x')⟩ tends to Π Σ̇ at rate 1/√width, as does its independence assumption (book eqs. 15.89-15.94)."""
    limits = layer_kernels(2, ReLU(), PAIR).backward()[:, 0, 1]
    widths, errors, dependence = torch.tensor([24, 48, 96, 192]), [], []
    for width in widths.tolist():
        weights = sample_weights(2, width, 12_000 // width)
        signals = propagate_signals(weights, PAIR, ReLU())
        products = torch.stack([(b[:, 0] * b[:, 1]).sum(-1) for b in signals.backward], -1)
        errors.append((products / limits - 1)[:, :2].square().mean(0).sqrt())
        derivatives = (signals.forward[1] > 0).double().prod(1)
        independent = 2 / width * derivatives.sum(-1) * products[:, 1]  # eq. 15.90, averaged over W
        dependence.append((products[:, 0] / limits[0] - independent / limits[0]).square().mean().sqrt())
    return all_of(
        first_layer=rate(widths, torch.stack(errors)[:, 0], -0.5, atol=0.12),
        second_layer=rate(widths, torch.stack(errors)[:, 1], -0.5, atol=0.12),
        independence_assumption=rate(widths, torch.stack(dependence), -0.5, atol=0.12),
        relu=close(limits, _relu_products(2), rtol=1e-12),
    )


@erratum("B15.4-10", printed="Σ_k W'_ki b'_k in eq. 15.88", right="Σ_k W_ki b'_k: both inputs share the weights")
def both_inputs_share_the_weights() -> Correction:
    """With separate weights W' for x' the backward products would vanish instead of tending to Σ̇ (book eq. 15.88)."""
    weights, others = sample_weights(1, 64, 2_000), sample_weights(1, 64, 2_000, seed=1)
    backward = propagate_signals(weights, PAIR, ReLU()).backward[0]
    primed = propagate_signals([weights[0], others[1]], PAIR, ReLU()).backward[0]
    limit = layer_kernels(1, ReLU(), PAIR).backward()[0, 0, 1]
    return Correction(
        printed=close((backward[:, 0] * primed[:, 1]).sum(-1).mean(), limit, atol=0.03),
        corrected=close((backward[:, 0] * backward[:, 1]).sum(-1).mean(), limit, atol=0.03),
    )


@erratum("B15.4-10", printed="Π_{h'=h}^L Σ̇^{(h)}", right="Π_{h'=h}^L Σ̇^{(h')}, as in eq. 15.98")
def the_product_runs_over_the_layers() -> Correction:
    """⟨b¹(x), b¹(x')⟩ of three layers is Σ̇¹ Σ̇² Σ̇³, not the third power of Σ̇¹ (book eq. 15.94)."""
    kernels = layer_kernels(3, ReLU(), PAIR)
    first = propagate_signals(sample_weights(3, 64, 1_500), PAIR, ReLU()).backward[0]
    measured = (first[:, 0] * first[:, 1]).sum(-1).mean()
    return Correction(
        printed=close(measured, kernels.derivatives[0, 0, 1] ** 3, atol=0.03),
        corrected=close(measured, kernels.backward()[0, 0, 1], atol=0.03),
    )


@claim("B15.4-11")
def the_closed_form_equals_the_recursion() -> Evidence:
    """The sum over layers and Θ^l = Σ^l + Θ^{l−1} Σ̇^l agree; ReLU has K*(x, x) = L + 1 (book eq. 15.98)."""
    x = points_on_sphere(6, 3)
    parts: dict[str, Evidence] = {}
    nonlinearities: dict[str, Nonlinearity] = {"relu": ReLU(), "erf": Erf(), "tanh": TANH}
    for name, nonlinearity in nonlinearities.items():
        kernels = layer_kernels(4, nonlinearity, x)
        parts[f"{name}_recursion"] = close(kernels.ntk_by_recursion(), kernels.ntk(), rtol=1e-12)
        parts[f"{name}_network"] = close(fully_connected(4, nonlinearity).kernels(x).ntk, kernels.ntk(), rtol=1e-10)
    depths = range(1, 7)
    diagonals = torch.stack([layer_kernels(depth, ReLU(), x).ntk().diagonal() for depth in depths])
    pairs = torch.stack([layer_kernels(depth, ReLU(), PAIR).ntk()[0, 1] for depth in (1, 2, 3)])
    return all_of(
        **parts,
        diagonal=close(diagonals, torch.tensor(depths)[:, None] + 1.0, rtol=1e-7),
        at_cosine_six_tenths=close(pairs, torch.tensor([1.10045, 1.54442, 1.95229]), atol=1e-5),
    )


@claim("B15.4-11")
def the_mean_kernel_of_one_hidden_layer_is_the_limit() -> Evidence:
    """With one hidden layer E K = K* even for a single unit, and entries deviate by O(1/√width) (book sec. 15.4)."""
    limit = layer_kernels(1, ReLU(), PAIR).ntk()
    widths, z_scores, deviations = torch.tensor([1, 4, 16, 64, 256]), [], []
    for width in widths.tolist():
        kernels = layerwise_ntk(propagate_signals(sample_weights(1, width, 40_000 // width + 1_000), PAIR, ReLU()))
        z_scores.append((kernels.mean(0) - limit) / kernels.std(0) * len(kernels) ** 0.5)
        deviations.append(kernels.std(0)[0, 1])
    return all_of(
        mean_in_standard_errors=less_equal(torch.stack(z_scores).abs(), 4.0),
        deviation=rate(widths, torch.stack(deviations), -0.5, atol=0.05),
    )


@claim("B15.4-11")
def deep_kernels_are_biased_by_one_over_width() -> Evidence:
    """For L = 3 the mean of K(x, x') exceeds K* by O(1/width), while E K(x, x) = L + 1 exactly (book sec. 15.4)."""
    limit = layer_kernels(3, ReLU(), PAIR).ntk()[0, 1]
    widths, biases, z_scores = torch.tensor([8, 16, 32]), [], []
    for width, draws in zip(widths.tolist(), (20_000, 10_000, 6_000), strict=True):
        kernels = layerwise_ntk(propagate_signals(sample_weights(3, width, draws), PAIR, ReLU()))
        diagonal = kernels.diagonal(dim1=1, dim2=2).mean(1) - 4
        z_scores.append(diagonal.mean() / diagonal.std() * draws**0.5)
        entry = kernels[:, 0, 1]
        cov = torch.cov(torch.stack([entry, diagonal]))  # the diagonal, of known mean, is a control variate
        biases.append(entry.mean() - cov[0, 1] / cov[1, 1] * diagonal.mean() - limit)
    return all_of(
        known_biases=close(torch.stack(biases)[::2], torch.tensor([0.194, 0.057]), atol=0.03),
        bias=rate(widths, torch.stack(biases), -1.0, atol=0.3),
        diagonal_in_standard_errors=less_equal(torch.stack(z_scores).abs(), 4.0),
    )


@claim("B15.4-11")
def relu_and_erf_kernels_without_a_bias_are_singular_on_a_line() -> Evidence:
    """On the line a ReLU network without biases has a kernel of rank 2, on the circle full rank (book sec. 15.4)."""
    line = torch.linspace(-2, 2, 8, dtype=torch.float64)[:, None]
    angle = torch.arange(8, dtype=torch.float64) * 0.7  # no two of them opposite each other
    circle = torch.stack([angle.cos(), angle.sin()], 1)
    ranks = [torch.linalg.matrix_rank(layer_kernels(depth, ReLU(), line).ntk(), rtol=1e-6) for depth in (1, 2, 3)]
    odd = layer_kernels(1, Erf(), torch.cat([circle[:3], -circle[:3]])).ntk()
    return all_of(
        on_the_line=close(torch.stack(ranks), torch.tensor([2, 2, 2])),
        on_the_circle=greater_equal(torch.linalg.eigvalsh(layer_kernels(1, ReLU(), circle).ntk())[0], 0.001),
        odd_functions=less_equal(torch.linalg.eigvalsh(odd)[0].abs(), 1e-12),
    )


def _relu_products(depth: int) -> Tensor:
    """Π_{k=h}^L (π − θ_k)/π from the angles θ_k alone."""
    cosines = [torch.tensor(0.6, dtype=torch.float64)]
    derivatives = []
    for _ in range(depth):
        angle = torch.acos(cosines[-1])
        derivatives.append((torch.pi - angle) / torch.pi)
        cosines.append((angle.sin() + (torch.pi - angle) * angle.cos()) / torch.pi)
    return torch.stack(
        [torch.as_tensor(prod(derivatives[h:])) for h in range(depth)] + [torch.ones((), dtype=torch.float64)]
    )
