"""Conditioners other than MADE: separate networks for the coordinates, and a recurrent network."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.layers import Activation, mlp, relu


class SeparateConditioners(nn.Module):
    """One network c_i for every coordinate, h_i = c_i(z_{1:i−1}), as in the book (book sec. 13.1).

    Parameters and time are those of D networks.

    >>> SeparateConditioners(features=3, outputs=2)(torch.zeros(5, 3)).shape
    torch.Size([5, 3, 2])
    """

    def __init__(
        self, features: int, outputs: int, *, hidden_sizes: Sequence[int] = (64,), activation: Activation = relu
    ) -> None:
        super().__init__()
        if features < 1 or outputs < 1:
            raise ValueError(f"features and outputs must be at least 1; got features={features}, outputs={outputs}")
        self.first = nn.Parameter(torch.zeros(outputs))  # h_1 is constant
        self.networks = nn.ModuleList(
            mlp((inputs, *hidden_sizes, outputs), activation=activation) for inputs in range(1, features)
        )

    def forward(self, z: Float[Tensor, "batch features"]) -> Float[Tensor, "batch features outputs"]:
        first = self.first.expand(len(z), -1)
        rest = (network(z[:, : i + 1]) for i, network in enumerate(self.networks))
        return torch.stack([first, *rest], 1)


class RecurrentConditioner(nn.Module):
    """A GRU over z_1, z_2, … whose state after z_{1:i−1} gives h_i; its size does not depend on D (book sec. 13.1).

    Its steps are sequential, so even the direction that takes one pass takes time proportional to D.

    >>> RecurrentConditioner(outputs=2, hidden_size=8)(torch.zeros(5, 3)).shape
    torch.Size([5, 3, 2])
    """

    def __init__(self, outputs: int, *, hidden_size: int = 64) -> None:
        super().__init__()
        if outputs < 1 or hidden_size < 1:
            raise ValueError(
                f"outputs and hidden_size must be at least 1; got outputs={outputs}, hidden_size={hidden_size}"
            )
        self.gru = nn.GRU(1, hidden_size, batch_first=True)
        self.output = nn.Linear(hidden_size, outputs)

    def forward(self, z: Float[Tensor, "batch features"]) -> Float[Tensor, "batch features outputs"]:
        shifted = torch.cat([torch.zeros_like(z[:, :1]), z[:, :-1]], 1)  # h_i depends on z_{1:i−1}
        states, _ = self.gru(shifted[:, :, None])
        h: Tensor = self.output(states)
        return h
