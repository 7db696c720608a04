"""Claims about attention under several masks at once (Zhao sec. 11)."""

import torch

from parnassus.atlas import Evidence, all_of, claim, close
from parnassus.attention.core.dot_product import attention, fused_attention
from parnassus.attention.core.masks import causal_mask, length_mask


@claim("Z11.10")
def a_causal_mask_and_a_padding_mask_combine() -> Evidence:
    """Fused attention with causal and padding mask is the softmax over keys that both allow (Zhao sec. 11)."""
    generator = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(2, 4, width, dtype=torch.float64, generator=generator) for width in (3, 3, 5))
    padding = length_mask(torch.tensor([4, 2]), 4)
    both = torch.ones(4, 4, dtype=torch.bool).tril() & padding
    weights = (query @ key.mT / 3**0.5).masked_fill(~both, -torch.inf).softmax(-1)
    return all_of(
        fused=close(fused_attention(query, key, value, padding, causal=True), weights @ value, rtol=1e-10),
        explicit=close(attention(query, key, value, causal_mask(4) & padding).output, weights @ value, rtol=1e-10),
    )
