"""Claims about sparse patterns: how many pairs they compute, and how soon news gets around (Diehl sec. 4)."""

from functools import partial
from math import isqrt

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from parnassus.atlas import Evidence, all_of, at_most, claim, close, rate
from parnassus.attention.dot_product import attention
from parnassus.attention.masks import causal_mask
from parnassus.attention.peak_memory import peak_memory
from parnassus.attention.sparse import (
    band_mask,
    block_mask,
    dilated_mask,
    global_mask,
    local_attention,
    pairs,
    random_mask,
    steps_to_reach_all,
    strided_mask,
)

LENGTHS = (64, 144, 256, 576, 1024)


@claim("C-22")
def patterns_compute_few_pairs() -> Evidence:
    """Bands, dilated bands, blocks, global nodes and random links cost O(n) pairs, strides O(n √n) (Diehl sec. 4)."""
    source = torch.Generator().manual_seed(0)
    lengths = torch.tensor(LENGTHS, dtype=torch.float64)
    counts = {
        "band": [pairs(band_mask(n, 4)) for n in LENGTHS],
        "dilated": [pairs(dilated_mask(n, 4, 2)) for n in LENGTHS],
        "blocks": [pairs(block_mask(n, 16)) for n in LENGTHS],
        "global_nodes": [pairs(global_mask(n, [0, 1])) for n in LENGTHS],
        "random": [pairs(random_mask(n, 8, generator=source)) for n in LENGTHS],
        "strided": [pairs(strided_mask(n, isqrt(n))) for n in LENGTHS],
    }
    closed = torch.tensor([n * 9 - 20 for n in LENGTHS])
    return all_of(
        band_exactly=close(torch.stack(counts["band"]), closed),
        global_exactly=close(torch.stack(counts["global_nodes"]), torch.tensor([4 * n - 4 for n in LENGTHS])),
        random_exactly=close(torch.stack(counts["random"]), torch.tensor([8 * n for n in LENGTHS])),
        **{
            name: rate(lengths, torch.stack(count).double(), 1.5 if name == "strided" else 1.0, atol=0.07)
            for name, count in counts.items()
        },
    )


@claim("C-22")
def news_gets_around_in_few_layers() -> Evidence:
    """In a band it takes (n − 1)/reach layers to hear of all, with a global node or strides √n two (Diehl sec. 4)."""
    source = torch.Generator().manual_seed(0)
    steps = {
        "band": steps_to_reach_all(band_mask(64, 9)),
        "global": steps_to_reach_all(global_mask(64, [0])),
        "strided": steps_to_reach_all(strided_mask(64, 8)),
        "random": steps_to_reach_all(random_mask(64, 8, generator=source)),
        "blocks": steps_to_reach_all(block_mask(64, 8)),
    }
    return all_of(
        band=close(steps["band"] or 0, 7),
        global_node=close(steps["global"] or 0, 2),
        strided=close(steps["strided"] or 0, 2),
        random=at_most(steps["random"] or 99, 4),
        blocks_never=close(float(steps["blocks"] is None), 1.0),
    )


@claim("C-22")
def local_attention_pays_only_for_its_band() -> Evidence:
    """In blocks it equals masked exact attention, with multiplications and bytes that grow like n (Diehl sec. 4)."""
    source = torch.Generator().manual_seed(0)
    parts, counts, room = {}, [], []
    for length in LENGTHS:
        query, key, value = (torch.randn(1, length, 8, generator=source, dtype=torch.float64) for _ in range(3))
        compute = partial(local_attention, query, key, value, 16)
        with sdpa_kernel(SDPBackend.MATH):  # a fused kernel would hide what it does
            with FlopCounterMode(display=False) as counter:
                compute()
            counts.append(counter.get_total_flops())
            room.append(peak_memory(compute))
        if length <= 256:
            band = band_mask(length, 16)
            parts[f"length_{length}"] = close(
                local_attention(query, key, value, 16), attention(query, key, value, band).output, atol=1e-12
            )
            parts[f"causal_{length}"] = close(
                local_attention(query, key, value, 16, causal=True),
                attention(query, key, value, band & causal_mask(length)).output,
                atol=1e-12,
            )
    lengths = torch.tensor(LENGTHS, dtype=torch.float64)
    return all_of(
        **parts,
        multiplications=rate(lengths, torch.tensor(counts), 1.0, atol=0.05),
        bytes=rate(lengths, torch.tensor(room), 1.0, atol=0.05),
    )
