"""Claims about players that are no columns of a table: groups of pixels, words of a text (book secs. 17.0, 17.3)."""

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, claim, close
from parnassus.shapley.attribution import explain, explain_exactly
from parnassus.shapley.game import members
from parnassus.shapley.masking import Interventional
from parnassus.shapley.model import as_model
from parnassus.shapley.superpixels import blurred, masked_images, superpixels, tiles
from parnassus.shapley.tokens import masked_words
from parnassus.shapley.values import interactions

POINTS = {"good": 2.0, "film": 0.5}


def uniform(*shape: int, seed: int) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def numbers(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def pleased(texts: list[str]) -> list[float]:
    """Points of words; a `not` in front turns them round."""
    pairs = [zip(["", *text.split()], text.split(), strict=False) for text in texts]
    return [sum(((-1 if ahead == "not" else 1) * POINTS.get(word, 0.0) for ahead, word in each), 0.0) for each in pairs]


@claim("B17.0-1", "B17.3-3")
def tiles_share_out_a_model_of_images() -> Evidence:
    """Linear in pixels: φ of a tile = Σ w (x − E b) over its pixels; any model: parts sum to f (book sec. 17.3)."""
    image, others = uniform(1, 3, 8, 8, seed=0), uniform(6, 3, 8, 8, seed=1)
    weight = uniform(3, 8, 8, seed=2) - 0.5
    grid, shapes = tiles(8, 8, 3), superpixels(image[0], 9)
    by_hand = (weight * (image[0] - others.mean(0))).sum(0)
    linear = explain_exactly(masked_images(lambda x: (x * weight).sum((1, 2, 3)), others, grid), image.flatten(1))

    def curved(x: Tensor) -> Tensor:
        return (x * weight).sum((1, 2, 3)).sin() + x.amax((1, 2, 3))

    found = [
        explain(
            masked_images(curved, missing, groups), image.flatten(1), 40, generator=torch.Generator().manual_seed(0)
        )
        for missing, groups in ((others, grid), (others, shapes), (blurred(image, 2.0), shapes))
    ]
    sums = torch.stack([by_hand[grid == tile].sum() for tile in range(9)])
    return all_of(
        by_hand=close(linear.values[0, 0], sums, atol=1e-12),
        sum_to_the_prediction=close(
            torch.cat([each.prediction[0] for each in found]), curved(image).expand(3), atol=1e-12
        ),
    )


@claim("B17.0-1")
def a_group_is_not_the_sum_of_its_members() -> Evidence:
    """x₁x₂x₃ from 0 to 1: each has ⅓, but {1, 2} and {3} have ½; a sum is shared alike either way (book sec. 17.0)."""
    groups = torch.tensor([[True, True, False], [False, False, True]])
    one, zero = torch.ones(1, 3, dtype=torch.float64), torch.zeros(1, 3, dtype=torch.float64)
    product, weighted = as_model(lambda x: x.prod(1)), as_model(lambda x: x @ numbers(1.0, 2.0, 4.0))
    (alone, grouped), (single, together) = (
        [explain_exactly(Interventional(model, zero, each), one).values[0, 0] for each in (None, groups)]
        for model in (product, weighted)
    )
    return all_of(
        alone=close(alone, numbers(1 / 3, 1 / 3, 1 / 3), atol=1e-12),
        grouped=close(grouped, numbers(0.5, 0.5), atol=1e-12),
        weighted_alone=close(single, numbers(1.0, 2.0, 4.0), atol=1e-12),
        weighted_grouped=close(together, numbers(3.0, 4.0), atol=1e-12),
    )


@claim("B17.3-1", "B17.2-1")
def words_share_out_a_verdict() -> Evidence:
    """`good` has 2 and `not good` −2: of it `not` has −2, `good` 0, and together they have −4 (book eq. 17.3)."""
    game = masked_words(pleased, "the film was not good")
    whole = explain_exactly(game, game.whole)
    without = game.whole
    without[0, 3] = 0.0  # the `not` is missing from every coalition
    plain = explain_exactly(game, without)
    together = interactions(game(game.whole, members(5))[0, 0])
    return all_of(
        parts=close(whole.values[0, 0], numbers(0.0, 0.5, 0.0, -2.0, 0.0), atol=1e-12),
        missing_gets_nothing=close(plain.values[0, 0], numbers(0.0, 0.5, 0.0, 0.0, 2.0), atol=1e-12),
        sum_to_the_verdict=close(torch.cat([whole.prediction, plain.prediction])[:, 0], numbers(-1.5, 2.5), atol=1e-12),
        together=close(together[3, 4], numbers(-4.0)[0], atol=1e-12),
        nothing_with_the_film=close(together[1, 2:], torch.zeros(3, dtype=torch.float64), atol=1e-12),
    )
