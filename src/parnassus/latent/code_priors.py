"""Priors over the codes of a quantised image: how likely is this raster of indices, and what would another be?"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot, pad


class IndependentPrior(nn.Module):
    """∏_i π_i(k_i): a table of frequencies for each position, which knows nothing of the others."""

    def __init__(self, codes: int, positions: int) -> None:
        super().__init__()
        _require(codes, positions)
        self.positions = positions
        self.logits = nn.Parameter(torch.zeros(positions, codes))

    @classmethod
    def fit(cls, indices: Int[Tensor, "batch positions"], codes: int) -> "IndependentPrior":
        """Frequencies of the codes in `indices`, each counted once more than it occurs (Laplace's rule)."""
        prior = cls(codes, indices.shape[1]).to(indices.device)
        with torch.no_grad():
            prior.logits.copy_((one_hot(indices, codes).sum(0) + 1).log())
        return prior

    def log_prob(self, indices: Int[Tensor, "batch positions"]) -> Float[Tensor, " batch"]:
        log_share = self.logits.log_softmax(-1)
        return log_share.gather(1, indices.mT).sum(0)

    def loss(self, indices: Int[Tensor, "batch positions"]) -> Float[Tensor, ""]:
        """Mean of −log π over rasters."""
        return -self.log_prob(indices).mean()

    @torch.no_grad()
    def sample(self, count: int) -> Int[Tensor, "count positions"]:
        return torch.multinomial(self.logits.softmax(-1), count, replacement=True).mT


class NeighbourPrior(nn.Module):
    """∏_i π_i(k_i | left, above left, above, above right): a small network reads the neighbours already there.

    Row by row through a raster, so every condition lies in the past and the product is a distribution over rasters.
    """

    def __init__(self, codes: int, raster: tuple[int, int], *, width: int = 64) -> None:
        super().__init__()
        _require(codes, raster[0] * raster[1])
        self.codes, self.raster, self.positions = codes, raster, raster[0] * raster[1]
        self.neighbours = nn.ModuleList(nn.Embedding(codes + 1, width) for _ in range(4))  # the last: outside
        self.place = nn.Parameter(torch.zeros(*raster, width))
        self.head = nn.Sequential(nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, codes))

    def logits(self, indices: Int[Tensor, "batch positions"]) -> Float[Tensor, "batch positions codes"]:
        """The logits of each code given its neighbours."""
        rows, columns = self.raster
        framed = pad(indices.unflatten(1, self.raster), (1, 1, 1, 0), value=self.codes)
        left = framed[:, 1:, :columns]
        above = [framed[:, :rows, shift : shift + columns] for shift in range(3)]
        read = [embed(codes) for embed, codes in zip(self.neighbours, [left, *above], strict=True)]
        logits: Tensor = self.head(torch.stack(read).sum(0) + self.place)
        return logits.flatten(1, 2)

    def log_prob(self, indices: Int[Tensor, "batch positions"]) -> Float[Tensor, " batch"]:
        return -cross_entropy(self.logits(indices).mT, indices, reduction="none").sum(1)

    def loss(self, indices: Int[Tensor, "batch positions"]) -> Float[Tensor, ""]:
        """Mean of −log π over rasters."""
        return -self.log_prob(indices).mean()

    @torch.no_grad()
    def sample(self, count: int) -> Int[Tensor, "count positions"]:
        """One code after the other."""
        indices = torch.zeros(count, self.positions, dtype=torch.long, device=self.place.device)
        for position in range(self.positions):
            indices[:, position] = self.logits(indices)[:, position].softmax(-1).multinomial(1)[:, 0]
        return indices


def _require(codes: int, positions: int) -> None:
    if codes < 1 or positions < 1:
        raise ValueError(f"a prior needs codes and positions; got codes={codes}, positions={positions}")
