"""Vector quantisation with codebooks learned by gradient or moving averages (book sec. 13.3.1)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import embedding, mse_loss, one_hot

from parnassus.arrays import accepts_arrays
from parnassus.probability import entropy


def nearest_code_indices(
    vectors: Float[Tensor, "*batch dim"], codebook: Float[Tensor, "codes dim"]
) -> Int[Tensor, "*batch"]:
    """argmin_k ‖z − e_k‖², the index of the nearest code (van den Oord et al. 2017, eq. 1)."""
    products = vectors @ codebook.mT
    return (codebook.square().sum(1) - 2 * products).argmin(-1)  # ‖z‖² is the same for all codes


def straight_through(vectors: Float[Tensor, "*shape"], quantised: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The straight-through estimator: the value of `quantised`, the gradient of `vectors` (Bengio et al. 2013)."""
    return vectors + (quantised - vectors).detach()


def codebook_perplexity(indices: Int[Tensor, "*batch"], codes: int) -> Float[Tensor, ""]:
    """The exponential of the entropy of the code frequencies: from 1, one code used, to `codes`, all used equally."""
    frequencies = torch.bincount(indices.flatten(), minlength=codes).double() / indices.numel()
    return entropy(frequencies).exp()


class _Codes(nn.Module):
    """K codes e_k, with the search for the nearest one."""

    codes: Tensor

    def forward(self, vectors: Float[Tensor, "*batch dim"]) -> Int[Tensor, "*batch"]:
        """The indices of the nearest codes."""
        return nearest_code_indices(vectors, self.codes)

    def lookup(self, indices: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch dim"]:
        return embedding(indices, self.codes)


class Codebook(_Codes):
    """K codes e_k learned by gradient (van den Oord et al. 2017, eq. 3).

        ‖sg[z] − e‖² + commitment ‖z − sg[e]‖²,   e the code nearest to z, sg[·] stops the gradient

    The first term moves codes towards the vectors assigned to them, the second keeps the vectors near their codes.
    """

    codes: nn.Parameter

    def __init__(self, count: int, dim: int, *, commitment: float = 0.25) -> None:
        super().__init__()
        _check_sizes(count, dim, commitment)
        self.codes = nn.Parameter(torch.randn(count, dim) / dim**0.5)
        self.commitment = commitment

    @accepts_arrays
    def loss(self, vectors: Float[Tensor, "*batch dim"], indices: Int[Tensor, "*batch"]) -> Float[Tensor, ""]:
        quantised = self.lookup(indices)
        return mse_loss(quantised, vectors.detach()) + self.commitment * mse_loss(vectors, quantised.detach())

    def update(self, _vectors: Float[Tensor, "*batch dim"], _indices: Int[Tensor, "*batch"]) -> None:
        """Do nothing: the optimiser updates these codes."""


class EMACodebook(_Codes):
    """K codes updated as exponential moving averages of their vectors; dead codes restart at vectors of the batch.

        N_k ← γ N_k + (1 − γ) n_k,   m_k ← γ m_k + (1 − γ) Σ z of code k,   e_k = m_k / N_k

    This is online k-means (van den Oord et al. 2017, app. A): codes receive no gradient, and only the commitment term
    of the loss remains. A code restarts when N_k falls below `restart_threshold` times the mean count.
    """

    counts: Tensor
    sums: Tensor

    def __init__(
        self, count: int, dim: int, *, commitment: float = 0.25, decay: float = 0.99, restart_threshold: float = 0.02
    ) -> None:
        super().__init__()
        _check_sizes(count, dim, commitment)
        if not (0 <= decay < 1 and 0 <= restart_threshold < 1):
            raise ValueError(
                "decay and restart_threshold must lie in [0, 1); "
                f"got decay={decay}, restart_threshold={restart_threshold}"
            )
        self.commitment, self.decay, self.restart_threshold = commitment, decay, restart_threshold
        codes = torch.randn(count, dim) / dim**0.5
        self.register_buffer("codes", codes)
        self.register_buffer("counts", torch.ones(count))
        self.register_buffer("sums", codes.clone())

    @accepts_arrays
    def loss(self, vectors: Float[Tensor, "*batch dim"], indices: Int[Tensor, "*batch"]) -> Float[Tensor, ""]:
        return self.commitment * mse_loss(vectors, self.lookup(indices))

    @torch.no_grad()
    def update(self, vectors: Float[Tensor, "*batch dim"], indices: Int[Tensor, "*batch"]) -> None:
        """Update the moving averages with a batch, and restart dead codes."""
        flat = vectors.detach().flatten(0, -2)
        assignments = one_hot(indices.flatten(), len(self.codes)).to(flat)
        self.counts.lerp_(assignments.sum(0), 1 - self.decay)
        self.sums.lerp_(assignments.mT @ flat, 1 - self.decay)
        mean_count = self.counts.mean()
        dead = self.counts < self.restart_threshold * mean_count
        restarts = flat[torch.randint(len(flat), (len(self.codes),), device=flat.device)]
        self.sums.copy_(torch.where(dead[:, None], mean_count * restarts, self.sums))
        self.counts.copy_(torch.where(dead, mean_count, self.counts))
        self.codes.copy_(self.sums / self.counts[:, None])


def _check_sizes(count: int, dim: int, commitment: float) -> None:
    if count < 1 or dim < 1 or commitment < 0:
        raise ValueError(
            "count and dim must be positive and commitment not negative; "
            f"got count={count}, dim={dim}, commitment={commitment}"
        )
