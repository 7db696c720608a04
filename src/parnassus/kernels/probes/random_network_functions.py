"""Functions of random networks of adjustable width, depth, σ and bias, and their limit (book secs. 15.2, 15.3)."""

from typing import Annotated

import torch
from torch import Tensor

from parnassus.atlas.decorators import probe
from parnassus.kernels.gaussian_processes.process import GaussianProcess
from parnassus.kernels.infinite_width.network import Network, fully_connected
from parnassus.kernels.infinite_width.nngp_and_ntk import NNGP
from parnassus.kernels.infinite_width.nonlinearity import GELU, Cosine, Erf, Nonlinearity, ReLU, Sine
from parnassus.widgets import Answer, Curves, FloatSlider, IntSlider, Numbers, Select

SIGMAS: dict[str, Nonlinearity] = {"ReLU": ReLU(), "GELU": GELU(), "erf": Erf(), "sin": Sine(), "cos": Cosine()}
NUM_FUNCTIONS, NUM_STATISTICS = 6, 200
LINE = torch.linspace(-3, 3, 81, dtype=torch.float64)


@probe()
@torch.no_grad()
def random_network_functions(
    width: Annotated[int, IntSlider("width", 1, 256)] = 4,
    depth: Annotated[int, IntSlider("hidden layers, L", 1, 4)] = 1,
    sigma: Annotated[int, Select("nonlinearity σ", tuple(SIGMAS))] = 0,
    bias: Annotated[float, FloatSlider("variance of the biases", 0.0, 2.0)] = 0.3,
    seed: Annotated[int, IntSlider("random seed", 0, 99)] = 0,
) -> list[Answer]:
    """Functions of random networks of finite width and samples of their limit (book secs. 15.2, 15.3).

    Start with four ReLU units: every function has four kinks. With growing width the functions approach the limit,
    while the band of two standard deviations is exact at every width for one hidden layer. Without a bias, ReLU
    functions of one input consist of two rays, and odd σ give odd functions, at every width.
    """
    network = fully_connected(depth, list(SIGMAS.values())[sigma], bias_variance=bias)
    covariance = network.nngp(LINE[:, None])
    deviation = covariance.diagonal().sqrt()
    generator = torch.Generator().manual_seed(seed)
    limit = GaussianProcess(NNGP(network)).sample(LINE[:, None], NUM_FUNCTIONS, generator=generator).values
    finite = sample_functions(network, width, NUM_FUNCTIONS, seed)
    count = NUM_STATISTICS if width <= 16 else NUM_STATISTICS // 4
    ends = sample_functions(network, width, count, seed, LINE[-1:])[:, 0] / deviation[-1]
    numbers: dict[str, float | str] = {
        "variance at x = 3, networks / limit": float(ends.square().mean()),
        "excess kurtosis at x = 3, networks": float(ends.pow(4).mean() / ends.square().mean().square() - 3),
        "networks sampled": float(len(ends)),
        "rank of the limit's covariance": float((torch.linalg.eigvalsh(covariance) > 1e-6).sum()),
    }
    about = "The kurtosis is a rough estimate from few networks; that of the limit is 0."
    band = "Outer lines: ± two standard deviations of the limit."
    return [
        Curves(f"Networks of width {width}", _lines(finite, deviation), x_label="x", y_label="f(x)", about=band),
        Curves("The limit", _lines(limit, deviation), x_label="x", y_label="f(x)"),
        Numbers("Statistics", numbers, about=about),
    ]


def sample_functions(network: Network, width: int, count: int, seed: int, x: Tensor = LINE) -> Tensor:
    """Values of `count` random networks at x, (count, points)."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return torch.stack([network.module((1,), width).double()(x[:, None])[:, 0] for _ in range(count)])


def _lines(values: Tensor, deviation: Tensor) -> dict[str, tuple[list[float], list[float]]]:
    x = LINE.tolist()
    lines = {f"function {number}": (x, value.tolist()) for number, value in enumerate(values, 1)}
    band = {f"{sign}2 std": (x, (factor * deviation).tolist()) for sign, factor in (("+", 2), ("−", -2))}
    return {**lines, **band}
