"""Claims about wide networks of images: convolution, pooling, skips and attention, beyond the text (book sec. 15.3)."""

import torch
from torch import Tensor
from torch.func import functional_call, jacrev, stack_module_state, vmap

from parnassus.atlas import Evidence, all_of, at_least, at_most, claim, close, rate
from parnassus.kernels.attention import Attention
from parnassus.kernels.convolution import Convolution
from parnassus.kernels.layer import Activation, Dense, Layer
from parnassus.kernels.network import Network
from parnassus.kernels.nonlinearity import ReLU
from parnassus.kernels.pair import Pair
from parnassus.kernels.pooling import Flatten, GlobalAveragePooling
from parnassus.kernels.residual import Residual

RELU = Activation(ReLU())
WIDTHS = (8, 16, 32, 64)


def images(count: int = 3, *, side: int = 4) -> Tensor:
    return torch.randn(count, 2, side, side, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def body(*, circular: bool = False) -> tuple[Layer, ...]:
    """Two convolutions, each with its rectifier."""
    convolution = Convolution(3, 2.0, 0.1, circular=circular)
    return (convolution, RELU, convolution, RELU)


@claim("B15.3-4")
def without_pooling_images_meet_place_by_place() -> Evidence:
    """Flattened, a wide CNN's covariance is the mean over places p of Σ(p, p), no others (book sec. 15.3)."""
    x = images()
    same = Network(body()).kernel(Pair.of_inputs(x, x)).nngp
    every = Network(body()).kernel(Pair.of_inputs(x, x, every_place=True)).nngp
    flat = Network((*body(), Flatten())).nngp(x)
    return all_of(
        mean_over_places=close(flat, same.mean((2, 3)), rtol=1e-12),
        diagonal_of_all_pairs=close(torch.einsum("nmhwhw->nmhw", every), same, rtol=1e-12),
    )


@claim("B15.3-4", "B15.4-11")
def pooling_averages_over_all_pairs_of_places() -> Evidence:
    """Pooled over the image, both kernels are means over all pairs of places p, p' of those before (book sec. 15.3)."""
    x = images()
    before = Network(body()).kernel(Pair.of_inputs(x, x, every_place=True))
    pooled = Network((*body(), GlobalAveragePooling())).kernels(x)
    assert before.ntk is not None
    return all_of(
        nngp=close(pooled.nngp, before.nngp.mean((2, 3, 4, 5)), rtol=1e-12),
        ntk=close(pooled.ntk, before.ntk.mean((2, 3, 4, 5)), rtol=1e-9),
    )


@claim("B15.3-4", "B15.4-11")
def pooling_and_a_border_without_end_forget_where_things_are() -> Evidence:
    """With circular padding and global pooling a moved image is the same; flattened it is not (book sec. 15.3)."""
    x, y = images()[:1], images()[1:]
    moved = x.roll((1, 2), (2, 3))
    pooled = Network((*body(circular=True), GlobalAveragePooling(), Dense()))
    flat = Network((*body(circular=True), Flatten(), Dense()))
    bordered = Network((*body(), GlobalAveragePooling(), Dense()))
    return all_of(
        nngp=close(pooled.kernels(moved, y).nngp, pooled.kernels(x, y).nngp, rtol=1e-12),
        ntk=close(pooled.kernels(moved, y).ntk, pooled.kernels(x, y).ntk, rtol=1e-12),
        with_itself=close(pooled.nngp(x, moved), pooled.nngp(x), rtol=1e-12),
        flattened=at_least((flat.nngp(moved, y) / flat.nngp(x, y) - 1).abs().max(), 0.02),
        with_zeros_around=at_least((bordered.nngp(moved, y) / bordered.nngp(x, y) - 1).abs().max(), 1e-4),
    )


@claim("B15.3-4", "B15.4-11")
def a_skip_adds_kernels() -> Evidence:
    """For g + body(g) with fresh weights at the body's end Σ and Θ add, and wide modules agree (book sec. 15.3)."""
    x = images()
    inner = Network((RELU, Convolution(3, 2.0)))
    stem = Convolution(3, 1.0)
    before = stem.kernel(Pair.of_inputs(x, x, every_place=True))
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
        modules=at_most((measured - limit).abs().max() / limit.max(), 0.04),
        body_alone=at_least((measured - alone).abs().max() / limit.max(), 0.3),
    )


@claim("B15.3-4", "B15.4-11")
def random_convolutional_networks_scatter_less_the_wider_they_are() -> Evidence:
    """Both kernels of random CNNs of finite width scatter around their limits by c / √width (book sec. 15.4)."""
    torch.manual_seed(0)
    x = images(2)
    network = Network((*body(), GlobalAveragePooling(), Dense(2.0)))
    limit = network.kernels(x)
    spread: dict[str, list[Tensor]] = {"nngp": [], "ntk": []}
    for width in WIDTHS:
        nngp, ntk = _random_kernels(network, x, width=width, draws=60)
        spread["nngp"].append((nngp - limit.nngp).square().mean().sqrt())
        spread["ntk"].append((ntk - limit.ntk).square().mean().sqrt())
    widths = torch.tensor(WIDTHS, dtype=torch.float64)
    return all_of(
        nngp=rate(widths, torch.stack(spread["nngp"]), -0.5, atol=0.15),
        ntk=rate(widths, torch.stack(spread["ntk"]), -0.5, atol=0.15),
    )


@claim("B15.3-4", "B15.4-11")
def attention_with_scores_divided_by_the_width_is_a_gaussian_process() -> Evidence:
    """Tied queries and keys, scores by 1/d: scores settle at rate 1/√d, and Σ ← A Σ Aᵀ (book sec. 15.3)."""
    torch.manual_seed(0)
    x = images(2)
    network = Network((Attention(score=lambda scores: scores.softmax(-1)), Flatten()))
    limit = network.nngp(x)
    places = x.flatten(2).mT
    target = places @ places.mT / 2
    scatter = []
    for width in WIDTHS:
        query = places @ torch.randn(200, 1, 2, width, dtype=x.dtype) / 2**0.5
        scatter.append((query @ query.mT / width - target).square().mean().sqrt())
    measured = _mean_products(network, x, width=512, draws=40)
    return all_of(
        scores=rate(torch.tensor(WIDTHS, dtype=x.dtype), torch.stack(scatter), -0.5, atol=0.05),
        modules=at_most((measured - limit).abs().max() / limit.max(), 0.03),
    )


def _random_kernels(network: Network, x: Tensor, *, width: int, draws: int) -> tuple[Tensor, Tensor]:
    """Of `draws` random modules with one output, all at once: products of its last features, and tangent kernels."""
    modules = [network.module(tuple(x.shape[1:]), width).double() for _ in range(draws)]
    states, _ = stack_module_state(modules)

    def output(state: dict[str, Tensor]) -> Tensor:
        value: Tensor = functional_call(modules[0], state, (x,))[:, 0]
        return value

    slopes: dict[str, Tensor] = vmap(jacrev(output))(states)
    products = {name: slope.flatten(2) @ slope.flatten(2).mT for name, slope in slopes.items()}
    last = list(modules[0].state_dict())[-1]  # the slope by the last weights is the features, scaled as they enter
    return products[last], torch.stack(list(products.values())).sum(0)


def _mean_products(network: Network, x: Tensor, *, width: int, draws: int) -> Tensor:
    """⟨f(x), f(x')⟩ / units, a mean over random modules with so many channels everywhere."""
    torch.manual_seed(0)
    total = torch.zeros(len(x), len(x), dtype=x.dtype)
    for _ in range(draws):
        with torch.no_grad():
            out = network.module(tuple(x.shape[1:]), width, outputs=width).double()(x)
        total += out @ out.mT / out.shape[1] / draws
    return total
