"""Claims about sparse attention: number of pairs and layers until all positions are connected (Diehl sec. 4)."""

from functools import partial
from math import isqrt

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from parnassus.atlas import Evidence, all_of, claim, close, less_equal, rate
from parnassus.attention.core.dot_product import attention
from parnassus.attention.core.masks import causal_mask
from parnassus.attention.efficient.sparse import (
    band_mask,
    block_mask,
    count_pairs,
    dilated_mask,
    global_mask,
    layers_until_connected,
    local_attention,
    random_mask,
    strided_mask,
)
from parnassus.attention.fast.peak_memory import peak_memory

LENGTHS = (64, 144, 256, 576, 1024)


@claim("C-22")
def sparse_patterns_compute_few_pairs() -> Evidence:
    """Bands, dilated bands, blocks, global nodes and random links have O(n) pairs, strides O(n √n) (Diehl sec. 4)."""
    generator = torch.Generator().manual_seed(0)
    lengths = torch.tensor(LENGTHS, dtype=torch.float64)
    counts = {
        "band": [count_pairs(band_mask(n, 4)) for n in LENGTHS],
        "dilated": [count_pairs(dilated_mask(n, 4, 2)) for n in LENGTHS],
        "blocks": [count_pairs(block_mask(n, 16)) for n in LENGTHS],
        "global_nodes": [count_pairs(global_mask(n, [0, 1])) for n in LENGTHS],
        "random": [count_pairs(random_mask(n, 8, generator=generator)) for n in LENGTHS],
        "strided": [count_pairs(strided_mask(n, isqrt(n))) for n in LENGTHS],
    }
    closed = torch.tensor([n * 9 - 20 for n in LENGTHS])
    return all_of(
        number_of_pairs_in_a_band=close(torch.stack(counts["band"]), closed),
        number_of_pairs_with_global_nodes=close(
            torch.stack(counts["global_nodes"]), torch.tensor([4 * n - 4 for n in LENGTHS])
        ),
        number_of_random_pairs=close(torch.stack(counts["random"]), torch.tensor([8 * n for n in LENGTHS])),
        **{
            name: rate(lengths, torch.stack(count).double(), 1.5 if name == "strided" else 1.0, atol=0.07)
            for name, count in counts.items()
        },
    )


@claim("C-22")
def sparse_patterns_connect_all_positions_in_few_layers() -> Evidence:
    """A band connects all positions in (n − 1)/reach layers, a global token or strides of √n in two (Diehl sec. 4)."""
    generator = torch.Generator().manual_seed(0)
    num_layers = {
        "band": layers_until_connected(band_mask(64, 9)),
        "global": layers_until_connected(global_mask(64, [0])),
        "strided": layers_until_connected(strided_mask(64, 8)),
        "random": layers_until_connected(random_mask(64, 8, generator=generator)),
        "blocks": layers_until_connected(block_mask(64, 8)),
    }
    return all_of(
        band=close(num_layers["band"] or 0, 7),
        global_node=close(num_layers["global"] or 0, 2),
        strided=close(num_layers["strided"] or 0, 2),
        random=less_equal(num_layers["random"] or 99, 4),
        blocks_are_never_connected=close(float(num_layers["blocks"] is None), 1.0),
    )


@claim("C-22")
def local_attention_cost_is_linear_in_the_length() -> Evidence:
    """Blockwise it equals masked exact attention, with multiplications and bytes that grow as n (Diehl sec. 4)."""
    generator = torch.Generator().manual_seed(0)
    parts, counts, memory = {}, [], []
    for length in LENGTHS:
        query, key, value = (torch.randn(1, length, 8, generator=generator, dtype=torch.float64) for _ in range(3))
        compute = partial(local_attention, query, key, value, 16)
        with sdpa_kernel(SDPBackend.MATH):  # operations of a fused kernel are not counted
            with FlopCounterMode(display=False) as counter:
                compute()
            counts.append(counter.get_total_flops())
            memory.append(peak_memory(compute))
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
        bytes=rate(lengths, torch.tensor(memory), 1.0, atol=0.05),
    )
