"""Sentences sorted by one vector each."""

import pytest
import torch
from torch import nn

from parnassus.attention import Encoder, TokenEmbedding, encoder
from parnassus.attention.classifier import SentenceClassifier
from parnassus.attention.recurrent_encoder import RecurrentEncoder


def test_filler_does_not_change_the_class() -> None:
    torch.manual_seed(0)
    tokens = torch.randint(1, 9, (3, 5))
    padded = torch.cat([tokens, tokens.new_zeros(3, 2)], 1)
    for model in (
        SentenceClassifier(encoder(9, 7, width=8, heads=2), Encoder.pooled, 4),
        SentenceClassifier(RecurrentEncoder(9, width=8), RecurrentEncoder.thought, 4),
    ):
        torch.testing.assert_close(model(padded), model(tokens))
        expected = nn.functional.cross_entropy(model.head(model.vector(tokens)), torch.tensor([0, 1, 3]))
        torch.testing.assert_close(model.loss(tokens, torch.tensor([0, 1, 3])), expected)


def test_a_bag_of_words_cannot_tell_the_order_and_an_encoder_can() -> None:
    torch.manual_seed(0)
    bag = SentenceClassifier(Encoder(TokenEmbedding(9, 8), [], norm=nn.Identity()), Encoder.pooled, 2)
    whole = SentenceClassifier(encoder(9, 4, width=8, heads=2), Encoder.pooled, 2)
    forwards, backwards = torch.tensor([[1, 2, 3, 4]]), torch.tensor([[4, 3, 2, 1]])
    torch.testing.assert_close(bag(forwards), bag(backwards))
    assert (whole(forwards) - whole(backwards)).abs().max() > 1e-4


def test_wrong_input_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match="got classes=1"):
        SentenceClassifier(RecurrentEncoder(9, width=8), RecurrentEncoder.thought, 1)
