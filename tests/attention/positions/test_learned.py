"""Learned token and position embeddings."""

import pytest
import torch

from parnassus.attention import PositionalEmbedding
from parnassus.layers import TokenEmbedding


def test_token_and_position_embeddings_are_added() -> None:
    torch.manual_seed(0)
    embedding = PositionalEmbedding(7, 5, 4)
    tokens = torch.tensor([[3, 0, 6], [1, 1, 1]])
    output = embedding(tokens)
    torch.testing.assert_close(output[0, 2], embedding.tokens.weight[6] + embedding.positions.weight[2])
    torch.testing.assert_close(
        output[1, 1] - output[1, 0], embedding.positions.weight[1] - embedding.positions.weight[0]
    )


def test_start_offsets_the_positions() -> None:
    torch.manual_seed(0)
    embedding, tokens = PositionalEmbedding(7, 9, 4), torch.randint(7, (2, 9))
    torch.testing.assert_close(embedding(tokens[:, 4:], 4), embedding(tokens)[:, 4:])


def test_token_embedding_does_not_depend_on_the_position() -> None:
    torch.manual_seed(0)
    embedding = TokenEmbedding(7, 4)
    output = embedding(torch.tensor([[2, 5, 2]]), 3)
    torch.testing.assert_close(output[0, 0], output[0, 2])
    torch.testing.assert_close(output[0, 1], embedding.tokens.weight[5])


def test_only_used_positions_receive_gradients() -> None:
    embedding = PositionalEmbedding(7, 6, 4)
    embedding(torch.zeros(2, 4, dtype=torch.int64)).sum().backward()
    assert embedding.positions.weight.grad is not None
    assert embedding.positions.weight.grad[:, 0].tolist() == [2, 2, 2, 2, 0, 0]


def test_invalid_arguments_raise_value_error() -> None:
    embedding = PositionalEmbedding(7, 5, 4)
    with pytest.raises(ValueError, match="there are 5 positions; got tokens up to position 6"):
        embedding(torch.zeros(1, 6, dtype=torch.int64))
    with pytest.raises(ValueError, match="up to position 6"):
        embedding(torch.zeros(1, 1, dtype=torch.int64), 5)
    with pytest.raises(ValueError, match="must be at least 1; got vocabulary=7, max_length=0, width=4"):
        PositionalEmbedding(7, 0, 4)
    with pytest.raises(ValueError, match="must be at least 1; got vocabulary=0, width=4"):
        TokenEmbedding(0, 4)
