"""Classification of sentences from one vector each."""

import pytest
import torch
from torch import nn

from parnassus.attention import Encoder, encoder
from parnassus.attention.models.sentence_classifier import SentenceClassifier
from parnassus.layers import TokenEmbedding
from parnassus.recurrent.encoder import RecurrentEncoder


def test_padding_does_not_change_the_class() -> None:
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


def test_an_encoder_depends_on_word_order_and_a_bag_of_words_does_not() -> None:
    torch.manual_seed(0)
    bag = SentenceClassifier(Encoder(TokenEmbedding(9, 8), [], norm=nn.Identity()), Encoder.mean_pool, 2)
    with_order = SentenceClassifier(encoder(9, 4, width=8, heads=2), Encoder.mean_pool, 2)
    forwards, backwards = torch.tensor([[1, 2, 3, 4]]), torch.tensor([[4, 3, 2, 1]])
    torch.testing.assert_close(bag(forwards), bag(backwards))
    assert (with_order(forwards) - with_order(backwards)).abs().max() > 1e-4


def test_invalid_arguments_raise() -> None:
    with pytest.raises(ValueError, match="got classes=1"):
        SentenceClassifier(RecurrentEncoder(9, width=8), RecurrentEncoder.final_state, 1)
