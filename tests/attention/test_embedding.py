"""Embeddings of tokens and places, against rows of their tables."""

import pytest
import torch

from parnassus.attention import PositionalEmbedding, TokenEmbedding


def test_token_and_place_are_added() -> None:
    torch.manual_seed(0)
    embedding = PositionalEmbedding(7, 5, 4)
    tokens = torch.tensor([[3, 0, 6], [1, 1, 1]])
    out = embedding(tokens)
    torch.testing.assert_close(out[0, 2], embedding.tokens.weight[6] + embedding.places.weight[2])
    torch.testing.assert_close(out[1, 1] - out[1, 0], embedding.places.weight[1] - embedding.places.weight[0])


def test_reading_on_continues_with_the_next_place() -> None:
    torch.manual_seed(0)
    embedding, tokens = PositionalEmbedding(7, 9, 4), torch.randint(7, (2, 9))
    torch.testing.assert_close(embedding(tokens[:, 4:], 4), embedding(tokens)[:, 4:])


def test_without_places_a_token_is_the_same_wherever_it_stands() -> None:
    torch.manual_seed(0)
    embedding = TokenEmbedding(7, 4)
    out = embedding(torch.tensor([[2, 5, 2]]), 3)
    torch.testing.assert_close(out[0, 0], out[0, 2])
    torch.testing.assert_close(out[0, 1], embedding.tokens.weight[5])


def test_only_places_that_were_read_learn() -> None:
    embedding = PositionalEmbedding(7, 6, 4)
    embedding(torch.zeros(2, 4, dtype=torch.int64)).sum().backward()
    assert embedding.places.weight.grad is not None
    assert embedding.places.weight.grad[:, 0].tolist() == [2, 2, 2, 2, 0, 0]


def test_what_cannot_work_gets_a_sentence() -> None:
    embedding = PositionalEmbedding(7, 5, 4)
    with pytest.raises(ValueError, match="embeddings for 5 places; got tokens up to place 6"):
        embedding(torch.zeros(1, 6, dtype=torch.int64))
    with pytest.raises(ValueError, match="up to place 6"):
        embedding(torch.zeros(1, 1, dtype=torch.int64), 5)
    with pytest.raises(ValueError, match="must be at least 1; got vocabulary=7, places=0, width=4"):
        PositionalEmbedding(7, 0, 4)
    with pytest.raises(ValueError, match="must be at least 1; got vocabulary=0, width=4"):
        TokenEmbedding(0, 4)
