"""Adam for claims about trained networks: full batch, without logging or checkpoints."""

from collections.abc import Callable

import torch
from torch import Tensor, nn


def adam(model: nn.Module, loss: Callable[[], Tensor], *, steps: int, lr: float) -> None:
    """Minimise `loss()` with Adam, updating the model's parameters in place."""
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for _ in range(steps):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
