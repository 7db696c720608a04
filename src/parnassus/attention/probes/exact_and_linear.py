"""Things to touch: exact attention beside linear and random-feature attention on one text (Diehl sec. 4.1)."""

from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import avg_pool1d

from parnassus.atlas.marks import probe
from parnassus.attention.dot_product import attention_weights
from parnassus.attention.linear import elu_features, kernel_weights
from parnassus.attention.random_features import orthogonal_directions, positive_features
from parnassus.touch import Answer, Curves, Images, Numbers, Pick, Real, Whole

TEXT = "Sing, goddess, of the anger; of the ships, the sea and the long way home."
WIDTH, MOST = 32, 1_024  # of a token, and random features there can be
SEED = torch.Generator().manual_seed(0)
LETTERS = torch.randn(128, WIDTH, generator=SEED)  # a vector for each character
NOISE = torch.randn(len(TEXT) + 7, WIDTH, generator=SEED)
DRAWS = [orthogonal_directions(MOST, WIDTH, generator=torch.Generator().manual_seed(draw)) for draw in range(10)]
COUNTS = [2**power for power in range(3, 11)]


@probe()
@torch.no_grad()
def exact_and_linear(
    tokens: Annotated[int, Pick("what is attended to", ("a text", "a smooth process"))] = 0,
    length: Annotated[int, Whole("tokens", 8, len(TEXT))] = 48,
    match: Annotated[float, Real("score of a token with itself", 0.1, 16.0, log=True)] = 4.0,
    features: Annotated[int, Whole("random features", 1, MOST)] = 128,
    draw: Annotated[int, Whole("draw of the features", 0, 9)] = 0,
) -> list[Answer]:
    """Who looks at whom: by softmax, by random features of it, and by elu + 1 (Diehl sec. 4.1).

    On the text a character looks for the same character. Begin with a low score: all maps are flat and alike. Raise it:
    the softmax decides, random features follow with more and more noise until even a thousand of them are too few,
    and elu + 1 stays flat, for it never was an approximation.
    """
    seen = _seen(tokens, length) * (match / WIDTH) ** 0.5
    exact = attention_weights(seen, seen, scale=1.0)
    directions = DRAWS[draw]
    random = _random_weights(seen, directions[:features])
    linear = kernel_weights(seen, seen, elu_features)
    errors = [_distance(_random_weights(seen, directions[:count]), exact) for count in COUNTS]
    maps = torch.stack([exact, random, linear])[:, None]
    return [
        Images(
            "Maps of weights",
            (maps / exact.amax()).clamp(0.0, 1.0).sqrt(),
            ["softmax", f"{features} random features", "elu + 1"],
            about="Rows are queries, columns keys. Brightness is the root of a weight, white the softmax's largest.",
        ),
        Curves(
            "Distance to the softmax",
            {
                "random features": ([float(count) for count in COUNTS], errors),
                "elu + 1": ([8.0, float(MOST)], [_distance(linear, exact)] * 2),
            },
            "random features",
            "total variation",
            marked=float(features),
            about="The share of weight that lies on other keys than it should, mean over queries.",
        ),
        Numbers(
            "In numbers",
            {
                "distance of random features": _distance(random, exact),
                "distance of elu + 1": _distance(linear, exact),
                "largest weight, softmax, mean over queries": float(exact.amax(-1).mean()),
                "largest weight, elu + 1": float(linear.amax(-1).mean()),
                "multiplications, exact": f"{2 * length**2 * WIDTH:,}",
                "multiplications, random features": f"{2 * length * features * WIDTH + length * features:,}",
                "multiplications, elu + 1": f"{2 * length * WIDTH * WIDTH + length * WIDTH:,}",
            },
        ),
    ]


def _seen(tokens: int, length: int) -> Float[Tensor, "length width"]:
    """One vector a place, of squared length WIDTH on average."""
    if tokens == 0:
        return LETTERS[[ord(letter) for letter in TEXT[:length].lower()]]
    smooth: Tensor = avg_pool1d(NOISE.T[None], 8, 1)[0].T * 8**0.5
    return smooth[:length]


def _random_weights(seen: Tensor, directions: Tensor) -> Float[Tensor, "length length"]:
    return kernel_weights(seen, seen, lambda x: positive_features(x, directions))


def _distance(weights: Tensor, exact: Tensor) -> float:
    """Total variation, mean over queries."""
    return float((weights - exact).abs().sum(-1).mean() / 2)
