"""Inpainting of masked notes, and variations."""

import pytest
import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.attention.models.bert import MaskedLanguageModel, bert
from parnassus.attention.models.encoder import encoder
from parnassus.music.inpainting import inpaint, resample_notes
from parnassus.text.sampling import greedy, token_sampler

MASK = MaskedLanguageModel.MASK


class ConstantRows(MaskedLanguageModel):
    """All notes of a row are equal: 2 or 3, with probability ½ each if no note is known."""

    def __init__(self) -> None:
        super().__init__(encoder(4, 8, width=4, heads=1, depth=1))

    def forward(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch time vocabulary"]:
        logits = torch.stack([(tokens == note).any(1) for note in range(4)], 1).float()
        logits[:, :2] = -9.0
        return (20 * logits)[:, None].expand(-1, tokens.shape[1], -1)


def test_sequentially_inpainted_notes_are_consistent() -> None:
    generator = torch.Generator().manual_seed(0)
    filled = inpaint(ConstantRows(), torch.full((200, 4), MASK), token_sampler(generator=generator))
    assert (filled == filled[:, :1]).all()
    assert 0.35 < float((filled[:, 0] == 2).double().mean()) < 0.65


def test_unmasked_notes_are_unchanged() -> None:
    torch.manual_seed(0)
    model = bert(20, 10, width=16).eval()
    tokens = torch.randint(2, 20, (5, 10))
    masked = tokens.clone()
    masked[0, 2:5], masked[1, 7] = MASK, MASK  # gaps of unequal lengths, and rows without gaps
    filled = inpaint(model, masked, greedy)
    assert torch.equal(filled[masked != MASK], tokens[masked != MASK])
    assert int(filled.min()) >= MaskedLanguageModel.FIRST
    assert int((masked == MASK).sum()) == 4  # the input is not modified


def test_single_gap_matches_fill_mask() -> None:
    torch.manual_seed(0)
    model = bert(20, 10, width=16).eval()
    tokens = torch.randint(2, 20, (8, 10))
    tokens[:, 4] = MASK
    assert torch.equal(inpaint(model, tokens, greedy), model.fill_mask(tokens))


def test_most_certain_gap_is_filled_first() -> None:
    torch.manual_seed(1)
    model = bert(20, 6, width=16).eval()
    tokens = torch.tensor([[5, MASK, 9, 12, MASK, 3]])
    confidence = model(tokens)[0, :, 2:].softmax(-1).amax(-1)
    first = 1 if confidence[1] > confidence[4] else 4
    expected = tokens.clone()
    expected[0, first] = model(tokens)[0, first, 2:].argmax() + 2
    assert torch.equal(inpaint(model, tokens, greedy), model.fill_mask(expected))


def test_resample_notes_changes_selected_positions_only() -> None:
    torch.manual_seed(0)
    model, tokens = bert(20, 6, width=16).eval(), torch.randint(2, 20, (30, 6))
    positions = torch.tensor([False, True, True, False, False, False])
    variation = resample_notes(model, tokens, positions, token_sampler(generator=torch.Generator().manual_seed(0)))
    assert torch.equal(variation[:, ~positions], tokens[:, ~positions])
    assert (variation[:, positions] != tokens[:, positions]).any()


def test_positions_of_wrong_length_raise_value_error() -> None:
    with pytest.raises(ValueError, match="got 3 entries for 4 notes"):
        resample_notes(ConstantRows(), torch.full((1, 4), 2), torch.tensor([True, False, True]), greedy)
