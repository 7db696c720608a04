"""Common properties of positional schemes applied per head, and the additive projection."""

import pytest
import torch

from parnassus.attention import (
    Alibi,
    HeadPositions,
    LanguageModel,
    RelativePositions,
    Rotary,
    SelfAttention,
    additive_projection,
)
from parnassus.attention.models.block import Block, feed_forward
from parnassus.layers.token_embedding import TokenEmbedding

SCHEMES: list[HeadPositions] = [Rotary(4, 20), Alibi(2), RelativePositions(2, 4, 6)]


def test_additive_projection_is_linear_in_content_and_position() -> None:
    torch.manual_seed(0)
    x, encoding = torch.randn(2, 5, 3, dtype=torch.float64), torch.randn(5, 3, dtype=torch.float64)
    weight = torch.randn(4, 3, dtype=torch.float64)
    torch.testing.assert_close(additive_projection(x, encoding, weight), x @ weight.T + encoding @ weight.T)


@pytest.mark.parametrize("positions", SCHEMES)
def test_queries_are_aligned_with_the_last_keys(positions: HeadPositions) -> None:
    """The scores of the last queries are the last rows of all scores, as a cache requires."""
    torch.manual_seed(0)
    query, key = torch.randn(2, 1, 2, 9, 4).unbind()

    def scores(start: int) -> torch.Tensor:
        rotated = positions.rotate(query[:, :, start:], start)
        bias = positions.bias(rotated, 9)
        scores_without_bias = rotated @ positions.rotate(key, 0).mT
        return scores_without_bias if bias is None else scores_without_bias + bias

    torch.testing.assert_close(scores(6), scores(0)[:, :, 6:])


@pytest.mark.parametrize("positions", SCHEMES)
def test_cached_decoding_of_a_language_model_matches_full_pass(positions: HeadPositions) -> None:
    torch.manual_seed(0)
    blocks = [
        Block(
            SelfAttention(8, 2, causal=True, positions=positions), feed_forward(8), norm=lambda: torch.nn.LayerNorm(8)
        )
        for _ in range(2)
    ]
    model = LanguageModel(TokenEmbedding(11, 8), blocks, window=20)
    tokens = torch.randint(11, (3, 12))
    _, state = model.read(tokens[:, :7])
    logits, _ = model.read(tokens[:, 7:], state)
    torch.testing.assert_close(logits, model(tokens)[:, -1])
