"""Binary prefix codes: Shannon and Huffman code lengths, and codewords of given lengths (Diehl sec. 1.4)."""

from heapq import heapify, heappop, heappush

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.probability.distributions.simplex import check_distribution


def shannon_lengths(q: Float[Tensor, " outcomes"]) -> Int[Tensor, " outcomes"]:
    """⌈−log₂ q_i⌉ bits for outcome i: short codewords for probable outcomes.

    A prefix code with these lengths exists, since Σ_i 2^(−length_i) ≤ 1 (Kraft's inequality).
    """
    _check_positive_probabilities(q)
    return (-q.log2()).ceil().long()


def huffman_lengths(q: Float[Tensor, " outcomes"]) -> Int[Tensor, " outcomes"]:
    """Codeword lengths of the prefix code with the smallest expected length under Q (Huffman 1952).

    The two least probable groups are merged until one remains; each merge makes their codewords one bit longer.
    """
    _check_positive_probabilities(q)
    lengths = torch.zeros(len(q), dtype=torch.long, device=q.device)
    groups = [(float(probability), index, [index]) for index, probability in enumerate(q)]
    heapify(groups)
    while len(groups) > 1:
        (first, _, left), (second, order, right) = heappop(groups), heappop(groups)
        lengths[left + right] += 1
        heappush(groups, (first + second, order, left + right))
    return lengths


def kraft_sum(lengths: Int[Tensor, " outcomes"]) -> Float[Tensor, ""]:
    """Σ_i 2^(−length_i): at most 1 if and only if a prefix code with these lengths exists."""
    return torch.exp2(-lengths.double()).sum()


def prefix_codewords(lengths: Int[Tensor, " outcomes"]) -> list[str]:
    """Binary codewords of these lengths, none a prefix of another, in the order of the outcomes (canonical code).

    In order of length, each codeword is the previous one plus 1, padded with zeros on the right up to its length.
    """
    if not float(kraft_sum(lengths)) <= 1 or (len(lengths) > 1 and not int(lengths.min()) > 0):
        raise ValueError(f"no prefix code has these lengths: Σ 2^(−length) is {float(kraft_sum(lengths)):g}, above 1")
    words, number, previous = [""] * len(lengths), -1, 0
    for outcome in lengths.argsort(stable=True).tolist():
        length = int(lengths[outcome])
        number, previous = (number + 1) << (length - previous), length
        words[outcome] = f"{number:0{length}b}" if length else ""
    return words


def expected_length(p: Float[Tensor, " outcomes"], lengths: Int[Tensor, " words"]) -> Float[Tensor, ""]:
    """Σ_i p_i length_i: expected codeword length in bits under P."""
    check_distribution(p)
    if p.shape != lengths.shape:
        raise ValueError(f"lengths must have one entry per outcome; got {len(p)} outcomes, {len(lengths)} lengths")
    return p @ lengths.to(p.dtype)


def _check_positive_probabilities(q: Tensor) -> None:
    check_distribution(q, "q")
    if not float(q.min()) > 0:
        raise ValueError(
            f"q must be positive: an outcome of probability 0 has no codeword; got a minimum of {float(q.min()):g}"
        )
