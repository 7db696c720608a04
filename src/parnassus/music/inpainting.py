"""Inpainting and variation of melodies with a masked language model (book sec. 10.1.2)."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from parnassus.attention.models.bert import MaskedLanguageModel
from parnassus.text.sampling import TokenSampler


@torch.no_grad()
def inpaint(
    model: MaskedLanguageModel, tokens: Int[Tensor, "batch time"], sampler: TokenSampler
) -> Int[Tensor, "batch time"]:
    """Fill masked notes one by one, in each row the position with the most certain prediction first (book sec. 10.1.2).

    Notes filled simultaneously, as by `MaskedLanguageModel.fill_mask`, are independent and may mix two motifs; filled
    one after the other they are consistent. It takes one forward pass for each masked note of a row.
    """
    tokens = tokens.clone()
    rows = torch.arange(len(tokens), device=tokens.device)
    for _ in range(int((tokens == model.MASK).sum(1).max())):
        masked = tokens == model.MASK
        logits = model(tokens)[..., model.FIRST :]
        position = logits.softmax(-1).amax(-1).where(masked, -1.0).argmax(1)
        sampled = sampler(logits[rows, position]) + model.FIRST
        tokens[rows, position] = torch.where(masked.any(1), sampled, tokens[rows, position])
    return tokens


def resample_notes(
    model: MaskedLanguageModel,
    tokens: Int[Tensor, "batch time"],
    positions: Bool[Tensor, " notes"],
    sampler: TokenSampler,
) -> Int[Tensor, "batch time"]:
    """A variation: mask the notes at these positions and inpaint them (book sec. 10.1.2)."""
    if len(positions) != tokens.shape[1]:
        raise ValueError(
            f"positions must have one entry per note; got {len(positions)} entries for {tokens.shape[1]} notes"
        )
    return inpaint(model, tokens.masked_fill(positions, model.MASK), sampler)
