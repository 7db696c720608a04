"""The recurrent reader: step by step it says what it says at once."""

import pytest
import torch

from parnassus.recurrent.language_model import RecurrentLanguageModel
from parnassus.text.autoregressive_model import AutoregressiveModel, State


def test_reading_on_equals_reading_all() -> None:
    torch.manual_seed(0)
    model = RecurrentLanguageModel(11, width=16, depth=2)
    assert isinstance(model, AutoregressiveModel)
    tokens = torch.randint(11, (3, 9))
    logits, state = model.read(tokens[:, :4])
    assert isinstance(state, State)
    for place in range(4, 9):
        logits, state = model.read(tokens[:, place : place + 1], state)
    torch.testing.assert_close(logits, model(tokens)[:, -1].detach())
    swapped, _ = model.read(tokens[[2, 0], :1], state.rows(torch.tensor([2, 0])))
    straight, _ = model.read(tokens[:, :1], state)
    torch.testing.assert_close(swapped, straight[[2, 0]])


def test_the_loss_is_the_mean_price_of_a_token() -> None:
    torch.manual_seed(0)
    model, tokens = RecurrentLanguageModel(5, width=8), torch.randint(5, (4, 6))
    price = -model(tokens[:, :-1]).log_softmax(-1).gather(-1, tokens[:, 1:, None]).mean()
    torch.testing.assert_close(model.loss(tokens), price)


def test_a_foreign_state_and_an_empty_vocabulary_are_refused() -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        RecurrentLanguageModel(0)
    with pytest.raises(TypeError, match="must be a RecurrentState"):
        RecurrentLanguageModel(3, width=4).read(torch.zeros(1, 1, dtype=torch.int64), Foreign())


class Foreign:
    def rows(self, index: torch.Tensor) -> "Foreign":
        return self
