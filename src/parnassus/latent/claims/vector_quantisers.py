"""Claims about vector quantisation and the VQ-VAE (book sec. 13.3.1)."""

from math import log2

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal
from parnassus.latent.vector_quantised.code_priors import IndependentPrior, NeighbourPrior
from parnassus.latent.vector_quantised.codebook import (
    Codebook,
    EMACodebook,
    codebook_perplexity,
    nearest_code_indices,
    straight_through,
)
from parnassus.probability import standard_normal


def normal_rows(count: int = 4_000, dim: int = 2) -> Tensor:
    return standard_normal(count, dim)


@claim("B13.3.1-10")
def the_straight_through_gradient_is_the_identity() -> Evidence:
    """The straight-through estimator has the value of the code and the identity as Jacobian (book sec. 13.3.1)."""
    z, codes = normal_rows(3).requires_grad_(), normal_rows(7, 2) + 0.1
    quantised = codes[nearest_code_indices(z, codes)]
    jacobian = torch.autograd.functional.jacobian(
        lambda v: straight_through(v, codes[nearest_code_indices(v, codes)]).flatten(), z.detach()
    ).reshape(6, 6)
    true_jacobian = torch.autograd.functional.jacobian(
        lambda v: codes[nearest_code_indices(v, codes)].flatten() + 0 * v.sum(), z.detach()
    )
    return all_of(
        value=close(straight_through(z, quantised), quantised, atol=1e-15),
        jacobian=close(jacobian, torch.eye(6), atol=1e-15),
        true_jacobian_is_zero=close(true_jacobian, 0.0),
    )


@claim("B13.3.1-10")
def each_term_of_the_codebook_loss_has_its_own_gradient() -> Evidence:
    """‖sg[z] − e‖² has gradients for codes only, commitment ‖z − sg[e]‖² for the encoder only (book sec. 13.3.1)."""
    torch.manual_seed(0)
    z = normal_rows(50).requires_grad_()
    codebook = Codebook(4, 2, commitment=0.25).double()
    indices = codebook(z)
    code_gradient, encoder_gradient = torch.autograd.grad(codebook.loss(z, indices), [codebook.codes, z])
    differences = 2 * (z - codebook.lookup(indices)).detach() / z.numel()
    expected = torch.zeros_like(code_gradient).index_add(0, indices, -differences)
    return all_of(
        codes=close(code_gradient, expected, atol=1e-12),
        vectors=close(encoder_gradient, 0.25 * differences, atol=1e-12),
    )


@claim("B13.3.1-10")
def the_quantisation_error_decreases_with_the_number_of_codes() -> Evidence:
    """In two dimensions the squared error decreases as 1/K, i.e. 2^(−2 bits/dim), with K codes (book sec. 13.3.1)."""
    x, errors = normal_rows(), []
    for count in (4, 16, 64):
        torch.manual_seed(0)
        codebook = EMACodebook(count, 2, decay=0.5).double()
        for _ in range(60):
            codebook.update(x, codebook(x))
        errors.append((x - codebook.lookup(codebook(x))).square().sum(1).mean())
    exponents = torch.stack(errors).log2().diff() / torch.tensor([log2(16 / 4), log2(64 / 16)])
    return all_of(
        error_decreases=less_equal(torch.stack(errors).diff(), 0.0), exponent=close(exponents, -1.0, atol=0.25)
    )


@claim("B13.3.1-10")
def unused_codes_are_restarted() -> Evidence:
    """Codes far from all data are never chosen; restarted at data points they are used (book sec. 13.3.1)."""
    x, perplexity = normal_rows(), {}
    for threshold in (0.0, 0.05):
        torch.manual_seed(0)
        codebook = EMACodebook(32, 2, decay=0.9, restart_threshold=threshold).double()
        codebook.codes[2:] += 100
        codebook.sums.copy_(codebook.codes)
        for _ in range(100):
            codebook.update(x, codebook(x))
        perplexity[threshold] = codebook_perplexity(codebook(x), 32)
    return all_of(
        without_restarts=less_equal(perplexity[0.0], 2.0), with_restarts=greater_equal(perplexity[0.05], 20.0)
    )


@claim("B13.3.1-10")
def an_autoregressive_prior_needs_fewer_bits() -> Evidence:
    """For six equal codes an autoregressive prior needs 1/6 of the bits of an independent one (book sec. 13.3.1)."""
    torch.manual_seed(0)
    codes = torch.arange(64)[:, None].expand(-1, 6) % 4
    frequencies, neighbours = IndependentPrior.fit(codes, 4), NeighbourPrior(4, (2, 3), width=16)
    optimizer = torch.optim.Adam(neighbours.parameters(), lr=0.05)
    for _ in range(60):
        optimizer.zero_grad()
        neighbours.loss(codes).backward()
        optimizer.step()
    one_code = torch.tensor(4.0).log()
    return all_of(
        independent_prior=close(frequencies.loss(codes), 6 * one_code, atol=1e-5),
        neighbour_prior=close(neighbours.loss(codes), one_code, atol=0.1),
    )
