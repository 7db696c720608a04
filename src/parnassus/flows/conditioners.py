"""Two more ways to condition each coordinate on those before it: a network for each, or one that remembers."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.layers import Activation, mlp, relu


class SeparateConditioners(nn.Module):
    """One network c_i for every coordinate, h_i = c_i(z_{1:i−1}), as the book defines them (book sec. 13.1).

    Nothing is shared, so the weights grow as D times those of one network, and so does the time.
    """

    def __init__(
        self, features: int, outputs: int, *, hidden: Sequence[int] = (64,), activation: Activation = relu
    ) -> None:
        super().__init__()
        if features < 1 or outputs < 1:
            raise ValueError(f"need at least one feature and one output; got features={features}, outputs={outputs}")
        self.first = nn.Parameter(torch.zeros(outputs))  # before the first coordinate there is nothing to see
        self.networks = nn.ModuleList(
            mlp((seen, *hidden, outputs), activation=activation) for seen in range(1, features)
        )

    def forward(self, z: Float[Tensor, "batch features"]) -> Float[Tensor, "batch features outputs"]:
        first = self.first.expand(len(z), -1)
        rest = (network(z[:, : i + 1]) for i, network in enumerate(self.networks))
        return torch.stack([first, *rest], 1)


class RecurrentConditioner(nn.Module):
    """A GRU reads z_1, z_2, … and says h_i when it has read z_{1:i−1}; the weights do not grow with D (book sec. 13.1).

    Its steps follow one another, so that even the direction which is one pass takes time in proportion to D.
    """

    def __init__(self, outputs: int, *, width: int = 64) -> None:
        super().__init__()
        if outputs < 1 or width < 1:
            raise ValueError(f"need at least one output and one unit; got outputs={outputs}, width={width}")
        self.memory = nn.GRU(1, width, batch_first=True)
        self.speak = nn.Linear(width, outputs)

    def forward(self, z: Float[Tensor, "batch features"]) -> Float[Tensor, "batch features outputs"]:
        before = torch.cat([torch.zeros_like(z[:, :1]), z[:, :-1]], 1)  # at i it has read up to i − 1
        states, _ = self.memory(before[:, :, None])
        h: Tensor = self.speak(states)
        return h
