"""Claims about code lengths and Kullback-Leibler divergence (Diehl secs. 1.4 and 6)."""

import torch

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal
from parnassus.information.arithmetic_code import ArithmeticCode
from parnassus.information.prefix_codes import (
    expected_length,
    huffman_lengths,
    kraft_sum,
    prefix_codewords,
    shannon_lengths,
)
from parnassus.probability import float64_tensor, random_distributions
from parnassus.probability.divergences.entropy import entropy
from parnassus.probability.divergences.kl_divergence import kl_divergence


@claim("D1.4.4", "D1.4.6", "D6.0.2")
def divergence_is_extra_code_length() -> Evidence:
    """A code for Q costs KL(P ‖ Q) bits beyond the entropy H(P) under P, within one bit (Diehl sec. 1.4)."""
    pairs = zip(random_distributions(100, 7), random_distributions(100, 7, seed=1), strict=True)
    extra, shannon, huffman, kraft = torch.tensor(
        [
            (
                kl_divergence(p, q, base=2.0),
                expected_length(p, shannon_lengths(q)) - entropy(p, base=2.0),
                expected_length(q, huffman_lengths(q)) - entropy(q, base=2.0),
                torch.maximum(kraft_sum(shannon_lengths(q)), kraft_sum(huffman_lengths(q))),
            )
            for p, q in pairs
        ],
        dtype=torch.float64,
    ).T
    dyadic, other = float64_tensor(0.5, 0.25, 0.125, 0.125), float64_tensor(0.1, 0.2, 0.3, 0.4)
    exact = expected_length(other, huffman_lengths(dyadic)) - entropy(other, base=2.0)
    return all_of(
        at_least_kl=greater_equal(shannon, extra),
        within_a_bit=less_equal(shannon, extra + 1),
        huffman_at_least_entropy=greater_equal(huffman, 0.0),
        huffman_within_a_bit_of_entropy=less_equal(huffman, 1.0),
        prefix_codes_exist=less_equal(kraft, 1.0),
        exact_for_powers_of_two=close(exact, kl_divergence(other, dyadic, base=2.0), atol=1e-12),
    )


@claim("D6.0.2")
def codes_for_a_wrong_distribution_have_redundancy_kl() -> Evidence:
    """Samples of P coded for Q cost H(P) + KL(P ‖ Q) bits per symbol, within one bit or exactly (Diehl sec. 6)."""
    frequencies = (23, 13, 11, 7, 5, 3, 2)
    p, q = random_distributions(1, 7, seed=5)[0], torch.tensor(frequencies, dtype=torch.float64) / sum(frequencies)
    symbols = torch.multinomial(p, 4_000, replacement=True, generator=torch.Generator().manual_seed(0)).tolist()
    empirical = torch.bincount(torch.tensor(symbols), minlength=7).double() / len(symbols)
    redundancy = {}
    for name, lengths in (("shannon", shannon_lengths(q)), ("huffman", huffman_lengths(q))):
        codewords = prefix_codewords(lengths)
        redundancy[name] = len("".join(codewords[symbol] for symbol in symbols)) / len(symbols) - entropy(
            empirical, base=2.0
        )
    code = ArithmeticCode(frequencies)
    message = code.encode(symbols)
    arithmetic = len(message) / len(symbols) - entropy(empirical, base=2.0)
    extra = kl_divergence(empirical, q, base=2.0)
    return all_of(
        mean_log_ratio=close((empirical * (empirical / q).log2()).sum(), extra, atol=1e-12),
        shannon_within_a_bit=less_equal((redundancy["shannon"] - extra - 0.5).abs(), 0.5),
        huffman_within_a_bit=less_equal((redundancy["huffman"] - extra).abs(), 1.0),
        arithmetic_within_two_bits_per_message=less_equal((arithmetic - extra) * len(symbols), 2.0),
        arithmetic_not_below=greater_equal((arithmetic - extra) * len(symbols), -1e-6),
        decoded=close(torch.tensor(code.decode(message, 300)), torch.tensor(symbols[:300])),
    )
