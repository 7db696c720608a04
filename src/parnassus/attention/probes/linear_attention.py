"""Interactive comparison of softmax, random-feature and linear attention maps (Diehl sec. 4.1)."""

from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import avg_pool1d

from parnassus.atlas.decorators import probe
from parnassus.attention.core.dot_product import attention_weights
from parnassus.attention.efficient.linear_attention import elu_features, linear_attention_weights
from parnassus.attention.efficient.random_features import orthogonal_directions, positive_features
from parnassus.widgets import Answer, Curves, FloatSlider, Images, IntSlider, Numbers, Select

TEXT = "Sing, goddess, of the anger; of the ships, the sea and the long way home."
WIDTH, MAX_FEATURES = 32, 1_024  # width of a token; maximum number of random features
SEED = torch.Generator().manual_seed(0)
LETTERS = torch.randn(128, WIDTH, generator=SEED)  # a vector for each character
NOISE = torch.randn(len(TEXT) + 7, WIDTH, generator=SEED)
DIRECTIONS = [
    orthogonal_directions(MAX_FEATURES, WIDTH, generator=torch.Generator().manual_seed(draw)) for draw in range(10)
]
FEATURE_COUNTS = [2**power for power in range(3, 11)]


@probe()
@torch.no_grad()
def exact_and_linear_attention(
    tokens: Annotated[int, Select("tokens", ("characters of a text", "a smooth process"))] = 0,
    length: Annotated[int, IntSlider("number of tokens", 8, len(TEXT))] = 48,
    self_score: Annotated[float, FloatSlider("score of a token with itself", 0.1, 16.0, log=True)] = 4.0,
    features: Annotated[int, IntSlider("number of random features", 1, MAX_FEATURES)] = 128,
    seed: Annotated[int, IntSlider("seed of the features", 0, 9)] = 0,
) -> list[Answer]:
    """Attention maps of softmax, of its random-feature approximation and of elu + 1 (Diehl sec. 4.1).

    On the text each character attends to equal characters. With a low score all maps are nearly uniform. With a higher
    score the softmax becomes concentrated, the random-feature estimate becomes noisy until even a thousand features are
    too few, and elu + 1 stays nearly uniform, since it does not approximate the softmax.
    """
    x = _tokens(tokens, length) * (self_score / WIDTH) ** 0.5
    exact = attention_weights(x, x, scale=1.0)
    directions = DIRECTIONS[seed]
    random = _random_feature_weights(x, directions[:features])
    linear = linear_attention_weights(x, x, elu_features)
    errors = [_total_variation(_random_feature_weights(x, directions[:count]), exact) for count in FEATURE_COUNTS]
    maps = torch.stack([exact, random, linear])[:, None]
    return [
        Images(
            "Attention maps",
            (maps / exact.amax()).clamp(0.0, 1.0).sqrt(),
            ["softmax", f"{features} random features", "elu + 1"],
            about="Rows are queries, columns keys. Brightness: root of the weight; white is the softmax's maximum.",
        ),
        Curves(
            "Total variation distance to the softmax",
            {
                "random features": ([float(count) for count in FEATURE_COUNTS], errors),
                "elu + 1": ([8.0, float(MAX_FEATURES)], [_total_variation(linear, exact)] * 2),
            },
            "number of random features",
            "total variation distance",
            marked=float(features),
            about="Half the sum of absolute differences of the weights, mean over queries.",
        ),
        Numbers(
            "Statistics",
            {
                "total variation, random features": _total_variation(random, exact),
                "total variation, elu + 1": _total_variation(linear, exact),
                "largest weight, softmax, mean over queries": float(exact.amax(-1).mean()),
                "largest weight, elu + 1, mean over queries": float(linear.amax(-1).mean()),
                "multiplications, exact": f"{2 * length**2 * WIDTH:,}",
                "multiplications, random features": f"{2 * length * features * WIDTH + length * features:,}",
                "multiplications, elu + 1": f"{2 * length * WIDTH * WIDTH + length * WIDTH:,}",
            },
        ),
    ]


def _tokens(tokens: int, length: int) -> Float[Tensor, "length width"]:
    """One vector per position, of squared norm WIDTH on average."""
    if tokens == 0:
        return LETTERS[[ord(letter) for letter in TEXT[:length].lower()]]
    smooth: Tensor = avg_pool1d(NOISE.T[None], 8, 1)[0].T * 8**0.5
    return smooth[:length]


def _random_feature_weights(x: Tensor, directions: Tensor) -> Float[Tensor, "length length"]:
    return linear_attention_weights(x, x, lambda y: positive_features(y, directions))


def _total_variation(weights: Tensor, exact: Tensor) -> float:
    """Total variation distance, mean over queries."""
    return float((weights - exact).abs().sum(-1).mean() / 2)
