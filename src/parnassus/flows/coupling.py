"""Real NVP: couplings, which move some coordinates by what the others say (book sec. 13.1, Dinh et al. 2017)."""

from collections.abc import Iterable, Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import silu

from parnassus.flows.flow import Chain
from parnassus.layers import Dense, mlp


class AffineCoupling(nn.Module):
    """Keep some coordinates; scale and shift the rest by functions of those kept (book eqs. 13.18-13.19).

        z'_kept = z_kept
        z'_rest = z_rest ⊙ exp(α(z_kept)) + β(z_kept)
        log |det J| = Σ_j α_j(z_kept)

    The Jacobian is triangular, and both directions take one pass: neither α nor β is ever inverted (book ex. 13.1).
    α is the logarithm of the scale, which the book writes α̃ in its eq. 13.17 and α in 13.19. The coordinates are those
    of dim 1, so that points (batch, features) and images (batch, channels, height, width) are coupled alike.

    `network` maps the kept coordinates to two numbers for each of the rest: raw α for all of them, then β. The bound
    α = s ⊙ tanh(raw α), with a learned s for each coordinate, keeps one bad batch from blowing up the map. A network
    that is `silenced` lets the coupling begin as the identity.
    """

    order: Tensor
    back: Tensor

    def __init__(self, network: nn.Module, kept: Sequence[int], features: int) -> None:
        super().__init__()
        chosen = set(kept)
        if not chosen or len(chosen) < len(kept) or not chosen < set(range(features)):
            raise ValueError(
                f"a coupling keeps some of {features} coordinates and moves at least one; got kept={tuple(kept)}"
            )
        rest = [feature for feature in range(features) if feature not in chosen]
        self.network = network
        self.scale = nn.Parameter(torch.ones(len(rest)))  # s
        self.places = (1, 0) if rest[0] == 0 else (0, 1)  # of those kept and those moved, when they are two blocks
        pieces = sorted(kept), rest
        order = torch.tensor([coordinate for place in self.places for coordinate in pieces[place]])
        self.register_buffer("order", order, persistent=False)
        self.register_buffer("back", order.argsort(), persistent=False)
        self._in_order = bool((order == torch.arange(features)).all())  # two blocks, taken apart without a copy
        self._sizes = [len(pieces[place]) for place in self.places]
        self._features, self._moved = features, len(rest)

    @property
    def blocks(self) -> tuple[int, ...]:
        """The sizes of the two blocks of coordinates; nothing where those kept and moved lie mixed."""
        return tuple(self._sizes) if self._in_order else ()

    def forward(
        self, z: Float[Tensor, "batch features *space"]
    ) -> tuple[Float[Tensor, "batch features *space"], Float[Tensor, " batch"]]:
        kept, rest = self._split(z)
        alpha, beta = self.coefficients(kept)
        return self._join(kept, torch.addcmul(beta, rest, alpha.exp())), _total(alpha)

    def inverse(
        self, x: Float[Tensor, "batch features *space"]
    ) -> tuple[Float[Tensor, "batch features *space"], Float[Tensor, " batch"]]:
        kept, rest = self._split(x)
        alpha, beta = self.coefficients(kept)
        shrinking = -alpha  # a product's gradient takes fewer passes than a quotient's
        return self._join(kept, (rest - beta) * shrinking.exp()), _total(shrinking)

    def extra_repr(self) -> str:
        return f"{self._features - self._moved} of {self._features} coordinates kept"

    def coefficients(
        self, kept: Float[Tensor, "batch kept *space"]
    ) -> tuple[Float[Tensor, "batch moved *space"], Float[Tensor, "batch moved *space"]]:
        """α and β, the logarithm of the scale and the shift, for the coordinates that are moved."""
        raw: Tensor = self.network(kept)
        if raw.shape[1] != 2 * self._moved:
            raise ValueError(
                f"the network must give two numbers for each of {self._moved} moved; got {raw.shape[1]} numbers"
            )
        alpha, beta = raw.chunk(2, dim=1)
        scale = self.scale if raw.dim() == 2 else self.scale.view(-1, *[1] * (raw.dim() - 2))
        return scale * alpha.tanh(), beta

    def _split(self, x: Tensor) -> tuple[Tensor, Tensor]:
        if x.shape[1] != self._features:
            raise ValueError(f"this coupling takes {self._features} coordinates; got {x.shape[1]}")
        if not self._in_order:
            x = x.index_select(1, self.order)
        blocks = x.split(self._sizes, dim=1)
        kept, moved = self.places
        return blocks[kept], blocks[moved]

    def _join(self, kept: Tensor, moved: Tensor) -> Tensor:
        joined = torch.cat((kept, moved) if self.places == (0, 1) else (moved, kept), dim=1)
        return joined if self._in_order else joined.index_select(1, self.back)


def _total(alpha: Tensor) -> Tensor:
    """Σ_j α_j of each example."""
    return alpha.sum(1) if alpha.dim() == 2 else alpha.flatten(1).sum(1)


class AlternatingCouplings(Chain):
    """Couplings that keep one of two blocks of coordinates and then the other: a chain with a quicker way through.

    The blocks stay apart from the first coupling to the last and all α are summed at once, which takes a seventh off a
    training step; it gives what the chain would.
    """

    def __init__(self, couplings: Iterable[AffineCoupling]) -> None:
        super().__init__(couplings)
        if not len(self) or len({coupling.blocks for coupling in self._couplings()}) > 1 or not self[0].blocks:
            raise ValueError("the couplings must keep either of the same two blocks, the first coordinates or the last")

    def forward(
        self, z: Float[Tensor, "batch features *space"]
    ) -> tuple[Float[Tensor, "batch features *space"], Float[Tensor, " batch"]]:
        blocks, alphas = self._taken_apart(z), []
        for coupling in self._couplings():
            kept, moved = coupling.places
            alpha, beta = coupling.coefficients(blocks[kept])
            blocks[moved] = torch.addcmul(beta, blocks[moved], alpha.exp())
            alphas.append(alpha)
        return torch.cat(blocks, 1), _total(torch.cat(alphas, 1))

    def inverse(
        self, x: Float[Tensor, "batch features *space"]
    ) -> tuple[Float[Tensor, "batch features *space"], Float[Tensor, " batch"]]:
        blocks, alphas = self._taken_apart(x), []
        for coupling in reversed(list(self._couplings())):
            kept, moved = coupling.places
            alpha, beta = coupling.coefficients(blocks[kept])
            blocks[moved] = (blocks[moved] - beta) * (-alpha).exp()
            alphas.append(alpha)
        return torch.cat(blocks, 1), -_total(torch.cat(alphas, 1))

    def _couplings(self) -> Iterator[AffineCoupling]:
        for coupling in self:
            assert isinstance(coupling, AffineCoupling)
            yield coupling

    def _taken_apart(self, x: Tensor) -> list[Tensor]:
        sizes = next(self._couplings()).blocks
        if x.shape[1] != sum(sizes):
            raise ValueError(f"these couplings take {sum(sizes)} coordinates; got {x.shape[1]}")
        return list(x.split(sizes, dim=1))


def silenced(network: nn.Sequential) -> nn.Sequential:
    """The network with its last layer at zero, so that it begins by giving zeros and a coupling begins as z' = z."""
    for parameter in network[-1].parameters():
        nn.init.zeros_(parameter)
    return network


class Conditioner(nn.Sequential):
    """The layers of an `mlp`, for batches of points: each is one fused product and sum, a tenth off a training step."""

    def forward(self, x: Float[Tensor, "batch inputs"]) -> Float[Tensor, "batch outputs"]:
        for layer in self:
            assert isinstance(layer, Dense)
            x = layer.activation(torch.addmm(layer.bias, x, layer.weight))
        return x


def real_nvp(features: int, *, layers: int = 6, width: int = 64, depth: int = 2) -> AlternatingCouplings:
    """Couplings that keep one half of the coordinates and then the other, in turns (book sec. 13.1).

    Each has a network of its own with `depth` hidden layers of `width` units. A coupling leaves its half as it was:
    without the turns half of the coordinates would stay Gaussian for ever.
    """
    if features < 2 or layers < 1 or width < 1 or depth < 1:
        raise ValueError(
            "a Real NVP needs two features or more and at least one layer, unit and hidden layer; got "
            f"features={features}, layers={layers}, width={width}, depth={depth}"
        )
    first, second = range(features // 2), range(features // 2, features)
    halves = [(first, second) if layer % 2 == 0 else (second, first) for layer in range(layers)]
    return AlternatingCouplings(
        AffineCoupling(silenced(Conditioner(*mlp(sizes, activation=silu))), kept, features)
        for kept, sizes in ((kept, (len(kept), *[width] * depth, 2 * len(rest))) for kept, rest in halves)
    )
