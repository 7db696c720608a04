"""Linear recurrences, conditional entropies and greedy generation."""

from functools import partial
from math import log

import pytest
import torch
from torch import nn

from parnassus.attention.core.self_attention import SelfAttention
from parnassus.attention.models.block import Block, feed_forward
from parnassus.attention.models.recurrence_predictor import (
    RecurrencePredictor,
    conditional_entropies,
    linear_recurrences,
)
from parnassus.attention.positions.sinusoidal import SinusoidalEmbedding


def test_linear_recurrences_contain_the_fibonacci_sequence() -> None:
    rows = linear_recurrences(97).tolist()
    assert len(rows) == 27
    assert [1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144 % 97, 233 % 97] in rows
    with pytest.raises(ValueError, match="modulus must exceed the first terms, at most 3; got modulus=3"):
        linear_recurrences(3)


def test_entropy_of_independent_bits_is_log_two() -> None:
    bits = torch.cartesian_prod(*[torch.arange(2)] * 3)
    torch.testing.assert_close(conditional_entropies(bits), torch.full((2,), log(2), dtype=torch.float64))
    copies = bits[:, :1].expand(-1, 3)
    torch.testing.assert_close(conditional_entropies(copies), torch.zeros(2, dtype=torch.float64))


def test_generation_appends_the_most_probable_terms() -> None:
    torch.manual_seed(0)
    block = Block(SelfAttention(8, 2, causal=True), feed_forward(8), norm=partial(nn.LayerNorm, 8))
    model = RecurrencePredictor(SinusoidalEmbedding(11, 8), [block]).eval()
    terms = torch.tensor([[1, 2, 4]])
    generated = model.generate(terms, 2)
    assert torch.equal(generated[:, :3], terms)
    assert torch.equal(generated[:, 3:], model(generated[:, :-1])[:, 2:].argmax(-1))
