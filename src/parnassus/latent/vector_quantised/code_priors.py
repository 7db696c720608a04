"""Priors over the code indices of a VQ-VAE: independent positions, or autoregressive on neighbours."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot, pad

from parnassus.arrays import accepts_arrays


class IndependentPrior(nn.Module):
    """∏_i π_i(k_i): an independent categorical distribution at each position.

    >>> prior = IndependentPrior.fit(torch.tensor([[0, 1], [0, 2], [0, 1]]), codes=3)
    >>> prior.sample(5).shape
    torch.Size([5, 2])
    """

    def __init__(self, codes: int, positions: int) -> None:
        super().__init__()
        _check_sizes(codes, positions)
        self.positions = positions
        self.logits = nn.Parameter(torch.zeros(positions, codes))

    @classmethod
    @accepts_arrays
    def fit(cls, indices: Int[Tensor, "batch positions"], codes: int) -> "IndependentPrior":
        """Frequencies of the codes in `indices`, with add-one (Laplace) smoothing."""
        with indices.device:
            prior = cls(codes, indices.shape[1])
        with torch.no_grad():
            prior.logits.copy_((one_hot(indices, codes).sum(0) + 1).log())
        return prior

    @accepts_arrays
    def log_prob(self, indices: Int[Tensor, "batch positions"]) -> Float[Tensor, " batch"]:
        log_probabilities = self.logits.log_softmax(-1)
        return log_probabilities.gather(1, indices.mT).sum(0)

    @accepts_arrays
    def loss(self, indices: Int[Tensor, "batch positions"]) -> Float[Tensor, ""]:
        """The mean of −log π over the rows."""
        return -self.log_prob(indices).mean()

    @torch.no_grad()
    def sample(self, count: int) -> Int[Tensor, "count positions"]:
        return torch.multinomial(self.logits.softmax(-1), count, replacement=True).mT


class NeighbourPrior(nn.Module):
    """∏_i π_i(k_i | left, above left, above, above right), by a small network on the four neighbours.

    Positions follow each other row by row, so that every condition precedes the position it conditions.

    >>> prior = NeighbourPrior(codes=4, grid_shape=(2, 2))
    >>> prior.log_prob(torch.tensor([[0, 1, 2, 3]])).shape
    torch.Size([1])
    """

    def __init__(self, codes: int, grid_shape: tuple[int, int], *, width: int = 64) -> None:
        super().__init__()
        _check_sizes(codes, grid_shape[0] * grid_shape[1])
        self.codes, self.grid_shape, self.positions = codes, grid_shape, grid_shape[0] * grid_shape[1]
        self.neighbours = nn.ModuleList(nn.Embedding(codes + 1, width) for _ in range(4))  # the last: outside
        self.position_embedding = nn.Parameter(torch.zeros(*grid_shape, width))
        self.head = nn.Sequential(nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, codes))

    def logits(self, indices: Int[Tensor, "batch positions"]) -> Float[Tensor, "batch positions codes"]:
        """The logits of each code given its neighbours."""
        rows, columns = self.grid_shape
        padded = pad(indices.unflatten(1, self.grid_shape), (1, 1, 1, 0), value=self.codes)
        left = padded[:, 1:, :columns]
        above = [padded[:, :rows, shift : shift + columns] for shift in range(3)]
        embedded = [embed(codes) for embed, codes in zip(self.neighbours, [left, *above], strict=True)]
        logits: Tensor = self.head(torch.stack(embedded).sum(0) + self.position_embedding)
        return logits.flatten(1, 2)

    @accepts_arrays
    def log_prob(self, indices: Int[Tensor, "batch positions"]) -> Float[Tensor, " batch"]:
        return -cross_entropy(self.logits(indices).mT, indices, reduction="none").sum(1)

    @accepts_arrays
    def loss(self, indices: Int[Tensor, "batch positions"]) -> Float[Tensor, ""]:
        """The mean of −log π over the rows."""
        return -self.log_prob(indices).mean()

    @torch.no_grad()
    def sample(self, count: int) -> Int[Tensor, "count positions"]:
        """Ancestral sampling, one position at a time."""
        indices = torch.zeros(count, self.positions, dtype=torch.long, device=self.position_embedding.device)
        for position in range(self.positions):
            indices[:, position] = self.logits(indices)[:, position].softmax(-1).multinomial(1)[:, 0]
        return indices


def _check_sizes(codes: int, positions: int) -> None:
    if codes < 1 or positions < 1:
        raise ValueError(f"codes and positions must be positive; got codes={codes}, positions={positions}")
