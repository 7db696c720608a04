"""Filling gaps in a melody, and varying it by making some: what is not hidden stays (book sec. 10.1.2)."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from parnassus.attention.bert import MaskedLanguageModel
from parnassus.text.choosing import Choose


@torch.no_grad()
def fill_in_turn(
    model: MaskedLanguageModel, tokens: Int[Tensor, "batch time"], choose: Choose
) -> Int[Tensor, "batch time"]:
    """Each hidden note from p(x_t | all that is known by now), in each row the surest gap first (book sec. 10.1.2).

    Notes filled all at once, as `MaskedLanguageModel.fill` does it, do not know each other: where a bar could be one
    of two figures, they mix them. One after the other they can agree. It takes a reading for each gap of a row.
    """
    tokens = tokens.clone()
    rows = torch.arange(len(tokens), device=tokens.device)
    for _ in range(int((tokens == model.MASK).sum(1).max())):
        hidden = tokens == model.MASK
        logits = model(tokens)[..., model.FIRST :]
        surest = logits.softmax(-1).amax(-1).where(hidden, -1.0).argmax(1)
        chosen = choose(logits[rows, surest]) + model.FIRST
        tokens[rows, surest] = torch.where(hidden.any(1), chosen, tokens[rows, surest])
    return tokens


def vary(
    model: MaskedLanguageModel, tokens: Int[Tensor, "batch time"], places: Bool[Tensor, " notes"], choose: Choose
) -> Int[Tensor, "batch time"]:
    """A variation: the notes at these places are forgotten and found anew, the others stay (book sec. 10.1.2)."""
    if len(places) != tokens.shape[1]:
        raise ValueError(f"say of each note whether to vary it; got {len(places)} for {tokens.shape[1]} notes")
    return fill_in_turn(model, tokens.masked_fill(places, model.MASK), choose)
