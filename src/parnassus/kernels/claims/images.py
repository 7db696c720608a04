"""Claims about wide image networks: convolution, pooling, residuals, attention (extends book sec. 15.3)."""

import torch
from torch import Tensor
from torch.func import functional_call, jacrev, stack_module_state, vmap

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal, rate
from parnassus.kernels.infinite_width.attention import Attention
from parnassus.kernels.infinite_width.convolution import Convolution
from parnassus.kernels.infinite_width.kernel_state import KernelState
from parnassus.kernels.infinite_width.layer import Activation, Dense, Layer
from parnassus.kernels.infinite_width.network import Network
from parnassus.kernels.infinite_width.nonlinearity import ReLU
from parnassus.kernels.infinite_width.pooling import Flatten, GlobalAveragePooling
from parnassus.kernels.infinite_width.residual import Residual
from parnassus.probability import standard_normal

RELU = Activation(ReLU())
WIDTHS = (8, 16, 32, 64)


def images(count: int = 3, *, side: int = 4) -> Tensor:
    return standard_normal(count, 2, side, side)


def body(*, circular: bool = False) -> tuple[Layer, ...]:
    """Two convolutions, each followed by a ReLU."""
    convolution = Convolution(3, 2.0, 0.1, circular=circular)
    return (convolution, RELU, convolution, RELU)


@claim("B15.3-4")
def without_pooling_only_equal_positions_contribute() -> Evidence:
    """With flattening, a wide CNN's covariance is the mean over positions p of Σ(p, p) only (book sec. 15.3)."""
    x = images()
    same = Network(body()).kernel(KernelState.from_inputs(x, x)).nngp
    every = Network(body()).kernel(KernelState.from_inputs(x, x, all_positions=True)).nngp
    flat = Network((*body(), Flatten())).nngp(x)
    return all_of(
        mean_over_positions=close(flat, same.mean((2, 3)), rtol=1e-12),
        diagonal_of_all_pairs=close(torch.einsum("nmhwhw->nmhw", every), same, rtol=1e-12),
    )


@claim("B15.3-4", "B15.4-11")
def pooling_averages_over_all_pairs_of_positions() -> Evidence:
    """After global pooling both kernels are means over all pairs of positions p, p' (book sec. 15.3)."""
    x = images()
    before = Network(body()).kernel(KernelState.from_inputs(x, x, all_positions=True))
    pooled = Network((*body(), GlobalAveragePooling())).kernels(x)
    assert before.ntk is not None
    return all_of(
        nngp=close(pooled.nngp, before.nngp.mean((2, 3, 4, 5)), rtol=1e-12),
        ntk=close(pooled.ntk, before.ntk.mean((2, 3, 4, 5)), rtol=1e-9),
    )


@claim("B15.3-4", "B15.4-11")
def circular_padding_and_global_pooling_give_translation_invariance() -> Evidence:
    """Circular padding and global pooling give translation-invariant kernels; flattening does not (book sec. 15.3)."""
    x, y = images()[:1], images()[1:]
    shifted = x.roll((1, 2), (2, 3))
    pooled = Network((*body(circular=True), GlobalAveragePooling(), Dense()))
    flat = Network((*body(circular=True), Flatten(), Dense()))
    padded = Network((*body(), GlobalAveragePooling(), Dense()))
    return all_of(
        nngp=close(pooled.kernels(shifted, y).nngp, pooled.kernels(x, y).nngp, rtol=1e-12),
        ntk=close(pooled.kernels(shifted, y).ntk, pooled.kernels(x, y).ntk, rtol=1e-12),
        with_itself=close(pooled.nngp(x, shifted), pooled.nngp(x), rtol=1e-12),
        flattened=greater_equal((flat.nngp(shifted, y) / flat.nngp(x, y) - 1).abs().max(), 0.02),
        with_zero_padding=greater_equal((padded.nngp(shifted, y) / padded.nngp(x, y) - 1).abs().max(), 1e-4),
    )


@claim("B15.3-4", "B15.4-11")
def residual_connections_add_kernels() -> Evidence:
    """For g + body(g) with weights at the end of the body, Σ and Θ add, and wide modules agree (book sec. 15.3)."""
    x = images()
    inner = Network((RELU, Convolution(3, 2.0)))
    stem = Convolution(3, 1.0)
    before = stem.kernel(KernelState.from_inputs(x, x, all_positions=True))
    after, added = Residual(inner).kernel(before), inner.kernel(before)
    assert before.ntk is not None
    assert after.ntk is not None
    assert added.ntk is not None
    network = Network((stem, Residual(inner), Flatten()))
    limit, alone = network.nngp(x), Network((stem, *inner.layers, Flatten())).nngp(x)
    measured = _mean_products(network, x, width=256, draws=20)
    return all_of(
        nngp=close(after.nngp, before.nngp + added.nngp, rtol=1e-12),
        ntk=close(after.ntk, before.ntk + added.ntk, rtol=1e-12),
        modules=less_equal((measured - limit).abs().max() / limit.max(), 0.04),
        body_alone=greater_equal((measured - alone).abs().max() / limit.max(), 0.3),
    )


@claim("B15.3-4", "B15.4-11")
def kernels_of_random_cnns_deviate_by_one_over_the_root_of_the_width() -> Evidence:
    """Both kernels of random CNNs deviate from their limits by O(1/√width) (book sec. 15.4)."""
    torch.manual_seed(0)
    x = images(2)
    network = Network((*body(), GlobalAveragePooling(), Dense(2.0)))
    limit = network.kernels(x)
    deviations: dict[str, list[Tensor]] = {"nngp": [], "ntk": []}
    for width in WIDTHS:
        nngp, ntk = _random_kernels(network, x, width=width, draws=60)
        deviations["nngp"].append((nngp - limit.nngp).square().mean().sqrt())
        deviations["ntk"].append((ntk - limit.ntk).square().mean().sqrt())
    widths = torch.tensor(WIDTHS, dtype=torch.float64)
    return all_of(
        nngp=rate(widths, torch.stack(deviations["nngp"]), -0.5, atol=0.15),
        ntk=rate(widths, torch.stack(deviations["ntk"]), -0.5, atol=0.15),
    )


@claim("B15.3-4", "B15.4-11")
def attention_with_scores_divided_by_the_width_is_a_gaussian_process() -> Evidence:
    """Tied queries and keys, scores scaled by 1/d: they converge at rate 1/√d and Σ ← A Σ Aᵀ (book sec. 15.3)."""
    torch.manual_seed(0)
    x = images(2)
    network = Network((Attention(score=lambda scores: scores.softmax(-1)), Flatten()))
    limit = network.nngp(x)
    inputs = x.flatten(2).mT
    target = inputs @ inputs.mT / 2
    deviations = []
    for width in WIDTHS:
        query = inputs @ torch.randn(200, 1, 2, width, dtype=x.dtype) / 2**0.5
        deviations.append((query @ query.mT / width - target).square().mean().sqrt())
    measured = _mean_products(network, x, width=512, draws=40)
    return all_of(
        scores=rate(torch.tensor(WIDTHS, dtype=x.dtype), torch.stack(deviations), -0.5, atol=0.05),
        modules=less_equal((measured - limit).abs().max() / limit.max(), 0.03),
    )


def _random_kernels(network: Network, x: Tensor, *, width: int, draws: int) -> tuple[Tensor, Tensor]:
    """NNGP (products of last-layer features) and tangent kernels of `draws` random modules with one output."""
    modules = [network.module(tuple(x.shape[1:]), width).double() for _ in range(draws)]
    states, _ = stack_module_state(modules)

    def output(state: dict[str, Tensor]) -> Tensor:
        value: Tensor = functional_call(modules[0], state, (x,))[:, 0]
        return value

    gradients: dict[str, Tensor] = vmap(jacrev(output))(states)
    products = {name: gradient.flatten(2) @ gradient.flatten(2).mT for name, gradient in gradients.items()}
    last = list(modules[0].state_dict())[-1]  # the gradient of the last weights is the scaled features
    return products[last], torch.stack(list(products.values())).sum(0)


def _mean_products(network: Network, x: Tensor, *, width: int, draws: int) -> Tensor:
    """⟨f(x), f(x')⟩ / units, averaged over random modules of this width."""
    torch.manual_seed(0)
    total = torch.zeros(len(x), len(x), dtype=x.dtype)
    for _ in range(draws):
        with torch.no_grad():
            out = network.module(tuple(x.shape[1:]), width, outputs=width).double()(x)
        total += out @ out.mT / out.shape[1] / draws
    return total
