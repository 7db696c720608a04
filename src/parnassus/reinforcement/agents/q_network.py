"""Q-networks, plain and dueling, for several learners at once (book sec. 18.3)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.reinforcement.fast.relu_network import MLPActivations, ReLUMLP


class QNetwork(nn.Module):
    """s ↦ (Q(s, a; θ))_a: the values of all actions in one pass, one network per learner (book sec. 18.3).

    >>> QNetwork(4, 2, hidden=(8,))(torch.zeros(1, 5, 4)).shape
    torch.Size([1, 5, 2])
    """

    def __init__(
        self, features: int, actions: int, *, hidden: Sequence[int] = (256, 256), num_learners: int = 1
    ) -> None:
        super().__init__()
        if actions < 1:
            raise ValueError(f"at least one action is needed; got actions={actions}")
        self.q = ReLUMLP(num_learners, [features, *hidden, actions])

    def forward(self, x: Float[Tensor, "learners batch features"]) -> Float[Tensor, "learners batch actions"]:
        return self.q.forward_with_activations(x).outputs

    def forward_with_activations(self, x: Float[Tensor, "learners batch features"]) -> MLPActivations:
        """Q(s, ·) with the layer inputs that `write_gradients` needs."""
        return self.q.forward_with_activations(x)

    def write_gradients(self, activations: MLPActivations, grad_q: Float[Tensor, "learners batch actions"]) -> None:
        """Write every parameter's `grad`, given ∂L/∂Q."""
        self.q.write_gradients(activations, grad_q)


class DuelingQNetwork(nn.Module):
    """A Q-network with two heads on shared hidden layers: Q(s, a) = V(s) + A(s, a) − mean_a' A(s, a').

    The state value is learned from every action (Wang et al. 2016).

    >>> DuelingQNetwork(4, 2, hidden=(8,))(torch.zeros(1, 5, 4)).shape
    torch.Size([1, 5, 2])
    """

    def __init__(
        self, features: int, actions: int, *, hidden: Sequence[int] = (256, 256), num_learners: int = 1
    ) -> None:
        super().__init__()
        if actions < 1:
            raise ValueError(f"at least one action is needed; got actions={actions}")
        self.heads = ReLUMLP(num_learners, [features, *hidden, 1 + actions])

    def forward(self, x: Float[Tensor, "learners batch features"]) -> Float[Tensor, "learners batch actions"]:
        return self.forward_with_activations(x).outputs

    def forward_with_activations(self, x: Float[Tensor, "learners batch features"]) -> MLPActivations:
        """Q(s, ·) with the layer inputs that `write_gradients` needs."""
        heads, layer_inputs = self.heads.forward_with_activations(x)
        return MLPActivations(dueling_q_values(heads[..., :1], heads[..., 1:]), layer_inputs)

    def write_gradients(self, activations: MLPActivations, grad_q: Float[Tensor, "learners batch actions"]) -> None:
        """Write every parameter's `grad`, given ∂L/∂Q.

        ∂L/∂V = Σ_a ∂L/∂Q_a,   ∂L/∂A_a = ∂L/∂Q_a − mean_a' ∂L/∂Q_a'
        """
        grad_value, grad_advantage = grad_q.sum(-1, keepdim=True), grad_q - grad_q.mean(-1, keepdim=True)
        self.heads.write_gradients(activations, torch.cat([grad_value, grad_advantage], -1))


def dueling_q_values(
    value: Float[Tensor, "*batch 1"], advantage: Float[Tensor, "*batch actions"]
) -> Float[Tensor, "*batch actions"]:
    """V + A − mean A: subtracting the mean makes V and A identifiable."""
    return value + advantage - advantage.mean(-1, keepdim=True)
