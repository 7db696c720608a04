"""The interventional value function of a network with a linear first layer, without forming mixed inputs.

    W h_x(S) + c = Σ_{j∈S} W_j x_j + Σ_{j∉S} W_j b_j + c = P_x(S) + Q_b(S)

P does not depend on the background and Q not on the row, so each is computed once and shared. The remaining layers
receive the sum. When all coalitions are evaluated, the layer is split between players instead: it is a sum over the
first players and over the others, and a table of the first serves all coalitions of the others. If the last layer is
linear too, it is applied to means only: E_b (V z_b + d) = V E_b z_b + d.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeGuard

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from parnassus.shapley.attributions.batching import batch_size_for, batch_slices
from parnassus.shapley.attributions.interventional import InterventionalValue
from parnassus.shapley.attributions.model_adapters import (
    Rows,
    as_model,
    as_output_rows,
    as_rows,
    evaluation_function,
)
from parnassus.shapley.attributions.value_functions import (
    BackgroundAverage,
    average_in_blocks,
    check_groups,
    expand_groups,
)
from parnassus.shapley.games.cooperative_games import is_all_coalitions

MIN_TABLE_SIZE = 16
"""Minimum size of the table of coalitions of the first players; a larger background is split into blocks."""


@dataclass(frozen=True)
class LinearFirstLayer:
    """v(S) = E_b f(x_S, b_∖S) where f(x) = rest(W x + c); equals `InterventionalValue` up to rounding.

    Computed on the device and in the dtype of W; worths are float64.

    >>> value = LinearFirstLayer(nn.Linear(3, 8), nn.Linear(8, 1), torch.zeros(10, 3))
    >>> value.players
    3
    """

    first: nn.Linear
    rest: nn.Module
    background: Float[Tensor, "others features"]
    groups: Bool[Tensor, "players features"] | None = None

    def __post_init__(self) -> None:
        if self.background.ndim != 2 or not len(self.background):
            raise ValueError(f"background must be rows of features; got shape {tuple(self.background.shape)}")
        if self.background.shape[1] != self.first.in_features:
            raise ValueError(
                "network and background must have the same features; "
                f"got {self.first.in_features} and {self.background.shape[1]}"
            )
        if self.groups is not None:
            check_groups(self.groups, self.first.in_features)

    @property
    def players(self) -> int:
        return self.first.in_features if self.groups is None else len(self.groups)

    @property
    def background_size(self) -> int:
        return len(self.background)

    def subset(self, which: slice) -> BackgroundAverage:
        return replace(self, background=self.background[which])

    @torch.no_grad()
    def __call__(
        self, x: Float[Tensor, "rows features"], coalitions: Bool[Tensor, "count players"]
    ) -> Float[Tensor, "rows outputs count"]:
        known, rows, mean = self._known_features(coalitions), self._match_weights(x), mean_output(self.rest)
        worths, batch_size = [], self._max_batch_size(len(rows) * len(known) * self.background_size)
        if len(known) * self.background_size > batch_size and is_all_coalitions(coalitions):
            block_size = max(1, batch_size // MIN_TABLE_SIZE)
            if self.background_size <= block_size:
                return self._enumerate(rows, known, batch_size)
            return average_in_blocks(self, rows, coalitions, block_size)
        if self.background_size > batch_size:
            return average_in_blocks(self, rows, coalitions, batch_size)
        for part in known.split(batch_size // self.background_size):
            from_background = self._background_term(part[:, None], self.background.to(rows))
            outputs = []
            for row, _ in batch_slices(len(rows), from_background.shape[:2].numel(), batch_size):
                from_row = (part * rows[row, None]) @ self.first.weight.mT  # P, of every row and coalition
                hidden = from_row[:, :, None] + from_background
                outputs.append(mean(hidden.flatten(0, 1)).unflatten(0, (-1, len(part))))
            worths.append(torch.cat(outputs))
        return torch.cat(worths, 1).mT

    def _enumerate(
        self, rows: Float[Tensor, "rows features"], known: Float[Tensor, "count features"], batch_size: int
    ) -> Float[Tensor, "rows outputs count"]:
        """Worths of all coalitions in order; F are the features of the first players, as many as fit in a table:

        W h_x(S) + c = (W_F h_F(S ∩ F) + c) + W_∖F h_∖F(S ∖ F).
        """
        count = 1 << (batch_size // self.background_size).bit_length() - 1  # coalitions of the first players
        F, background, mean = known[count - 1], self.background.to(rows), mean_output(self.rest)
        first, worths = known[:count, None], list[Tensor]()
        hidden = rows.new_empty(count, self.background_size, self.first.out_features)  # allocated once for all
        for row in rows:
            table = self.first(first * row + (F - first) * background)
            inputs = (rest * row + (1 - F - rest) * background for rest in known[::count])
            worths.extend(mean(torch.add(table, other @ self.first.weight.mT, out=hidden)) for other in inputs)
        found: Tensor = torch.cat(worths).unflatten(0, (len(rows), len(known)))
        return found.mT

    @torch.no_grad()
    def per_background_row(
        self, x: Float[Tensor, "rows features"], coalitions: Bool[Tensor, "others count players"]
    ) -> Float[Tensor, "others rows outputs count"]:
        others, count, _ = coalitions.shape
        known, rows, rest = self._known_features(coalitions.flatten(0, 1)), self._match_weights(x), as_model(self.rest)
        worths, batch_size = [], self._max_batch_size(len(rows) * len(known))
        for part, background in _batches_with_background(known, self.background.to(rows), count, batch_size):
            from_background = self._background_term(part, background)
            outputs = []
            for row, _ in batch_slices(len(rows), max(len(part), min(batch_size, self.first.in_features)), batch_size):
                scaled = rows[row, :, None] * self.first.weight.mT  # W_j x_j, as large as in_features inputs
                hidden = torch.baddbmm(from_background[None], part.expand(len(scaled), *part.shape), scaled)
                outputs.append(rest(hidden.flatten(0, 1)).double().unflatten(0, (-1, len(part))))
            worths.append(torch.cat(outputs))
        found: Tensor = torch.cat(worths, 1).unflatten(1, (others, count))
        return found.permute(1, 0, 3, 2)

    def _max_batch_size(self, count: int) -> int:
        """Batch size for `count` inputs of the remaining layers, including the terms that these are sums of."""
        weight, rest = self.first.weight, as_model(self.rest)
        first = self.background[:1].to(weight)
        hidden = self._background_term(torch.zeros_like(first), first)
        input_bytes = 4 * max(weight.shape) * weight.element_size()
        return batch_size_for(
            lambda n: rest(hidden.expand(n, -1).clone()), count, input_bytes=input_bytes, device=weight.device
        )

    def _background_term(
        self, known: Float[Tensor, "*#batch features"], background: Float[Tensor, "*#batch features"]
    ) -> Float[Tensor, "*batch hidden"]:
        """Q_b(S), with the bias."""
        hidden: Tensor = nn.functional.linear((1 - known) * background, self.first.weight, self.first.bias)
        return hidden

    def _known_features(self, coalitions: Bool[Tensor, "count players"]) -> Float[Tensor, "count features"]:
        """1 for known features, else 0, with the device and dtype of the weights."""
        return expand_groups(coalitions, self.groups).to(self.first.weight)

    def _match_weights(self, x: Float[Tensor, "rows features"]) -> Float[Tensor, "rows features"]:
        """The rows with the device and dtype of the weights."""
        if x.shape[1] != self.first.in_features:
            raise ValueError(
                f"rows and background must have the same features; got {x.shape[1]} and {self.first.in_features}"
            )
        return x.to(self.first.weight)


def interventional_value_function(
    predictor: object,
    background: Rows,
    groups: Bool[Tensor, "players features"] | None = None,
) -> InterventionalValue | LinearFirstLayer:
    """The interventional value function of any predictor, in its fastest implementation.

    That is `LinearFirstLayer` for an `nn.Sequential` whose first layer is an `nn.Linear`, else `InterventionalValue`.
    """
    background = as_rows(background)
    if not isinstance(predictor, nn.Module):
        return InterventionalValue(as_model(predictor), background, groups)
    weights = next(predictor.parameters(), None)
    placed = background if weights is None else background.to(weights)
    layers = list(_flatten_sequential(predictor))
    first = layers[0]
    if _is_plain_linear(first):
        rest = nn.Sequential(*_remaining_layers(layers))
        rest.training = predictor.training  # evaluated in evaluation mode, and then restored
        return LinearFirstLayer(first, rest, placed, groups)
    return InterventionalValue(as_model(predictor), placed, groups)


def mean_output(
    rest: nn.Module,
) -> Callable[[Float[Tensor, "count others hidden"]], Float[Tensor, "count outputs"]]:
    """E_b rest(z_b) in float64; a linear last layer is applied to the mean."""
    *inner, last = _flatten_sequential(rest)
    if not _is_plain_linear(last):
        model = as_model(rest)
        return lambda z: model(z.flatten(0, 1)).double().unflatten(0, z.shape[:2]).mean(1)
    evaluate, bias = evaluation_function(nn.Sequential(*inner)), last.bias
    V, d = last.weight.double(), None if bias is None else bias.double()

    def mean(z: Tensor) -> Tensor:
        mean_hidden = evaluate(z.flatten(0, 1)).unflatten(0, (-1, z.shape[1])).mean(1)
        return as_output_rows(nn.functional.linear(mean_hidden.double(), V, d), len(z))

    return mean


def _has_hooks(module: nn.Module) -> bool:
    """Whether a call of the module runs hooks before or after its `forward`."""
    for register in (module.register_forward_pre_hook, module.register_forward_hook):
        handle = register(_no_hook)  # its handle refers to all hooks of this kind
        handle.remove()
        if handle.hooks_dict_ref():
            return True
    return False


def _no_hook(*_: object) -> None:
    pass


def _is_plain_linear(layer: nn.Module) -> TypeGuard[nn.Linear]:
    return type(layer) is nn.Linear and not _has_hooks(layer)


def _remaining_layers(layers: list[nn.Module]) -> Iterator[nn.Module]:
    """All layers but the first; a ReLU after a linear layer works in place, since nothing else reads its input."""
    for before, layer in pairwise(layers):
        in_place = type(layer) is nn.ReLU and not _has_hooks(layer) and _is_plain_linear(before)
        yield nn.ReLU(inplace=True) if in_place else layer


def _flatten_sequential(module: nn.Module) -> Iterator[nn.Module]:
    """Layers of nested sequences in order; any other module is one layer."""
    if type(module) is not nn.Sequential or not len(module) or _has_hooks(module):
        yield module
        return
    for layer in module:
        yield from _flatten_sequential(layer)


def _batches_with_background(
    known: Tensor, background: Tensor, count: int, batch_size: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches of the coalitions of all background rows, with the background row of each."""
    for start in range(0, len(known), batch_size):
        part = known[start : start + batch_size]
        owner = torch.arange(start, start + len(part), device=known.device) // count
        yield part, background[owner]
