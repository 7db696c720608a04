"""Claims about vector quantisation and the VQ-VAE (book sec. 13.3.1)."""

from math import log2

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, at_least, at_most, claim, close
from parnassus.latent.code_priors import IndependentPrior, NeighbourPrior
from parnassus.latent.vector_quantiser import Codebook, MovingCodebook, nearest_code, perplexity, straight_through


def cloud(count: int = 4_000, dim: int = 2) -> Tensor:
    return torch.randn(count, dim, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@claim("B13.3.1-10")
def the_gradient_passes_the_rounding_as_if_it_were_not_there() -> Evidence:
    """Straight through: the value is the code's, the slope by the encoder's output the identity (book sec. 13.3.1)."""
    z, codes = cloud(3).requires_grad_(), cloud(7, 2) + 0.1
    rounded = codes[nearest_code(z, codes)]
    jacobian = torch.autograd.functional.jacobian(
        lambda v: straight_through(v, codes[nearest_code(v, codes)]).flatten(), z.detach()
    ).reshape(6, 6)
    honest = torch.autograd.functional.jacobian(
        lambda v: codes[nearest_code(v, codes)].flatten() + 0 * v.sum(), z.detach()
    )
    return all_of(
        value=close(straight_through(z, rounded), rounded, atol=1e-15),
        slope=close(jacobian, torch.eye(6), atol=1e-15),
        the_true_slope_is_zero=close(honest, 0.0),
    )


@claim("B13.3.1-10")
def each_term_of_the_codebook_loss_moves_its_own_side() -> Evidence:
    """‖sg[z] − e‖² moves codes only, commitment ‖z − sg[e]‖² the encoder only (book sec. 13.3.1)."""
    torch.manual_seed(0)
    z = cloud(50).requires_grad_()
    book = Codebook(4, 2, commitment=0.25).double()
    indices = book(z)
    to_codes, to_vectors = torch.autograd.grad(book.loss(z, indices), [book.codes, z])
    apart = 2 * (z - book.lookup(indices)).detach() / z.numel()
    pull = torch.zeros_like(to_codes).index_add(0, indices, -apart)
    return all_of(codes=close(to_codes, pull, atol=1e-12), vectors=close(to_vectors, 0.25 * apart, atol=1e-12))


@claim("B13.3.1-10")
def more_codes_rebuild_better() -> Evidence:
    """The squared error of a plane cloud falls as 1/K, that is as 2^(−2 bits/dim), with K codes (book sec. 13.3.1)."""
    x, errors = cloud(), []
    for count in (4, 16, 64):
        torch.manual_seed(0)
        book = MovingCodebook(count, 2, decay=0.5).double()
        for _ in range(60):
            book.update(x, book(x))
        errors.append((x - book.lookup(book(x))).square().sum(1).mean())
    from_rate = torch.stack(errors).log2().diff() / torch.tensor([log2(16 / 4), log2(64 / 16)])
    return all_of(falls=at_most(torch.stack(errors).diff(), 0.0), exponent=close(from_rate, -1.0, atol=0.25))


@claim("B13.3.1-10")
def dead_codes_are_brought_back() -> Evidence:
    """Codes far from all data are never chosen; reborn among the data they are in use (book sec. 13.3.1)."""
    x, used = cloud(), {}
    for rebirth in (0.0, 0.05):
        torch.manual_seed(0)
        book = MovingCodebook(32, 2, decay=0.9, rebirth=rebirth).double()
        book.codes[2:] += 100
        book.sums.copy_(book.codes)
        for _ in range(100):
            book.update(x, book(x))
        used[rebirth] = perplexity(book(x), 32)
    return all_of(dead=at_most(used[0.0], 2.0), reborn=at_least(used[0.05], 20.0))


@claim("B13.3.1-10")
def a_prior_that_looks_back_needs_fewer_bits() -> Evidence:
    """Of codes that repeat, an independent prior pays for all, one that looks back for one (book sec. 13.3.1)."""
    torch.manual_seed(0)
    codes = torch.arange(64)[:, None].expand(-1, 6) % 4
    frequencies, neighbours = IndependentPrior.fit(codes, 4), NeighbourPrior(4, (2, 3), width=16)
    optimizer = torch.optim.Adam(neighbours.parameters(), lr=0.05)
    for _ in range(60):
        optimizer.zero_grad()
        neighbours.loss(codes).backward()
        optimizer.step()
    one = torch.tensor(4.0).log()
    return all_of(
        frequencies=close(frequencies.loss(codes), 6 * one, atol=1e-5),
        neighbours=close(neighbours.loss(codes), one, atol=0.1),
    )
