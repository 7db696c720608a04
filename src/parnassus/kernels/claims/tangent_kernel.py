"""Claims about the empirical tangent kernel: its gradients and algorithms (book sec. 15.4)."""

from functools import partial

import torch
from torch import Tensor, nn
from torch.func import jacrev

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.kernels.finite_width.backpropagation import (
    layer_weights,
    layerwise_ntk,
    network_outputs,
    propagate_signals,
    random_weights,
)
from parnassus.kernels.finite_width.empirical_ntk import empirical_ntk, full_empirical_ntk, jacobian_ntk
from parnassus.kernels.infinite_width.network import fully_connected
from parnassus.kernels.infinite_width.nonlinearity import ReLU
from parnassus.kernels.infinite_width.quadrature import Quadrature
from parnassus.probability import seeded_generator, standard_normal

PAIR = torch.tensor([[1.0, 0.0], [0.6, 0.8]], dtype=torch.float64)
"""Two unit vectors with cosine 0.6."""
TANH = Quadrature(torch.tanh)


def sample_weights(depth: int, width: int, draws: int, *, seed: int = 0) -> list[Tensor]:
    """Weights of many ReLU networks on the plane."""
    return random_weights((2, *[width] * depth, 1), draws=(draws,), generator=seeded_generator(seed))


@claim("B15.4-1", "B15.4-9")
def all_algorithms_for_the_tangent_kernel_agree() -> Evidence:
    """Formed gradients, factored gradients and the layerwise formula give the same PSD kernel (book sec. 15.4)."""
    torch.manual_seed(0)
    module = fully_connected(3, TANH).module((4,), 16).double()
    x = torch.randn(9, 4, dtype=torch.float64)
    plain = jacobian_ntk(module, x)[:, :, 0, 0]
    image_net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Tanh(), nn.Flatten(), nn.LayerNorm(36), nn.Linear(36, 2)).double()
    images = torch.randn(6, 1, 5, 5, dtype=torch.float64)
    return all_of(
        factors=close(empirical_ntk(module, x), plain, rtol=1e-10, atol=1e-12),
        in_blocks=close(empirical_ntk(module, x, block=4), plain, rtol=1e-10, atol=1e-12),
        layer_formula=close(
            layerwise_ntk(propagate_signals(layer_weights(module), x, TANH)), plain, rtol=1e-10, atol=1e-12
        ),
        convolution=close(
            full_empirical_ntk(image_net, images), jacobian_ntk(image_net, images), rtol=1e-10, atol=1e-11
        ),
        no_negative_eigenvalue=greater_equal(torch.linalg.eigvalsh(plain), -1e-12 * float(plain.trace())),
    )


@erratum("B15.4-1", printed="the tangent kernel is a correlation", right="an inner product: neither centred nor scaled")
def the_tangent_kernel_is_not_a_correlation() -> Correction:
    """A self-correlation is 1 and scale-invariant; K(x, x) is 2 and scales with the inputs (book sec. 15.4)."""
    weights = sample_weights(1, 64, 200)
    kernel = layerwise_ntk(propagate_signals(weights, PAIR, ReLU())).mean(0)
    twice = layerwise_ntk(propagate_signals(weights, 2 * PAIR, ReLU())).mean(0)
    return Correction(
        printed=all_of(
            unit_diagonal=close(kernel.diagonal(), 1.0, atol=0.1),
            scale_invariant=close(twice, kernel, rtol=0.1),
        ),
        corrected=all_of(
            diagonal_is_two=close(kernel.diagonal(), 2.0, atol=0.1),
            scales_with_the_inputs=close(twice, 4 * kernel, rtol=1e-12),
        ),
    )


@claim("B15.4-2")
def a_linear_model_has_a_constant_kernel() -> Evidence:
    """A model θᵀφ(x) has the kernel φ(x)ᵀφ(x') at every θ; a network's kernel changes (book eqs. 15.46-15.47)."""
    torch.manual_seed(0)
    features = torch.randn(7, 5, dtype=torch.float64)
    linear = nn.Linear(5, 1, bias=False).double()
    network = fully_connected(1, TANH).module((5,), 8).double()
    before = empirical_ntk(linear, features), empirical_ntk(network, features)
    with torch.no_grad():
        for parameter in [*linear.parameters(), *network.parameters()]:
            parameter.add_(torch.randn_like(parameter))
    after = empirical_ntk(linear, features), empirical_ntk(network, features)
    return all_of(
        features=close(before[0], features @ features.mT, rtol=1e-12, atol=1e-12),
        unchanged=close(after[0], before[0], rtol=1e-12, atol=1e-12),
        a_network_kernel_changes=greater_equal((after[1] - before[1]).norm() / before[1].norm(), 0.1),
    )


@claim("B15.4-8")
def the_backward_recursion_gives_the_gradients() -> Evidence:
    """On a 3-7-5-4-1 tanh network b^h (g^{h−1})ᵀ is ∂f/∂W^h, by autograd and differences (book eqs. 15.78-15.80)."""
    weights = random_weights((3, 7, 5, 4, 1), generator=seeded_generator())
    x = standard_normal(1, 3, seed=1)
    gradients = propagate_signals(weights, x, TANH).weight_gradients()
    exact = jacrev(lambda theta: network_outputs(theta, x, TANH)[0])(weights)
    step, errors = 1e-5, []
    for number, weight in enumerate(weights):
        differences = torch.zeros_like(weight)
        for index in range(weight.numel()):
            change = step * torch.eye(weight.numel(), dtype=torch.float64)[index].view_as(weight)
            ends = [
                network_outputs([*weights[:number], weight + sign * change, *weights[number + 1 :]], x, TANH)
                for sign in (1, -1)
            ]
            differences.view(-1)[index] = (ends[0] - ends[1])[0] / (2 * step)
        errors.append((differences - gradients[number][0]).abs().max())
    pairs = zip(gradients, exact, strict=True)
    return all_of(
        autograd=less_equal(torch.stack([(a[0] - b).abs().max() for a, b in pairs]), 1e-13),
        finite_differences=less_equal(torch.stack(errors), 1e-8),
    )


@erratum("B15.4-8", printed="eq. 15.76 sums i to d_{L−1}", right="to d_L: over the units of the layer above")
def the_backward_sum_runs_over_the_layer_above() -> Correction:
    """∂f/∂W^{L−1} sums over all d_L units of layer L, not over d_{L−1} (book eq. 15.76)."""
    weights = random_weights((3, 4, 6, 1), generator=seeded_generator())
    x = standard_normal(1, 3, seed=1)
    exact = jacrev(lambda theta: network_outputs(theta, x, TANH)[0])(weights)[0]
    backward_sum = partial(_backward_sum, weights, x)
    return Correction(
        printed=close(backward_sum(4), exact, rtol=1e-8), corrected=close(backward_sum(6), exact, rtol=1e-8, atol=1e-12)
    )


@erratum("B15.4-8", printed="W_i is the i-th column in eq. 15.74, as in eq. 15.68", right="the i-th row of W^L")
def a_unit_depends_on_a_row_of_the_weights() -> Correction:
    """Unit i of layer L is W_i g^{L−1} with the i-th row of W^L; in eq. 15.68 W_i is an entry (book eq. 15.74)."""
    weights = random_weights((3, 5, 5, 1), generator=seeded_generator())
    x = standard_normal(1, 3, seed=1)
    exact = jacrev(lambda theta: network_outputs(theta, x, TANH)[0])(weights)[0]
    transposed = [weights[0], weights[1].mT, weights[2]]
    return Correction(
        printed=close(_backward_sum(weights, x, 5, rows=transposed[1]), exact, rtol=1e-8),
        corrected=close(_backward_sum(weights, x, 5), exact, rtol=1e-8, atol=1e-12),
    )


@erratum("B15.4-8", printed="in eqs. 15.71 and 15.77 the last factor is 1 × d_L", right="1 × d_{L−1} and 1 × d_{L−2}")
def the_last_factor_has_the_length_of_the_layer_below() -> Correction:
    """(g^{L−1})ᵀ and (g^{L−2})ᵀ have the lengths of their layers; D Wᵀ is d_L × 1, not d_L × d_L (book eq. 15.71)."""
    sizes = (3, 7, 5, 4, 1)
    signals = propagate_signals(
        random_weights(sizes, generator=seeded_generator()), torch.zeros(1, 3, dtype=torch.float64), TANH
    )
    lengths = torch.tensor([part.shape[-1] for part in (signals.forward[2], signals.forward[1], signals.backward[2])])
    return Correction(
        printed=close(lengths, torch.tensor([4, 4, 16])), corrected=close(lengths, torch.tensor([5, 7, 4]))
    )


@claim("B15.4-9")
def inner_products_of_gradients_factorise() -> Evidence:
    """⟨b gᵀ, b'g'ᵀ⟩ = tr((b gᵀ)ᵀ b'g'ᵀ) = ⟨b, b'⟩⟨g, g'⟩, layer by layer at width 3 (book eqs. 15.81-15.86)."""
    signals = propagate_signals(random_weights((2, 3, 3, 1), generator=seeded_generator()), PAIR, TANH)
    entrywise, traces, factors = [], [], []
    for gradient, g, b in zip(signals.weight_gradients(), signals.forward, signals.backward, strict=True):
        entrywise.append((gradient[0] * gradient[1]).sum())
        traces.append((gradient[0].mT @ gradient[1]).trace())
        factors.append((b[0] @ b[1]) * (g[0] @ g[1]))
    return all_of(
        entries=close(torch.stack(entrywise), torch.stack(factors), rtol=1e-12, atol=1e-14),
        traces=close(torch.stack(traces), torch.stack(factors), rtol=1e-12, atol=1e-14),
    )


def _backward_sum(weights: list[Tensor], x: Tensor, terms: int, *, rows: Tensor | None = None) -> Tensor:
    """Eq. 15.76 for two hidden layers: Σ_i b_i^L √(c/d_{L−1}) D^{L−1} W_iᵀ (g^{L−2})ᵀ over `terms` units i."""
    signals = propagate_signals(weights, x, TANH)
    below = propagate_signals([*weights[:1], torch.ones_like(weights[0][:, 0])[None]], x, TANH).backward[0][
        0
    ]  # √(c/d) D · 1
    rows = weights[1] if rows is None else rows
    signal = sum(signals.backward[1][0, i] * below * rows[i] for i in range(terms))
    return torch.as_tensor(signal)[:, None] * x
