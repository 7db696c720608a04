"""Masked language modelling: corruption, loss and predictions."""

import pytest
import torch

from parnassus.attention import gpt
from parnassus.attention.models.bert import MaskedLanguageModel, MaskedTokens, bert, mask_tokens
from parnassus.recurrent.encoder import RecurrentEncoder


def test_mask_tokens_changes_selected_ordinary_tokens_only() -> None:
    torch.manual_seed(0)
    tokens = torch.randint(0, 12, (200, 50))
    masked = mask_tokens(tokens, mask_token_id=1, ordinary=range(3, 12), mask_probability=0.5)
    assert not bool(masked.selected[tokens < 3].any())
    torch.testing.assert_close(masked.tokens[~masked.selected], tokens[~masked.selected])
    assert set(masked.tokens[masked.selected].tolist()) == {1, *range(3, 12)}
    fraction = masked.selected.sum() / (tokens >= 3).sum()
    assert abs(float(fraction) - 0.5) < 0.02


def test_equal_seeds_mask_the_same_tokens() -> None:
    tokens = torch.randint(2, 12, (4, 50))
    first, second = (
        mask_tokens(tokens, mask_token_id=1, ordinary=range(2, 12), generator=torch.Generator().manual_seed(3))
        for _ in range(2)
    )
    torch.testing.assert_close(first.tokens, second.tokens)


def test_loss_is_over_selected_positions_only() -> None:
    torch.manual_seed(0)
    model = bert(12, 6, width=16)
    tokens = torch.randint(2, 12, (2, 6))
    selected = torch.zeros(2, 6, dtype=torch.bool)
    selected[0, 2] = selected[1, 4] = True
    masked = MaskedTokens(tokens.masked_fill(selected, 1), selected)
    log_p = model(masked.tokens).log_softmax(-1)
    expected = -(log_p[0, 2, tokens[0, 2]] + log_p[1, 4, tokens[1, 4]]) / 2
    torch.testing.assert_close(model.masked_loss(tokens, masked), expected)


def test_loss_without_selected_tokens_is_zero() -> None:
    model = bert(12, 6, width=16)
    tokens = torch.zeros(2, 6, dtype=torch.long)
    assert model.loss(tokens).item() == 0.0


def test_masked_token_is_predicted_from_both_neighbours() -> None:
    """The middle token is determined by both neighbours jointly, not by either alone."""
    torch.manual_seed(0)
    left, right = torch.cartesian_prod(torch.arange(2), torch.arange(2)).unbind(1)
    tokens = torch.stack([2 + left, 6 + 2 * left + right, 4 + right], 1)
    model = bert(10, 3, width=32, heads=2, depth=1)
    middle = torch.tensor([False, True, False]).expand(4, 3)
    masked = MaskedTokens(tokens.masked_fill(middle, 1), middle)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(60):
        optimizer.zero_grad()
        model.masked_loss(tokens, masked).backward()
        optimizer.step()
    torch.testing.assert_close(model.fill_mask(masked.tokens), tokens)


def test_fill_mask_keeps_other_tokens_and_never_predicts_padding() -> None:
    torch.manual_seed(0)
    model = bert(12, 6, width=16)
    tokens = torch.randint(2, 12, (2, 6))
    tokens[0, 1], tokens[1, 4:] = 1, 0
    filled = model.fill_mask(tokens)
    torch.testing.assert_close(filled[tokens != 1], tokens[tokens != 1])
    assert int(filled[0, 1]) >= 2


def test_bert_is_bidirectional_and_gpt_causal() -> None:
    torch.manual_seed(0)
    tokens = torch.randint(2, 12, (1, 6))
    changed = tokens.clone()
    changed[0, 5] = 2 + (changed[0, 5] - 1) % 10
    for model, is_bidirectional in ((bert(12, 6, width=16), True), (gpt(12, 6, width=16), False)):
        difference = (model(changed) - model(tokens))[0, :5].abs().max()
        assert bool(difference > 1e-6) is is_bidirectional


def test_recurrent_encoder_is_supported() -> None:
    torch.manual_seed(0)
    model = MaskedLanguageModel(RecurrentEncoder(12, width=16))
    tokens = torch.randint(2, 12, (4, 6))
    model.loss(tokens).backward()
    assert model(tokens).shape == (4, 6, 12)


def test_invalid_arguments_raise_value_error() -> None:
    tokens = torch.ones(1, 3, dtype=torch.long)
    with pytest.raises(ValueError, match="0 < mask_probability ≤ 1; got mask_probability=0"):
        mask_tokens(tokens, mask_token_id=1, ordinary=range(2, 5), mask_probability=0.0)
    with pytest.raises(ValueError, match="range with step 1"):
        mask_tokens(tokens, mask_token_id=1, ordinary=range(2, 2))
    with pytest.raises(ValueError, match="got vocabulary=2"):
        bert(2, 3, width=16)
