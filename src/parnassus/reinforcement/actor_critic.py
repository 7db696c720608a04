"""An actor, who chooses, and a critic, who says what a state is worth (book sec. 18.5)."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from parnassus.reinforcement.both_heads import Trace, pull_back, traced
from parnassus.reinforcement.environments.interface import Actions, Continuous
from parnassus.reinforcement.law_slopes import law_slopes
from parnassus.reinforcement.laws import ActionLaw, Choice, Spread
from parnassus.reinforcement.moments import Moments
from parnassus.reinforcement.stacked import Layer, StackedLinear, written


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
        hidden_layers = [StackedLinear(2 * learners, *pair) for pair in pairwise(sizes)]
        self.hidden = nn.ModuleList(hidden_layers)
        self.choose = StackedLinear(learners, sizes[-1], actions.count, gain=0.01)
        self.judge = StackedLinear(learners, sizes[-1], 1, gain=1.0)
        self.log_std = nn.Parameter(torch.zeros(learners, 1, actions.count)) if self.continuous else None
        self._at_hand = (*hidden_layers, self.choose, self.judge)  # to look for them takes as long as to use them

    def law(self, x: Float[Tensor, "learners batch features"]) -> ActionLaw:
        """π(·|s) alone, as an agent at work needs it."""
        return self._law(self._through(self._normal(x), 0))

    def values(self, x: Float[Tensor, "learners batch features"]) -> Float[Tensor, "learners batch"]:
        """v(s) alone."""
        return self._through(self._normal(x), 1).squeeze(-1)

    def forward(self, x: Float[Tensor, "learners batch features"]) -> tuple[ActionLaw, Float[Tensor, "learners batch"]]:
        """π(·|s) and v(s)."""
        x = self._normal(x)
        return self._law(self._through(x, 0)), self._through(x, 1).squeeze(-1)

    @torch.no_grad()
    def traced(self, x: Float[Tensor, "learners batch features"]) -> Trace:
        """The same in one pass, with what `pull_back` needs of it."""
        return traced(self._normal(x), self._by_layer)

    def said(self, trace: Trace, rows: int) -> tuple[ActionLaw, Float[Tensor, "learners rows"]]:
        """π(·|s) and v(s) in the first states of a trace."""
        return self._law(trace.answer[:, :rows]), trace.value[:, :rows, 0]

    @torch.no_grad()
    def pull_back(
        self,
        trace: Trace,
        actions: Shaped[Tensor, "learners rows *action"],
        of_log_prob: Float[Tensor, "learners rows"],
        of_value: Float[Tensor, "learners rows"],
        of_entropy: float = 0.0,
    ) -> None:
        """The gradient of a loss into every parameter's `grad`, from ∂L/∂log π(a|s), ∂L/∂v(s) and ∂L/∂H(s)."""
        law, _ = self.said(trace, of_value.shape[1])
        slopes = law_slopes(law, actions, of_log_prob, of_entropy)
        pull_back(trace, self._by_layer, slopes.answer, of_value.unsqueeze(-1))
        if self.log_std is not None and slopes.log_std is not None:
            torch.sum(slopes.log_std, 1, keepdim=True, out=written(self.log_std))

    @property
    def _by_layer(self) -> list[Layer]:
        return [(layer.weight, layer.bias) for layer in self._at_hand]

    def _through(self, x: Tensor, which: int) -> Tensor:
        """The actors' networks alone, or the critics': the first half of every stack, or the second."""
        begin, own = which * self.learners, self.learners
        for layer in self._at_hand[:-2]:
            x = torch.baddbmm(layer.bias.narrow(0, begin, own), x, layer.weight.narrow(0, begin, own)).tanh()
        last = self._at_hand[which - 2]
        return torch.baddbmm(last.bias, x, last.weight)

    def _normal(self, x: Tensor) -> Tensor:
        return x if self.seen is None else self.seen(x)

    def _law(self, answer: Tensor) -> ActionLaw:
        return Choice(answer) if self.log_std is None else Spread(answer, self.log_std)
