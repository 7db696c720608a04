"""Claims about the divergence of general laws, and what it costs in code (Diehl sec. 6; book sec. 6.1)."""

from itertools import product
from math import e, log

import torch
from torch import Tensor
from torch.distributions import Categorical, Normal
from torch.distributions import kl_divergence as library_divergence

from parnassus.atlas import Evidence, all_of, at_least, at_most, claim, close, raises
from parnassus.probability.arithmetic_code import ArithmeticCode
from parnassus.probability.claims.distances import random_distributions
from parnassus.probability.claims.divergences import row
from parnassus.probability.claims.expectations import normals
from parnassus.probability.codes import huffman_lengths, prefix_words, shannon_lengths
from parnassus.probability.divergences import entropy, kl_divergence
from parnassus.probability.expectation import expectation_by_quadrature
from parnassus.probability.relative_entropy import (
    absolutely_continuous,
    density_ratio,
    kl_by_quadrature,
    kl_by_sampling,
)


def normal(mean: float, std: float) -> Normal:
    return Normal(*torch.tensor([mean, std], dtype=torch.float64))


NARROW, WIDE = normal(0.0, 1.0), normal(1.0, 2**0.5)  # KL(NARROW ‖ WIDE) = ½ log 2


def negative_part(p: Tensor, q: Tensor) -> Tensor:
    """E_P[min(0, log dP/dQ)] of two tables without zeros."""
    ratio: Tensor = p / q
    return (p * ratio.log().clamp(max=0)).sum(-1)


@claim("B6.1-1", "D6.0.1")
def sum_integral_and_sample_agree() -> Evidence:
    """KL of two bells by its closed form, by quadrature, as a sum over fine bins and from draws (Diehl sec. 6)."""
    exact = library_divergence(NARROW, WIDE)
    edges = torch.linspace(-12, 12, 4_001, dtype=torch.float64)
    binned = torch.stack([law.cdf(edges).diff() for law in (NARROW, WIDE)])
    p, q = binned / binned.sum(-1, keepdim=True)
    sampled = kl_by_sampling(NARROW.log_prob, WIDE.log_prob, normals(100_000))
    tables = random_distributions(2, 6)
    return all_of(
        closed_form=close(exact, log(2) / 2, atol=1e-15),
        quadrature=close(kl_by_quadrature(NARROW.log_prob, WIDE.log_prob, low=-12.0, high=12.0), exact, atol=1e-12),
        sum_over_bins=close(kl_divergence(p, q), exact, atol=1e-5),
        bins_lose=at_most(kl_divergence(p, q), exact),
        draws=at_most((sampled.mean - exact).abs(), 4 * sampled.error),
        tables=close(
            kl_divergence(*tables), library_divergence(*(Categorical(probs=each) for each in tables)), atol=1e-14
        ),
    )


@claim("D6.0.1")
def a_density_ratio_carries_q_to_p() -> Evidence:
    """P(A) = Σ_A (dP/dQ) Q for all 2⁵ events, and KL = E_P log dP/dQ; without P ≪ Q it is +∞ (Diehl sec. 6)."""
    p, q = random_distributions(2, 5, seed=3)
    p = torch.cat([p[:-1], row(0.0)]) / p[:-1].sum()  # Q may hold possible what P does not
    events = torch.tensor(list(product((0.0, 1.0), repeat=5)), dtype=torch.float64)
    ratio = density_ratio(p, q)
    possible = p > 0
    return all_of(
        every_event=close(events @ (ratio * q), events @ p, atol=1e-15),
        mean_log_ratio=close((p * ratio.log())[possible].sum(), kl_divergence(p, q), atol=1e-14),
        one_way_only=close(torch.stack([absolutely_continuous(p, q), absolutely_continuous(q, p)]), row(1.0, 0.0)),
        otherwise_infinite=close(kl_divergence(q, p), torch.inf),
        and_no_ratio=raises(ValueError, lambda: density_ratio(q, p)),
    )


@claim("D6.0.3")
def the_exercise_on_symmetry() -> Evidence:
    """Exercise: for P = (½, ½, 0) and Q = (¼, ¼, ½) one way is log 2, the other +∞ (Diehl sec. 6)."""
    p, q = row(0.5, 0.5, 0.0), row(0.25, 0.25, 0.5)
    return all_of(
        forwards=close(kl_divergence(p, q), log(2), atol=1e-15), backwards=close(kl_divergence(q, p), torch.inf)
    )


@claim("D6.0.5")
def the_negative_part_is_at_most_one_over_e() -> Evidence:
    """E_P[log⁻ dP/dQ] ≤ 1/e, so no −∞ can meet the +∞, not even for a Cauchy against a normal law (Diehl lem. 6.2)."""
    p, q = random_distributions(5_000, 4), random_distributions(5_000, 4, seed=1)
    steep = torch.linspace(0.001, 0.999, 999, dtype=torch.float64)  # P(1) = s/e against Q(1) = s, and the rest
    worst = negative_part(torch.stack([steep / e, 1 - steep / e], -1), torch.stack([steep, 1 - steep], -1))
    cauchy = torch.distributions.Cauchy(row(0.0)[0], row(1.0)[0])
    reaches = (1e2, 1e3, 1e4)
    grown = torch.stack(
        [kl_by_quadrature(cauchy.log_prob, NARROW.log_prob, low=-r, high=r, points=400_001) for r in reaches]
    )
    below = expectation_by_quadrature(
        lambda x: (cauchy.log_prob(x) - NARROW.log_prob(x)).clamp(max=0),
        lambda x: cauchy.log_prob(x).exp(),
        low=-1e3,
        high=1e3,
        points=400_001,
    )
    return all_of(
        tables=at_least(negative_part(p, q), -1 / e),
        nearly_reached=close(worst.min(), -1 / e, atol=1e-3),
        cauchy_has_it_too=at_least(below, -1 / e),
        cauchy_against_normal_grows_without_end=at_least(grown.diff(), 100.0),
    )


@claim("D6.0.5")
def smooth_maps_leave_the_divergence_alone() -> Evidence:
    """KL(Ψ_*P ‖ Ψ_*Q) = KL(P ‖ Q) for Ψ = sinh; a map that folds the line loses some of it (Diehl lem. 6.2)."""

    def stretched(law: Normal, y: Tensor) -> Tensor:  # density of sinh(X): p(arsinh y) / √(1 + y²)
        before: Tensor = law.log_prob(y.asinh())
        return before - torch.log1p(y.square()) / 2

    y = torch.linspace(-9, 9, 400_001, dtype=torch.float64).sinh()
    p, q = stretched(NARROW, y), stretched(WIDE, y)
    integral = torch.trapezoid(p.exp() * (p - q), y)

    def folded(law: Normal, x: Tensor) -> Tensor:  # density of |X| on the positive half
        return torch.logaddexp(law.log_prob(x), law.log_prob(-x))

    lost = kl_by_quadrature(lambda x: folded(NARROW, x), lambda x: folded(WIDE, x), low=0.0, high=15.0, points=200_001)
    return all_of(
        mass=close(torch.trapezoid(p.exp(), y), 1.0, atol=1e-8),
        sinh=close(integral, 0.346574, atol=1e-6),
        folding_loses=at_most(lost, 0.34),
        folding_keeps_some=at_least(lost, 0.01),
    )


@claim("D6.0.2")
def a_wrong_code_wastes_the_divergence() -> Evidence:
    """Draws of P spelled with codes made for Q take H(P) + KL(P ‖ Q) bits each: within 1, or exactly (Diehl sec. 6)."""
    frequencies = (23, 13, 11, 7, 5, 3, 2)
    p, q = random_distributions(1, 7, seed=5)[0], torch.tensor(frequencies, dtype=torch.float64) / sum(frequencies)
    letters = torch.multinomial(p, 4_000, replacement=True, generator=torch.Generator().manual_seed(0)).tolist()
    seen = torch.bincount(torch.tensor(letters), minlength=7).double() / len(letters)
    waste = {}
    for name, lengths in (("shannon", shannon_lengths(q)), ("huffman", huffman_lengths(q))):
        words = prefix_words(lengths)
        waste[name] = len("".join(words[letter] for letter in letters)) / len(letters) - entropy(seen, base=2.0)
    code = ArithmeticCode(frequencies)
    message = code.encode(letters)
    arithmetic = len(message) / len(letters) - entropy(seen, base=2.0)
    extra = kl_divergence(seen, q, base=2.0)
    return all_of(
        surprise_difference=close((seen * (seen / q).log2()).sum(), extra, atol=1e-12),
        shannon_within_a_bit=at_most((waste["shannon"] - extra - 0.5).abs(), 0.5),
        huffman_within_a_bit=at_most((waste["huffman"] - extra).abs(), 1.0),
        arithmetic_to_two_bits_a_message=at_most((arithmetic - extra) * len(letters), 2.0),
        and_not_below=at_least((arithmetic - extra) * len(letters), -1e-6),
        read_back=close(torch.tensor(code.decode(message, 300)), torch.tensor(letters[:300])),
    )
