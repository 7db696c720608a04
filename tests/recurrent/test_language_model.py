"""The LSTM language model: incremental reading, loss and invalid arguments."""

import pytest
import torch

from parnassus.recurrent.language_model import RecurrentLanguageModel
from parnassus.text.autoregressive_model import AutoregressiveModel, State


def test_token_by_token_reading_matches_full_pass() -> None:
    torch.manual_seed(0)
    model = RecurrentLanguageModel(11, width=16, depth=2)
    assert isinstance(model, AutoregressiveModel)
    tokens = torch.randint(11, (3, 9))
    logits, state = model.read(tokens[:, :4])
    assert isinstance(state, State)
    for position in range(4, 9):
        logits, state = model.read(tokens[:, position : position + 1], state)
    torch.testing.assert_close(logits, model(tokens)[:, -1].detach())
    selected, _ = model.read(tokens[[2, 0], :1], state.rows(torch.tensor([2, 0])))
    expected, _ = model.read(tokens[:, :1], state)
    torch.testing.assert_close(selected, expected[[2, 0]])


def test_loss_is_the_mean_negative_log_likelihood() -> None:
    torch.manual_seed(0)
    model, tokens = RecurrentLanguageModel(5, width=8), torch.randint(5, (4, 6))
    nll = -model(tokens[:, :-1]).log_softmax(-1).gather(-1, tokens[:, 1:, None]).mean()
    torch.testing.assert_close(model.loss(tokens), nll)


def test_invalid_arguments_raise() -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        RecurrentLanguageModel(0)
    with pytest.raises(TypeError, match="must be a RecurrentState"):
        RecurrentLanguageModel(3, width=4).read(torch.zeros(1, 1, dtype=torch.int64), OtherState())


class OtherState:
    """The state of a different model."""

    def rows(self, index: torch.Tensor) -> "OtherState":
        return self
