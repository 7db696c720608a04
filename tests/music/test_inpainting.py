"""Gaps filled one after the other, and variations."""

import pytest
import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.attention.models.bert import MaskedLanguageModel, bert
from parnassus.attention.models.encoder import encoder
from parnassus.music.inpainting import inpaint, resample_notes
from parnassus.text.sampling import greedy, token_sampler

MASK = MaskedLanguageModel.MASK


class Twins(MaskedLanguageModel):
    """All notes of a row are the same, 2 or 3: a half each while none is known."""

    def __init__(self) -> None:
        super().__init__(encoder(4, 8, width=4, heads=1, depth=1))

    def forward(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch time vocabulary"]:
        heard = torch.stack([(tokens == note).any(1) for note in range(4)], 1).float()
        heard[:, :2] = -9.0
        return (20 * heard)[:, None].expand(-1, tokens.shape[1], -1)


def test_notes_filled_in_turn_agree() -> None:
    source = torch.Generator().manual_seed(0)
    filled = inpaint(Twins(), torch.full((200, 4), MASK), token_sampler(generator=source))
    assert (filled == filled[:, :1]).all()
    assert 0.35 < float((filled[:, 0] == 2).double().mean()) < 0.65


def test_what_is_not_hidden_stays() -> None:
    torch.manual_seed(0)
    model = bert(20, 10, width=16).eval()
    tokens = torch.randint(2, 20, (5, 10))
    gaps = tokens.clone()
    gaps[0, 2:5], gaps[1, 7] = MASK, MASK  # unequal gaps, and rows without any
    filled = inpaint(model, gaps, greedy)
    assert torch.equal(filled[gaps != MASK], tokens[gaps != MASK])
    assert int(filled.min()) >= MaskedLanguageModel.FIRST
    assert int((gaps == MASK).sum()) == 4  # what was handed in is as it was


def test_one_gap_is_filled_as_all_at_once() -> None:
    torch.manual_seed(0)
    model = bert(20, 10, width=16).eval()
    tokens = torch.randint(2, 20, (8, 10))
    tokens[:, 4] = MASK
    assert torch.equal(inpaint(model, tokens, greedy), model.fill_mask(tokens))


def test_the_surest_gap_comes_first() -> None:
    torch.manual_seed(1)
    model = bert(20, 6, width=16).eval()
    tokens = torch.tensor([[5, MASK, 9, 12, MASK, 3]])
    sure = model(tokens)[0, :, 2:].softmax(-1).amax(-1)
    first = 1 if sure[1] > sure[4] else 4
    after = tokens.clone()
    after[0, first] = model(tokens)[0, first, 2:].argmax() + 2
    assert torch.equal(inpaint(model, tokens, greedy), model.fill_mask(after))


def test_a_variation_changes_only_its_places() -> None:
    torch.manual_seed(0)
    model, tokens = bert(20, 6, width=16).eval(), torch.randint(2, 20, (30, 6))
    places = torch.tensor([False, True, True, False, False, False])
    varied = resample_notes(model, tokens, places, token_sampler(generator=torch.Generator().manual_seed(0)))
    assert torch.equal(varied[:, ~places], tokens[:, ~places])
    assert (varied[:, places] != tokens[:, places]).any()


def test_places_must_match_the_notes() -> None:
    with pytest.raises(ValueError, match="got 3 entries for 4 notes"):
        resample_notes(Twins(), torch.full((1, 4), 2), torch.tensor([True, False, True]), greedy)
