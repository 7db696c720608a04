"""Kernel regression under the hand: a width to slide, a query to point at (book sec. 10.1.3, Zhao sec. 11)."""

from typing import Annotated

import torch
from torch import Tensor

from parnassus.atlas.marks import probe
from parnassus.attention.kernel_regression import NadarayaWatson
from parnassus.attention.kernels import Kernel, boxcar, constant, epanechnikov, gaussian, triangular
from parnassus.data.toy import curve
from parnassus.touch import Answer, Bars, Curves, Numbers, Path, Pick, Real, Whole

KERNELS: dict[str, Kernel] = {
    "Gaussian": gaussian,
    "Epanechnikov": epanechnikov,
    "triangular": triangular,
    "boxcar": boxcar,
    "constant": constant,
}
PLACES = torch.linspace(0, 5, 201, dtype=torch.float64)[:, None]
ACROSS, UP = torch.linspace(0, 5, 61, dtype=torch.float64), torch.linspace(-2, 8, 61, dtype=torch.float64)
BLUR = 0.5  # deviation with which each value is drawn in the plane
SHOWN = 12  # examples whose weights are drawn


def _truth(x: Tensor) -> Tensor:
    return 2 * x.sin() + x


@probe()
@torch.no_grad()
def slide_the_width(
    query: Annotated[float, Real("query q", 0.0, 5.0)] = 2.0,
    kernel: Annotated[int, Pick("kernel", tuple(KERNELS))] = 0,
    width: Annotated[float, Real("width h", 0.02, 10.0, log=True)] = 0.3,
    noise: Annotated[float, Real("noise", 0.0, 2.0)] = 0.5,
    count: Annotated[int, Whole("examples", 5, 150)] = 60,
) -> list[Answer]:
    """A curve guessed from noisy examples, by attention with a kernel of your choice (book sec. 10.1.3).

    Begin with a small width: the fit goes from one example to the next. Widen it until it is smooth, and further until
    it is flat. Then compare with the width that examples left out would choose. The boxcar jumps, the constant kernel
    is the mean; where a kernel that ends meets no example, the nearest one answers.
    """
    examples = curve(count, _truth, noise=noise, low=0.0, high=5.0)
    assert examples.y is not None
    x, order = examples.x.double().sort(0)
    y = examples.y.double()[order[:, 0]]
    fitted = NadarayaWatson.fit(x, y, kernel=list(KERNELS.values())[kernel], width=width)
    asked = torch.tensor([[query]], dtype=torch.float64)
    weights = fitted.weights(asked)[0]
    best = fitted.best_width(torch.logspace(-1.5, 1, 12).tolist())
    numbers: dict[str, float | str] = {
        "f(q)": float(fitted.predict(asked)),
        "true value": float(_truth(asked)),
        "effective number of examples, 1 / Σ α²": float(1 / weights.square().sum()),
        "squared error of the whole fit": float((fitted.predict(PLACES) - _truth(PLACES)).square().mean()),
        "squared error on examples left out": fitted.left_out_error(),
        "width that they would choose": best,
        "left-out error at that width": fitted.with_width(best).left_out_error(),
    }
    return [_plane(fitted, asked), _lines(fitted, query, best), _weights(x, weights), Numbers("In numbers", numbers)]


def _plane(fitted: NadarayaWatson, asked: Tensor) -> Path:
    """The examples, the fit, the query, and the mixture of values that each place x would draw from."""
    bumps = (-(UP[:, None] - fitted.value[:, 0]).square() / (2 * BLUR**2)).exp()
    mixture = bumps @ fitted.weights(ACROSS[:, None]).mT
    answer = fitted.predict(asked)
    ends = torch.stack([UP[0], UP[-1]])[:, None]
    return Path(
        "Examples, fit and query",
        {"query q": torch.cat([asked.expand(2, 1), ends], 1), "f(q)": torch.cat([asked, answer], 1)},
        ACROSS,
        UP,
        mixture,
        about="Level lines: the values that are mixed at each x, blurred a little; the thin line is their mean, f.",
        threads=[torch.cat([PLACES, fitted.predict(PLACES)], 1)],
        dots=torch.cat([fitted.key, fitted.value], 1),
    )


def _lines(fitted: NadarayaWatson, query: float, best: float) -> Curves:
    along = PLACES[:, 0].tolist()
    lines = {
        "f": (along, fitted.predict(PLACES)[:, 0].tolist()),
        "truth": (along, _truth(PLACES)[:, 0].tolist()),
        "f at the width that examples left out choose": (
            along,
            fitted.with_width(best).predict(PLACES)[:, 0].tolist(),
        ),
    }
    return Curves("The fit beside the truth", lines, x_label="x", y_label="y", marked=query)


def _weights(x: Tensor, weights: Tensor) -> Bars:
    """The examples that count most for the query, from left to right."""
    chosen = weights.topk(min(SHOWN, len(weights))).indices.sort().values
    names = [f"x = {float(place):.2f}" for place in x[chosen, 0]]
    return Bars(
        "Weights of the query",
        names,
        weights[chosen].float(),
        marked=int(weights[chosen].argmax()),
        about="The examples that count most; all weights sum to 1.",
    )
