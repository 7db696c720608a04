"""An actor, who chooses, and a critic, who says what a state is worth (book sec. 18.5)."""

from collections.abc import Sequence
from itertools import pairwise
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.reinforcement.both_heads import both_heads
from parnassus.reinforcement.environments.interface import Actions, Continuous
from parnassus.reinforcement.laws import ActionLaw, Choice, Spread
from parnassus.reinforcement.moments import Moments
from parnassus.reinforcement.stacked import StackedLinear


class ActorCritic(nn.Module):
    """π_θ(a|s) and v_w(s), two networks of the same form for each of several learners (book sec. 18.5).

    Hidden layers of both are stacked, so that one product serves them all. `seen`, if given, brings observations to
    mean 0 and variance 1 before; it is part of the model, and saved with it.
    """

    def __init__(
        self,
        features: int,
        actions: Actions,
        *,
        hidden: Sequence[int] = (64, 64),
        learners: int = 1,
        normalised: bool = False,
    ) -> None:
        super().__init__()
        self.learners, self.continuous = learners, isinstance(actions, Continuous)
        self.seen = Moments(learners, features) if normalised else None
        sizes = [features, *hidden]
        self.hidden = nn.ModuleList(StackedLinear(2 * learners, *pair) for pair in pairwise(sizes))
        self.choose = StackedLinear(learners, sizes[-1], actions.count, gain=0.01)
        self.judge = StackedLinear(learners, sizes[-1], 1, gain=1.0)
        self.log_std = nn.Parameter(torch.zeros(learners, 1, actions.count)) if self.continuous else None

    def law(self, x: Float[Tensor, "learners batch features"]) -> ActionLaw:
        """π(·|s) alone, as an agent at work needs it."""
        x = self._normal(x)
        for layer in self.hidden:
            x = cast("StackedLinear", layer).some(x, slice(None, self.learners)).tanh()
        return self._law(self.choose(x))

    def values(self, x: Float[Tensor, "learners batch features"]) -> Float[Tensor, "learners batch"]:
        """v(s) alone."""
        x = self._normal(x)
        for layer in self.hidden:
            x = cast("StackedLinear", layer).some(x, slice(self.learners, None)).tanh()
        value: Tensor = self.judge(x)
        return value.squeeze(-1)

    def forward(self, x: Float[Tensor, "learners batch features"]) -> tuple[ActionLaw, Float[Tensor, "learners batch"]]:
        """π(·|s) and v(s), for learning: slopes of the slopes are those of `law` and `values` alone."""
        hidden = [cast("StackedLinear", layer) for layer in self.hidden]
        answer, value = both_heads(self._normal(x), hidden, self.choose, self.judge)
        return self._law(answer), value.squeeze(-1)

    def _normal(self, x: Tensor) -> Tensor:
        return x if self.seen is None else self.seen(x)

    def _law(self, answer: Tensor) -> ActionLaw:
        return Choice(answer) if self.log_std is None else Spread(answer, self.log_std)
