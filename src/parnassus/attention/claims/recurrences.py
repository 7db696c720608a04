"""Claims about the tutorial on linear recurrences: what its transformer may see, and what it has to know."""

from functools import partial

import torch
from torch import Tensor, nn

from parnassus.atlas import Correction, Evidence, all_of, at_most, claim, close, erratum
from parnassus.attention.block import Block, feed_forward
from parnassus.attention.experiments.linear_recurrences import NextTerm, least_nats, recurrences
from parnassus.attention.self_attention import SelfAttention
from parnassus.attention.sinusoidal import SinusoidalEmbedding


def transformer(*, causal: bool) -> NextTerm:
    torch.manual_seed(0)
    blocks = [
        Block(SelfAttention(32, 2, causal=causal), feed_forward(32, 32), norm=partial(nn.LayerNorm, 32))
        for _ in range(2)
    ]
    return NextTerm(SinusoidalEmbedding(97, 32), blocks).requires_grad_(False)


def leak(model: NextTerm) -> Tensor:
    """How much the guess of a term changes when that term, and nothing before it, is another one."""
    terms = recurrences(97)[-1:, :12].expand(11, -1)
    other = terms.clone()
    index = torch.arange(11)
    other[index, index + 1] = (terms[index, index + 1] + 1) % 97
    changed: Tensor = model(other) - model(terms)
    return changed[index, index].abs().amax(-1)


@erratum("C-12", printed="self-attention without a mask", right="a causal mask: place t sees s_0 … s_t")
def the_answer_lies_open_in_the_input() -> Correction:
    """In the tutorial the guess of s_{t+1} may look at s_{t+1} itself, which stands in the input (Diehl sec. 3)."""
    seen, hidden = leak(transformer(causal=False)), leak(transformer(causal=True))
    return Correction(printed=at_most(seen, 1e-5), corrected=at_most(hidden, 1e-5))


@claim("C-12")
def three_terms_say_everything() -> Evidence:
    """H(s_{t+1} | s_0 … s_t) is log 3 twice, for a and for b, and 0 afterwards (Diehl sec. 3)."""
    least = least_nats(recurrences(97))
    guess = torch.tensor(3.0, dtype=torch.float64).log()
    return all_of(two_guesses=close(least[:2], guess, atol=1e-12), then_none=close(least[2:], 0.0, atol=1e-12))


@claim("C-12")
def terms_grow_beyond_a_vocabulary() -> Evidence:
    """Counted without a modulus the terms go up to 409,152, from 3 with a = b = 2 (Diehl sec. 3)."""
    return all_of(
        largest=close(int(recurrences(10_000_019).max()), 409_152),
        sequences=close(len(recurrences(97).unique(dim=0)), 27),
        with_a_prime=at_most(int(recurrences(97).max()), 96),
    )
