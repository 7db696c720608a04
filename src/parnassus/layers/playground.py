"""A small classifier trained at once, fast enough to watch: backpropagation written out on one vector θ (Zhao sec. 5).

All tensors of the network are views of θ, and those of its gradient of another vector: a step of Adam is a handful of
operations on the whole. On networks this small that is several times as fast as building a graph for every step.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.layers.activations import Activation
from parnassus.layers.dense import mlp
from parnassus.layers.parameters import flatten
from parnassus.losses.classification import one_hot, softmax

Penalty: TypeAlias = Callable[[Tensor], Tensor]
"""The gradient of a regulariser at weights of any shape."""


@dataclass(frozen=True)
class Networks:
    """Networks of one shape, whose parameters are the rows of `theta`: one for each moment of a training.

    Hidden layers apply `activation`, whose derivative is `slope`; the last gives logits.
    """

    sizes: tuple[int, ...]
    activation: Activation
    slope: Activation
    theta: Float[Tensor, "moments parameters"]

    @classmethod
    def fresh(cls, sizes: Sequence[int], activation: Activation, slope: Activation) -> "Networks":
        """One network at the random start that `mlp` gives it."""
        return cls(tuple(sizes), activation, slope, flatten(mlp(sizes, activation=activation))[None])

    def values(self, x: Float[Tensor, "count inputs"]) -> list[Float[Tensor, "moments count units"]]:
        """What every layer makes of x at every moment: the hidden layers' activations, then the logits."""
        layers = _layers(self.theta, self.sizes)
        outputs: list[Tensor] = []
        h = x.expand(len(self.theta), *x.shape)
        for index, (weight, bias) in enumerate(layers, 1):
            z = torch.baddbmm(bias[:, None], h, weight)
            h = z if index == len(layers) else self.activation(z)
            outputs.append(h)
        return outputs


def train_adam(
    start: Networks,
    x: Float[Tensor, "count inputs"],
    y: Int[Tensor, " count"],
    *,
    rate: float,
    moments: Sequence[int],
    penalty: Penalty = torch.zeros_like,
) -> Networks:
    """Full-batch steps of Adam down the cross-entropy; keeps the network after as many steps as `moments` say.

        ∂J/∂W_l = h_{l−1}ᵀ δ_l + penalty(W_l),  δ_L = (softmax(z_L) − y) / n,  δ_{l−1} = (δ_l W_lᵀ) ⊙ σ′(z_{l−1})

    (Zhao sec. 5.) Biases have no penalty.
    """
    if rate <= 0:
        raise ValueError(f"the learning rate must be positive; got rate={rate}")
    if not moments or list(moments) != sorted(set(moments)) or moments[0] < 0:
        raise ValueError(f"moments must be step numbers in rising order; got moments={tuple(moments)}")
    theta, targets = start.theta[-1].clone(), one_hot(y, start.sizes[-1]).to(x)
    slope, mean, square = (torch.zeros_like(theta) for _ in range(3))
    layers, slopes = ([(w[0], b[0]) for w, b in _layers(each[None], start.sizes)] for each in (theta, slope))
    kept = []
    for step in range(moments[-1] + 1):
        if step in moments:
            kept.append(theta.clone())
        _backpropagate(start, layers, slopes, x, targets)
        for (weight, _), (weight_slope, _) in zip(layers, slopes, strict=True):
            weight_slope.add_(penalty(weight))
        mean.lerp_(slope, 0.1)
        square.lerp_(slope.square(), 0.001)
        scale = (square / (1 - 0.999 ** (step + 1))).sqrt_().add_(1e-8)
        theta.addcdiv_(mean, scale, value=-rate / (1 - 0.9 ** (step + 1)))
    return replace(start, theta=torch.stack(kept))


def _backpropagate(
    network: Networks,
    layers: list[tuple[Tensor, Tensor]],
    slopes: list[tuple[Tensor, Tensor]],
    x: Tensor,
    targets: Tensor,
) -> None:
    """Write the gradient of the mean cross-entropy into `slopes`."""
    before, inputs = [], [x]
    for weight, bias in layers:
        before.append(torch.addmm(bias, inputs[-1], weight))
        inputs.append(network.activation(before[-1]))
    delta = (softmax(before[-1]) - targets) / len(x)
    for index in reversed(range(len(layers))):
        weight_slope, bias_slope = slopes[index]
        torch.mm(inputs[index].T, delta, out=weight_slope)
        torch.sum(delta, 0, out=bias_slope)
        if index:
            delta = (delta @ layers[index][0].T) * network.slope(before[index - 1])


def _layers(theta: Tensor, sizes: Sequence[int]) -> list[tuple[Tensor, Tensor]]:
    """(weight, bias) of every layer, as views of the rows of θ; in the order in which `flatten` lays them out."""
    cuts = [size for inputs, outputs in pairwise(sizes) for size in (inputs * outputs, outputs)]
    parts = theta.split(cuts, dim=1)
    return [
        (parts[2 * layer].view(len(theta), inputs, outputs), parts[2 * layer + 1])
        for layer, (inputs, outputs) in enumerate(pairwise(sizes))
    ]
