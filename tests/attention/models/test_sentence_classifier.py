"""Sentence classifiers with transformer, recurrent and bag-of-words encoders."""

import pytest
import torch
from torch import nn

from parnassus.attention import Encoder, encoder
from parnassus.attention.models.sentence_classifier import SentenceClassifier
from parnassus.layers import TokenEmbedding
from parnassus.recurrent.encoder import RecurrentEncoder


def test_padding_does_not_change_the_logits() -> None:
    torch.manual_seed(0)
    tokens = torch.randint(1, 9, (3, 5))
    padded = torch.cat([tokens, tokens.new_zeros(3, 2)], 1)
    for model in (
        SentenceClassifier(encoder(9, 7, width=8, heads=2), Encoder.mean_pool, 4),
        SentenceClassifier(RecurrentEncoder(9, width=8), RecurrentEncoder.final_state, 4),
    ):
        torch.testing.assert_close(model(padded), model(tokens))
        expected = nn.functional.cross_entropy(model.head(model.embed(tokens)), torch.tensor([0, 1, 3]))
        torch.testing.assert_close(model.loss(tokens, torch.tensor([0, 1, 3])), expected)


def test_encoder_depends_on_word_order_unlike_bag_of_words() -> None:
    torch.manual_seed(0)
    bag_of_words = SentenceClassifier(Encoder(TokenEmbedding(9, 8), [], norm=nn.Identity()), Encoder.mean_pool, 2)
    transformer = SentenceClassifier(encoder(9, 4, width=8, heads=2), Encoder.mean_pool, 2)
    forwards, backwards = torch.tensor([[1, 2, 3, 4]]), torch.tensor([[4, 3, 2, 1]])
    torch.testing.assert_close(bag_of_words(forwards), bag_of_words(backwards))
    assert (transformer(forwards) - transformer(backwards)).abs().max() > 1e-4


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="got classes=1"):
        SentenceClassifier(RecurrentEncoder(9, width=8), RecurrentEncoder.final_state, 1)
