"""Probabilities in the place of logits are rejected, wherever a loss normalises its input."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn.functional import hardsigmoid, logsigmoid

from parnassus.losses import binary_cross_entropy, check_logits, cross_entropy, soft_cross_entropy, softmax

Z = torch.tensor([[0.5, -1.0, 2.0], [1.0, 0.0, -3.0]])
WRONG: dict[str, Callable[[Tensor], Tensor]] = {
    "sigmoid": torch.sigmoid,
    "hardsigmoid": hardsigmoid,
    "logsigmoid": logsigmoid,
    "softmax": lambda z: z.softmax(-1),
    "own softmax": softmax,
    "sigmoid and a view": lambda z: z.sigmoid().view(3, 2).mT.contiguous().double().float(),
    "softmax and a selection": lambda z: z[:, None].softmax(-1)[:, 0],
}
RIGHT: dict[str, Callable[[Tensor], Tensor]] = {
    "logits": lambda z: 1 * z,
    "log_softmax": lambda z: z.log_softmax(-1),  # the softmax of log-probabilities is the identity
    "relu": torch.relu,
    "scaled probabilities": lambda z: 5 * z.softmax(-1),
    "quotient": lambda z: z.exp() / z.exp().amax(),
}


@pytest.mark.parametrize("name", WRONG)
def test_probabilities_are_rejected(name: str) -> None:
    probabilities = WRONG[name](Z.clone().requires_grad_())
    with pytest.raises(ValueError, match="logits must not have passed through a sigmoid or a softmax"):
        check_logits(probabilities)


@pytest.mark.parametrize("name", RIGHT)
def test_logits_are_accepted(name: str) -> None:
    check_logits(RIGHT[name](Z.clone().requires_grad_()))
    check_logits(RIGHT[name](Z))


def test_losses_check_their_logits() -> None:
    z = Z.clone().requires_grad_()
    losses: list[Callable[[], Tensor]] = [
        lambda: cross_entropy(z.softmax(-1), torch.tensor([0, 1])),
        lambda: soft_cross_entropy(softmax(z), torch.full((2, 3), 1 / 3)),
        lambda: binary_cross_entropy(z.sigmoid(), torch.ones(2, 3)),
    ]
    for loss in losses:
        with pytest.raises(ValueError, match="remove it from the end of the network"):
            loss()


def test_check_can_be_compiled() -> None:
    """Neither a graph break nor an error: the compiler cannot trace the reading of a graph."""

    def loss(x: Tensor) -> Tensor:
        logits = 2 * x
        check_logits(logits)
        return logits.logsumexp(-1).sum()

    compiled = torch.compile(loss, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(Z), loss(Z))
