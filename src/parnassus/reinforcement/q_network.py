"""Networks that say what every action is worth, plain and dueling, for several learners at once (book sec. 18.3)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.reinforcement.rectified import RectifiedMLP, Trace


class QNetwork(nn.Module):
    """s ↦ (Q(s, a; θ))_a: all actions by one pass, one network for each learner (book sec. 18.3)."""

    def __init__(self, features: int, actions: int, *, hidden: Sequence[int] = (256, 256), learners: int = 1) -> None:
        super().__init__()
        if actions < 1:
            raise ValueError(f"there must be an action to judge; got actions={actions}")
        self.q = RectifiedMLP(learners, [features, *hidden, actions])

    def forward(self, x: Float[Tensor, "learners batch features"]) -> Float[Tensor, "learners batch actions"]:
        return self.q.traced(x).said

    def traced(self, x: Float[Tensor, "learners batch features"]) -> Trace:
        """The same, with what `pull_back` needs of it."""
        return self.q.traced(x)

    def pull_back(self, trace: Trace, slope: Float[Tensor, "learners batch actions"]) -> None:
        """The gradient of a loss into every parameter's `grad`, from `slope`, ∂L/∂Q."""
        self.q.pull_back(trace, slope)


class DuelingQNetwork(nn.Module):
    """The same, in two parts that share their hidden layers: Q(s, a) = V(s) + A(s, a) − mean_a' A(s, a').

    What all actions have in common is learned from each of them (Wang et al. 2016).
    """

    def __init__(self, features: int, actions: int, *, hidden: Sequence[int] = (256, 256), learners: int = 1) -> None:
        super().__init__()
        if actions < 1:
            raise ValueError(f"there must be an action to judge; got actions={actions}")
        self.parts = RectifiedMLP(learners, [features, *hidden, 1 + actions])

    def forward(self, x: Float[Tensor, "learners batch features"]) -> Float[Tensor, "learners batch actions"]:
        return self.traced(x).said

    def traced(self, x: Float[Tensor, "learners batch features"]) -> Trace:
        """The same, with what `pull_back` needs of it."""
        parts, shown = self.parts.traced(x)
        return Trace(dueling(parts[..., :1], parts[..., 1:]), shown)

    def pull_back(self, trace: Trace, slope: Float[Tensor, "learners batch actions"]) -> None:
        """The gradient of a loss into every parameter's `grad`, from `slope`, ∂L/∂Q.

        ∂L/∂V = Σ_a ∂L/∂Q_a,   ∂L/∂A_a = ∂L/∂Q_a − mean_a' ∂L/∂Q_a'
        """
        of_value, of_advantage = slope.sum(-1, keepdim=True), slope - slope.mean(-1, keepdim=True)
        self.parts.pull_back(trace, torch.cat([of_value, of_advantage], -1))


def dueling(
    value: Float[Tensor, "*batch 1"], advantage: Float[Tensor, "*batch actions"]
) -> Float[Tensor, "*batch actions"]:
    """V + A − mean A: without the mean a number could wander from one part to the other unseen."""
    return value + advantage - advantage.mean(-1, keepdim=True)
