"""Networks that say what every action is worth, plain and dueling, for several learners at once (book sec. 18.3)."""

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor, nn

from parnassus.reinforcement.rectified import RectifiedMLP


class QNetwork(nn.Module):
    """s ↦ (Q(s, a; θ))_a: all actions by one pass, one network for each learner (book sec. 18.3)."""

    def __init__(self, features: int, actions: int, *, hidden: Sequence[int] = (256, 256), learners: int = 1) -> None:
        super().__init__()
        if actions < 1:
            raise ValueError(f"there must be an action to judge; got actions={actions}")
        self.q = RectifiedMLP(learners, [features, *hidden, actions])

    def forward(self, x: Float[Tensor, "learners batch features"]) -> Float[Tensor, "learners batch actions"]:
        q: Tensor = self.q(x)
        return q


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
        parts: Tensor = self.parts(x)
        return dueling(parts[..., :1], parts[..., 1:])


def dueling(
    value: Float[Tensor, "*batch 1"], advantage: Float[Tensor, "*batch actions"]
) -> Float[Tensor, "*batch actions"]:
    """V + A − mean A: without the mean a number could wander from one part to the other unseen."""
    return value + advantage - advantage.mean(-1, keepdim=True)
