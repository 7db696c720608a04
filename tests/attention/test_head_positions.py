"""What all positions inside heads have in common, and the map that only adds."""

import pytest
import torch

from parnassus.attention import (
    Alibi,
    HeadPositions,
    LanguageModel,
    RelativePositions,
    Rotary,
    SelfAttention,
    additive_map,
)
from parnassus.attention.block import Block, feed_forward
from parnassus.attention.embedding import TokenEmbedding

SCHEMES: list[HeadPositions] = [Rotary(4, 20), Alibi(2), RelativePositions(2, 4, 6)]


def test_the_additive_map_is_linear_in_content_plus_place() -> None:
    torch.manual_seed(0)
    x, code = torch.randn(2, 5, 3, dtype=torch.float64), torch.randn(5, 3, dtype=torch.float64)
    weight = torch.randn(4, 3, dtype=torch.float64)
    torch.testing.assert_close(additive_map(x, code, weight), x @ weight.T + code @ weight.T)


@pytest.mark.parametrize("positions", SCHEMES)
def test_queries_are_the_last_of_the_keys(positions: HeadPositions) -> None:
    """The scores of the last queries are the last rows of all scores, as a cache needs it."""
    torch.manual_seed(0)
    query, key = torch.randn(2, 1, 2, 9, 4).unbind()

    def scores(first: int) -> torch.Tensor:
        late = positions.turn(query[:, :, first:], first)
        bias = positions.bias(late, 9)
        plain = late @ positions.turn(key, 0).mT
        return plain if bias is None else plain + bias

    torch.testing.assert_close(scores(6), scores(0)[:, :, 6:])


@pytest.mark.parametrize("positions", SCHEMES)
def test_a_language_model_reads_on_with_them(positions: HeadPositions) -> None:
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
