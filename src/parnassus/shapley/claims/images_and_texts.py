"""Claims about groups of pixels and words as players (book secs. 17.0, 17.3)."""

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, claim, close
from parnassus.probability import float64_tensor, uniform_samples
from parnassus.shapley.attributions.attribution import explain, explain_exactly
from parnassus.shapley.attributions.interventional import InterventionalValue
from parnassus.shapley.attributions.masked_images import gaussian_blur, masked_images
from parnassus.shapley.attributions.masked_text import masked_words
from parnassus.shapley.attributions.model_adapters import as_model
from parnassus.shapley.attributions.superpixels import superpixels, tiles
from parnassus.shapley.games.cooperative_games import all_coalitions
from parnassus.shapley.games.shapley_values import interaction_indices

WORD_SCORES = {"good": 2.0, "film": 0.5}


def sentiment_score(texts: list[str]) -> list[float]:
    """The sum of word scores; a preceding `not` changes the sign."""
    pairs = [zip(["", *text.split()], text.split(), strict=False) for text in texts]
    return [
        sum(((-1 if ahead == "not" else 1) * WORD_SCORES.get(word, 0.0) for ahead, word in each), 0.0) for each in pairs
    ]


@claim("B17.0-1", "B17.3-3")
def attributions_of_tiles_sum_over_pixels() -> Evidence:
    """For linear models φ of a tile is Σ w (x − E b) over its pixels; for any model Σ φ = f (book sec. 17.3)."""
    image, others = uniform_samples(1, 3, 8, 8, seed=0), uniform_samples(6, 3, 8, 8, seed=1)
    weight = uniform_samples(3, 8, 8, seed=2) - 0.5
    grid, shapes = tiles(8, 8, 3), superpixels(image[0], 9)
    by_pixel = (weight * (image[0] - others.mean(0))).sum(0)
    linear = explain_exactly(masked_images(lambda x: (x * weight).sum((1, 2, 3)), others, grid), image.flatten(1))

    def nonlinear_model(x: Tensor) -> Tensor:
        return (x * weight).sum((1, 2, 3)).sin() + x.amax((1, 2, 3))

    found = [
        explain(
            masked_images(nonlinear_model, replacements, groups),
            image.flatten(1),
            40,
            generator=torch.Generator().manual_seed(0),
        )
        for replacements, groups in ((others, grid), (others, shapes), (gaussian_blur(image, 2.0), shapes))
    ]
    sums = torch.stack([by_pixel[grid == tile].sum() for tile in range(9)])
    return all_of(
        linear=close(linear.values[0, 0], sums, atol=1e-12),
        sum_to_the_prediction=close(
            torch.cat([each.prediction[0] for each in found]), nonlinear_model(image).expand(3), atol=1e-12
        ),
    )


@claim("B17.0-1")
def the_value_of_a_group_is_not_the_sum_of_its_members() -> Evidence:
    """In x₁x₂x₃ each feature has ⅓, but {1, 2} and {3} have ½ each; for sums, group values add up (book sec. 17.0)."""
    groups = torch.tensor([[True, True, False], [False, False, True]])
    one, zero = torch.ones(1, 3, dtype=torch.float64), torch.zeros(1, 3, dtype=torch.float64)
    product, weighted = as_model(lambda x: x.prod(1)), as_model(lambda x: x @ float64_tensor(1.0, 2.0, 4.0))
    (alone, grouped), (single, together) = (
        [explain_exactly(InterventionalValue(model, zero, each), one).values[0, 0] for each in (None, groups)]
        for model in (product, weighted)
    )
    return all_of(
        alone=close(alone, float64_tensor(1 / 3, 1 / 3, 1 / 3), atol=1e-12),
        grouped=close(grouped, float64_tensor(0.5, 0.5), atol=1e-12),
        weighted_alone=close(single, float64_tensor(1.0, 2.0, 4.0), atol=1e-12),
        weighted_grouped=close(together, float64_tensor(3.0, 4.0), atol=1e-12),
    )


@claim("B17.3-1", "B17.2-1")
def words_have_exact_attributions_and_interactions() -> Evidence:
    """`good` scores 2, `not good` −2: `not` has −2, `good` 0, their interaction is −4 (book eq. 17.3)."""
    game = masked_words(sentiment_score, "the film was not good")
    full = explain_exactly(game, game.full_input)
    without = game.full_input
    without[0, 3] = 0.0  # without the `not` in any coalition
    plain = explain_exactly(game, without)
    interactions = interaction_indices(game(game.full_input, all_coalitions(5))[0, 0])
    return all_of(
        values=close(full.values[0, 0], float64_tensor(0.0, 0.5, 0.0, -2.0, 0.0), atol=1e-12),
        missing_has_zero=close(plain.values[0, 0], float64_tensor(0.0, 0.5, 0.0, 0.0, 2.0), atol=1e-12),
        sum_to_the_score=close(
            torch.cat([full.prediction, plain.prediction])[:, 0], float64_tensor(-1.5, 2.5), atol=1e-12
        ),
        interaction=close(interactions[3, 4], float64_tensor(-4.0)[0], atol=1e-12),
        no_interaction_with_film=close(interactions[1, 2:], torch.zeros(3, dtype=torch.float64), atol=1e-12),
    )
