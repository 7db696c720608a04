"""Functions of random networks under the hand: width, depth, σ and bias, beside the limit (book secs. 15.2, 15.3)."""

from typing import Annotated

import torch
from torch import Tensor

from parnassus.atlas.marks import probe
from parnassus.kernels.network import Network, fully_connected
from parnassus.kernels.nonlinearity import GELU, Cosine, Erf, Nonlinearity, ReLU, Sine
from parnassus.kernels.process import GaussianProcess
from parnassus.kernels.wide_kernel import NNGP
from parnassus.touch import Answer, Curves, Numbers, Pick, Real, Whole

SIGMAS: dict[str, Nonlinearity] = {"ReLU": ReLU(), "GELU": GELU(), "erf": Erf(), "sin": Sine(), "cos": Cosine()}
FUNCTIONS, MANY = 6, 200
LINE = torch.linspace(-3, 3, 81, dtype=torch.float64)


@probe()
@torch.no_grad()
def functions_of_width(
    width: Annotated[int, Whole("width", 1, 256)] = 4,
    depth: Annotated[int, Whole("hidden layers, L", 1, 4)] = 1,
    sigma: Annotated[int, Pick("nonlinearity σ", tuple(SIGMAS))] = 0,
    bias: Annotated[float, Real("variance of the biases", 0.0, 2.0)] = 0.3,
    seed: Annotated[int, Whole("draw", 0, 99)] = 0,
) -> list[Answer]:
    """Functions of random networks of finite width beside draws of the process they tend to (book secs. 15.2, 15.3).

    Begin with four ReLU units: every function has four kinks, and few look like the limit's. Widen, and they blend in;
    the band of two deviations was right all along. Now take the bias away: with one number as input a ReLU function
    has only two rays, and an odd σ only odd functions, however wide the network is.
    """
    network = fully_connected(depth, list(SIGMAS.values())[sigma], bias=bias)
    covariance = network.nngp(LINE[:, None])
    deviation = covariance.diagonal().sqrt()
    source = torch.Generator().manual_seed(seed)
    limit = GaussianProcess(NNGP(network)).sample(LINE[:, None], FUNCTIONS, generator=source).values
    finite = functions(network, width, FUNCTIONS, seed)
    ends = functions(network, width, MANY if width <= 16 else MANY // 4, seed, LINE[-1:])[:, 0] / deviation[-1]
    numbers: dict[str, float | str] = {
        "variance at x = 3, networks by limit": float(ends.square().mean()),
        "excess kurtosis at x = 3, networks": float(ends.pow(4).mean() / ends.square().mean().square() - 3),
        "networks counted": float(len(ends)),
        "rank of the limit's covariance": float((torch.linalg.eigvalsh(covariance) > 1e-6).sum()),
    }
    about = "Few networks give a rough kurtosis; of the limit it is 0."
    band = "Between the outer lines lie two deviations of the limit."
    return [
        Curves(f"Networks of width {width}", _lines(finite, deviation), x_label="x", y_label="f(x)", about=band),
        Curves("The limit", _lines(limit, deviation), x_label="x", y_label="f(x)"),
        Numbers("In numbers", numbers, about=about),
    ]


def functions(network: Network, width: int, count: int, seed: int, x: Tensor = LINE) -> Tensor:
    """Values of `count` random networks at x, (count, points)."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return torch.stack([network.module((1,), width).double()(x[:, None])[:, 0] for _ in range(count)])


def _lines(values: Tensor, deviation: Tensor) -> dict[str, tuple[list[float], list[float]]]:
    x = LINE.tolist()
    drawn = {f"function {number}": (x, value.tolist()) for number, value in enumerate(values, 1)}
    return {**drawn, "+2 deviations": (x, (2 * deviation).tolist()), "−2 deviations": (x, (-2 * deviation).tolist())}
