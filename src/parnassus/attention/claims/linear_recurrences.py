"""Claims about the tutorial on linear recurrences: causal masking and conditional entropies (Diehl sec. 3)."""

from functools import partial

import torch
from torch import Tensor, nn

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, less_equal
from parnassus.attention.core.self_attention import SelfAttention
from parnassus.attention.models.block import Block, feed_forward
from parnassus.attention.models.recurrence_predictor import (
    RecurrencePredictor,
    conditional_entropies,
    linear_recurrences,
)
from parnassus.attention.positions.sinusoidal import SinusoidalEmbedding


def transformer(*, causal: bool) -> RecurrencePredictor:
    torch.manual_seed(0)
    blocks = [
        Block(SelfAttention(32, 2, causal=causal), feed_forward(32, 32), norm=partial(nn.LayerNorm, 32))
        for _ in range(2)
    ]
    return RecurrencePredictor(SinusoidalEmbedding(97, 32), blocks).requires_grad_(False)


def target_leakage(model: RecurrencePredictor) -> Tensor:
    """Change of the prediction of a term when only this term of the input is changed."""
    terms = linear_recurrences(97)[-1:, :12].expand(11, -1)
    changed_terms = terms.clone()
    index = torch.arange(11)
    changed_terms[index, index + 1] = (terms[index, index + 1] + 1) % 97
    difference: Tensor = model(changed_terms) - model(terms)
    return difference[index, index].abs().amax(-1)


@erratum("C-12", printed="self-attention without a mask", right="a causal mask: position t attends to s_0 … s_t")
def without_a_causal_mask_the_target_is_visible() -> Correction:
    """In the tutorial the prediction of s_{t+1} may attend to s_{t+1}, which is in the input (Diehl sec. 3)."""
    unmasked, masked = target_leakage(transformer(causal=False)), target_leakage(transformer(causal=True))
    return Correction(printed=less_equal(unmasked, 1e-5), corrected=less_equal(masked, 1e-5))


@claim("C-12")
def three_terms_determine_a_linear_recurrence() -> Evidence:
    """H(s_{t+1} | s_0 … s_t) is log 3 for two terms, which reveal a and b, and 0 afterwards (Diehl sec. 3)."""
    entropies = conditional_entropies(linear_recurrences(97))
    log_3 = torch.tensor(3.0, dtype=torch.float64).log()
    return all_of(
        two_uncertain_terms=close(entropies[:2], log_3, atol=1e-12),
        none_afterwards=close(entropies[2:], 0.0, atol=1e-12),
    )


@claim("C-12")
def terms_without_a_modulus_exceed_the_vocabulary() -> Evidence:
    """Without a modulus the terms reach 409,152, starting from 3 with a = b = 2 (Diehl sec. 3)."""
    return all_of(
        largest_term=close(int(linear_recurrences(10_000_019).max()), 409_152),
        number_of_sequences=close(len(linear_recurrences(97).unique(dim=0)), 27),
        largest_term_modulo_97=less_equal(int(linear_recurrences(97).max()), 96),
    )
