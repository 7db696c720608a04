"""The bidirectional LSTM encoder: padding, final states and invalid arguments."""

import pytest
import torch
from torch import nn

from parnassus.recurrent.encoder import RecurrentEncoder


def test_encoder_without_padding_matches_torch_lstm() -> None:
    torch.manual_seed(0)
    model = RecurrentEncoder(9, width=8, depth=2)
    tokens = torch.randint(1, 9, (3, 5))
    states, (final, _) = model.network(model.embedding(tokens))
    torch.testing.assert_close(model(tokens), states)
    torch.testing.assert_close(model.final_state(tokens), torch.cat([final[-2], final[-1]], 1))
    torch.testing.assert_close(model.final_state(tokens), torch.cat([states[:, -1, :4], states[:, 0, 4:]], 1))


def test_padding_is_ignored() -> None:
    torch.manual_seed(0)
    model = RecurrentEncoder(9, width=8)
    tokens = torch.randint(1, 9, (2, 5))
    padded = torch.cat([tokens, tokens.new_zeros(2, 3)], 1)
    torch.testing.assert_close(model(padded)[:, :5], model(tokens))
    torch.testing.assert_close(model(padded)[:, 5:], torch.zeros(2, 3, 8))
    torch.testing.assert_close(model.final_state(padded), model.final_state(tokens))


def test_padding_only_row_gives_zeros() -> None:
    model = RecurrentEncoder(9, width=8)
    torch.testing.assert_close(model(torch.zeros(2, 4, dtype=torch.long)), torch.zeros(2, 4, 8))


def test_all_positions_depend_on_both_ends() -> None:
    torch.manual_seed(0)
    model = RecurrentEncoder(9, width=8)
    tokens = torch.randint(2, 9, (1, 6))
    for end in (0, 5):
        changed = tokens.clone()
        changed[0, end] = 1
        assert bool(((model(changed) - model(tokens))[0].abs().amax(1) > 1e-6).all())


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="width must be even"):
        RecurrentEncoder(9, width=7)
    with pytest.raises(ValueError, match="padding must come after"):
        RecurrentEncoder(9, width=8)(torch.tensor([[1, 0, 2]]))
    assert isinstance(RecurrentEncoder(9, width=8).network, nn.LSTM)
