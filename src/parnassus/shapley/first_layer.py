"""Worths of a network that begins with a linear layer, which is shared between what is known and what is not.

    W h_x(S) + c = Σ_{j∈S} W_j x_j + Σ_{j∉S} W_j b_j + c = P_x(S) + Q_b(S)

P does not know the background and Q not the row: each is found once for all that share it, and mixed inputs are never
written down. The layers behind get the sum. Where all coalitions are asked it is shared between players instead: the
layer is a sum over some of them and the others, and what the first few give is a table that serves all the others do.
If the network ends with a linear layer too, that is asked about means alone: E_b (V z_b + d) = V E_b z_b + d.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeGuard

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from parnassus.shapley.game import are_all
from parnassus.shapley.masking import Interventional, MeanOfGames, checked_groups, in_blocks, with_groups
from parnassus.shapley.model import Rows, answer_rows, as_model, as_rows, in_evaluation
from parnassus.shapley.portions import portions, together

TABLE = 16
"""Coalitions of the first players that are in a table at least: of a larger background fewer rows are taken at once."""


@dataclass(frozen=True)
class LinearFirst:
    """v(S) = E_b f(x_S, b_∖S) where f(x) = rest(W x + c): as `Interventional` finds it, but for rounding.

    Everything happens on the device of W and in its numbers; worths are float64.
    """

    first: nn.Linear
    rest: nn.Module
    background: Float[Tensor, "others features"]
    groups: Bool[Tensor, "players features"] | None = None

    def __post_init__(self) -> None:
        if self.background.ndim != 2 or not len(self.background):
            raise ValueError(f"the background must be rows of features; got shape {tuple(self.background.shape)}")
        if self.background.shape[1] != self.first.in_features:
            raise ValueError(
                f"the network takes {self.first.in_features} features; the background has {self.background.shape[1]}"
            )
        if self.groups is not None:
            checked_groups(self.groups, self.first.in_features)

    @property
    def players(self) -> int:
        return self.first.in_features if self.groups is None else len(self.groups)

    @property
    def others(self) -> int:
        return len(self.background)

    def of(self, which: slice) -> MeanOfGames:
        return replace(self, background=self.background[which])

    @torch.no_grad()
    def __call__(
        self, x: Float[Tensor, "rows features"], coalitions: Bool[Tensor, "count players"]
    ) -> Float[Tensor, "rows outputs count"]:
        known, rows, mean = self.known(coalitions), self.checked(x), averaged(self.rest)
        worths, most = [], self.at_once(len(rows) * len(known) * self.others)
        if len(known) * self.others > most and are_all(coalitions):
            few = max(1, most // TABLE)
            return self.every(rows, known, most) if self.others <= few else in_blocks(self, rows, coalitions, few)
        if self.others > most:
            return in_blocks(self, rows, coalitions, most)
        for part in known.split(most // self.others):
            behind = self.behind(part[:, None], self.background.to(rows))  # Q, of every coalition and other row
            answers = []
            for row, _ in portions(len(rows), behind.shape[:2].numel(), most):
                before = (part * rows[row, None]) @ self.first.weight.mT  # P, of every row and coalition
                asked = before[:, :, None] + behind
                answers.append(mean(asked.flatten(0, 1)).unflatten(0, (-1, len(part))))
            worths.append(torch.cat(answers))
        return torch.cat(worths, 1).mT

    def every(
        self, rows: Float[Tensor, "rows features"], known: Float[Tensor, "count features"], most: int
    ) -> Float[Tensor, "rows outputs count"]:
        """Worths of all coalitions in order, where the first players, with features F, are as many as fit in a table:

        W h_x(S) + c = (W_F h_F(S ∩ F) + c) + W_∖F h_∖F(S ∖ F).
        """
        count = 1 << (most // self.others).bit_length() - 1  # coalitions of the first players
        F, background, mean = known[count - 1], self.background.to(rows), averaged(self.rest)
        early, worths = known[:count, None], list[Tensor]()
        asked = rows.new_empty(count, self.others, self.first.out_features)  # one for all: a new one costs as a layer
        for row in rows:
            table = self.first(early * row + (F - early) * background)
            mixed = (late * row + (1 - F - late) * background for late in known[::count])
            worths.extend(mean(torch.add(table, other @ self.first.weight.mT, out=asked)) for other in mixed)
        found: Tensor = torch.cat(worths).unflatten(0, (len(rows), len(known)))
        return found.mT

    @torch.no_grad()
    def each(
        self, x: Float[Tensor, "rows features"], coalitions: Bool[Tensor, "others count players"]
    ) -> Float[Tensor, "others rows outputs count"]:
        others, count, _ = coalitions.shape
        known, rows, rest = self.known(coalitions.flatten(0, 1)), self.checked(x), as_model(self.rest)
        worths, most = [], self.at_once(len(rows) * len(known))
        for part, background in _with_owner(known, self.background.to(rows), count, most):
            behind = self.behind(part, background)
            answers = []
            for row, _ in portions(len(rows), max(len(part), min(most, self.first.in_features)), most):
                scaled = rows[row, :, None] * self.first.weight.mT  # W_j x_j: as many numbers as so many inputs have
                hidden = torch.baddbmm(behind[None], part.expand(len(scaled), *part.shape), scaled)
                answers.append(rest(hidden.flatten(0, 1)).double().unflatten(0, (-1, len(part))))
            worths.append(torch.cat(answers))
        found: Tensor = torch.cat(worths, 1).unflatten(1, (others, count))
        return found.permute(1, 0, 3, 2)

    def at_once(self, count: int) -> int:
        """How many of `count` inputs the layers behind are asked about at once: what these are sums of needs room."""
        weight, rest = self.first.weight, as_model(self.rest)
        first = self.background[:1].to(weight)
        hidden, size = self.behind(torch.zeros_like(first), first), 4 * max(weight.shape) * weight.element_size()
        return together(lambda n: rest(hidden.expand(n, -1).clone()), count, size=size, device=weight.device)

    def behind(
        self, known: Float[Tensor, "*#asked features"], background: Float[Tensor, "*#asked features"]
    ) -> Float[Tensor, "*asked hidden"]:
        """Q_b(S), with the bias."""
        hidden: Tensor = nn.functional.linear((1 - known) * background, self.first.weight, self.first.bias)
        return hidden

    def known(self, coalitions: Bool[Tensor, "count players"]) -> Float[Tensor, "count features"]:
        """1 for features that are known, 0 for others, as the weights are."""
        return with_groups(coalitions, self.groups).to(self.first.weight)

    def checked(self, x: Float[Tensor, "rows features"]) -> Float[Tensor, "rows features"]:
        """The rows as the weights are."""
        if x.shape[1] != self.first.in_features:
            raise ValueError(f"rows have {x.shape[1]} features, the background has {self.first.in_features}")
        return x.to(self.first.weight)


def interventional(
    predictor: object,
    background: Rows,
    groups: Bool[Tensor, "players features"] | None = None,
) -> Interventional | LinearFirst:
    """The interventional worths of anything that predicts, found the quickest way: where the module is, and in parts.

    A `nn.Sequential` that begins with a `nn.Linear` has that layer shared; other predictors are asked about mixed rows.
    """
    background = as_rows(background)
    if not isinstance(predictor, nn.Module):
        return Interventional(as_model(predictor), background, groups)
    weights = next(predictor.parameters(), None)
    there = background if weights is None else background.to(weights)
    layers = list(_unfolded(predictor))
    first = layers[0]
    if _surely_linear(first):
        rest = nn.Sequential(*_in_place(layers))
        rest.training = predictor.training  # asked as in evaluation, and left as it was
        return LinearFirst(first, rest, there, groups)
    return Interventional(as_model(predictor), there, groups)


def averaged(
    rest: nn.Module,
) -> Callable[[Float[Tensor, "count others hidden"]], Float[Tensor, "count outputs"]]:
    """E_b rest(z_b) in float64: a linear layer at the end is asked about the mean."""
    *inner, last = _unfolded(rest)
    if not _surely_linear(last):
        model = as_model(rest)
        return lambda z: model(z.flatten(0, 1)).double().unflatten(0, z.shape[:2]).mean(1)
    ask, bias = in_evaluation(nn.Sequential(*inner)), last.bias
    V, d = last.weight.double(), None if bias is None else bias.double()

    def mean(z: Tensor) -> Tensor:
        mean_hidden = ask(z.flatten(0, 1)).unflatten(0, (-1, z.shape[1])).mean(1)
        return answer_rows(nn.functional.linear(mean_hidden.double(), V, d), len(z))

    return mean


def _hooked(module: nn.Module) -> bool:
    return bool(module._forward_pre_hooks or module._forward_hooks)


def _surely_linear(layer: nn.Module) -> TypeGuard[nn.Linear]:
    return type(layer) is nn.Linear and not _hooked(layer)


def _in_place(layers: list[nn.Module]) -> Iterator[nn.Module]:
    """All layers but the first; what a linear one gives is nobody else's, and a ReLU behind it may write over it."""
    for before, layer in pairwise(layers):
        may = type(layer) is nn.ReLU and not _hooked(layer) and _surely_linear(before)
        yield nn.ReLU(inplace=True) if may else layer


def _unfolded(module: nn.Module) -> Iterator[nn.Module]:
    """Layers of a sequence, of sequences in it too; anything else is one layer."""
    if type(module) is not nn.Sequential or not len(module) or _hooked(module):
        yield module
        return
    for layer in module:
        yield from _unfolded(layer)


def _with_owner(known: Tensor, background: Tensor, count: int, most: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Portions of the coalitions of all background rows, with the row that each belongs to."""
    for start in range(0, len(known), most):
        part = known[start : start + most]
        owner = torch.arange(start, start + len(part), device=known.device) // count
        yield part, background[owner]
