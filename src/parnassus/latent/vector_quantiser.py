"""Vector quantisation: every vector is replaced by the nearest of finitely many codes (book sec. 13.3.1)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import embedding, mse_loss, one_hot

from parnassus.probability.divergences import entropy


def nearest_code(vectors: Float[Tensor, "*batch dim"], codebook: Float[Tensor, "codes dim"]) -> Int[Tensor, "*batch"]:
    """argmin_k ‖z − e_k‖², the number of the nearest code (van den Oord et al. 2017, eq. 1)."""
    products = vectors @ codebook.mT
    return (codebook.square().sum(1) - 2 * products).argmin(-1)  # ‖z‖² is the same for all codes


def straight_through(vectors: Float[Tensor, "*shape"], quantised: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The value of `quantised` with the gradient of `vectors`, as if one were the other (Bengio et al. 2013)."""
    return vectors + (quantised - vectors).detach()


def perplexity(indices: Int[Tensor, "*batch"], codes: int) -> Float[Tensor, ""]:
    """The exponential of the entropy of the codes' frequencies: from 1, all alike, to all `codes` in equal use."""
    share = torch.bincount(indices.flatten(), minlength=codes).double() / indices.numel()
    return entropy(share).exp()


class Codebook(nn.Module):
    """K codes e_k learned by gradient (van den Oord et al. 2017, eq. 3).

        ‖sg[z] − e‖² + commitment ‖z − sg[e]‖²,   e the code nearest to z, sg[·] without gradient

    The first term draws codes to the vectors they stand for, the second keeps the vectors near their codes.
    """

    codes: nn.Parameter

    def __init__(self, count: int, dim: int, *, commitment: float = 0.25) -> None:
        super().__init__()
        _require(count, dim, commitment)
        self.codes = nn.Parameter(torch.randn(count, dim) / dim**0.5)
        self.commitment = commitment

    def forward(self, vectors: Float[Tensor, "*batch dim"]) -> Int[Tensor, "*batch"]:
        """The codes' numbers."""
        return nearest_code(vectors, self.codes)

    def lookup(self, indices: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch dim"]:
        return embedding(indices, self.codes)

    def loss(self, vectors: Float[Tensor, "*batch dim"], indices: Int[Tensor, "*batch"]) -> Float[Tensor, ""]:
        chosen = self.lookup(indices)
        return mse_loss(chosen, vectors.detach()) + self.commitment * mse_loss(vectors, chosen.detach())

    def update(self, _vectors: Float[Tensor, "*batch dim"], _indices: Int[Tensor, "*batch"]) -> None:
        """Nothing: the optimiser moves these codes."""


class MovingCodebook(nn.Module):
    """K codes that are moving averages of the vectors they stand for; unused ones are reborn as vectors of the batch.

        N_k ← γ N_k + (1 − γ) n_k,   m_k ← γ m_k + (1 − γ) Σ z of code k,   e_k = m_k / N_k

    On-line k-means (van den Oord et al. 2017, app. A): no gradient reaches the codes, so only the commitment term is
    left of the loss. A code is reborn when N_k falls below `rebirth` times its fair share.
    """

    codes: Tensor
    counts: Tensor
    sums: Tensor

    def __init__(
        self, count: int, dim: int, *, commitment: float = 0.25, decay: float = 0.99, rebirth: float = 0.02
    ) -> None:
        super().__init__()
        _require(count, dim, commitment)
        if not (0 <= decay < 1 and 0 <= rebirth < 1):
            raise ValueError(f"need 0 ≤ decay < 1 and 0 ≤ rebirth < 1; got decay={decay}, rebirth={rebirth}")
        self.commitment, self.decay, self.rebirth = commitment, decay, rebirth
        codes = torch.randn(count, dim) / dim**0.5
        self.register_buffer("codes", codes)
        self.register_buffer("counts", torch.ones(count))
        self.register_buffer("sums", codes.clone())

    def forward(self, vectors: Float[Tensor, "*batch dim"]) -> Int[Tensor, "*batch"]:
        """The codes' numbers."""
        return nearest_code(vectors, self.codes)

    def lookup(self, indices: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch dim"]:
        return embedding(indices, self.codes)

    def loss(self, vectors: Float[Tensor, "*batch dim"], indices: Int[Tensor, "*batch"]) -> Float[Tensor, ""]:
        return self.commitment * mse_loss(vectors, self.lookup(indices))

    @torch.no_grad()
    def update(self, vectors: Float[Tensor, "*batch dim"], indices: Int[Tensor, "*batch"]) -> None:
        """One step of the averages, and a new life for codes that hardly anything is near to."""
        flat = vectors.detach().flatten(0, -2)
        member = one_hot(indices.flatten(), len(self.codes)).to(flat)
        self.counts.lerp_(member.sum(0), 1 - self.decay)
        self.sums.lerp_(member.mT @ flat, 1 - self.decay)
        fair = self.counts.mean()
        dead = self.counts < self.rebirth * fair
        born = flat[torch.randint(len(flat), (len(self.codes),), device=flat.device)]
        self.sums.copy_(torch.where(dead[:, None], fair * born, self.sums))
        self.counts.copy_(torch.where(dead, fair, self.counts))
        self.codes.copy_(self.sums / self.counts[:, None])


def _require(count: int, dim: int, commitment: float) -> None:
    if count < 1 or dim < 1 or commitment < 0:
        raise ValueError(
            f"a codebook needs codes of some size and a commitment ≥ 0; got count={count}, dim={dim}, "
            f"commitment={commitment}"
        )
