"""Actor-critic networks: a policy and a state-value function (book sec. 18.5)."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from parnassus.reinforcement.agents.action_distributions import ActionDistribution, Categorical, DiagonalGaussian
from parnassus.reinforcement.agents.stacked_networks import Layer, StackedLinear
from parnassus.reinforcement.environments.interface import Actions, Continuous
from parnassus.reinforcement.experience.running_statistics import RunningMeanStd
from parnassus.reinforcement.fast.actor_critic_backward import (
    ActorCriticActivations,
    forward_with_activations,
    write_gradients,
)
from parnassus.reinforcement.fast.distribution_gradients import distribution_gradients
from parnassus.reinforcement.fast.stacked_backward import gradient_buffer


class ActorCritic(nn.Module):
    """π_θ(a|s) and v_w(s): two networks of the same shape for each of several learners (book sec. 18.5).

    The hidden layers of actors and critics are stacked, so that one batched product evaluates them all. With
    `normalize_observations`, running statistics standardise the input; they are buffers, saved with the model.

    >>> from parnassus.reinforcement.environments.interface import Discrete
    >>> model = ActorCritic(4, Discrete(2), num_learners=3)
    >>> distribution, values = model(torch.zeros(3, 8, 4))
    >>> values.shape
    torch.Size([3, 8])
    """

    def __init__(
        self,
        features: int,
        actions: Actions,
        *,
        hidden: Sequence[int] = (64, 64),
        num_learners: int = 1,
        normalize_observations: bool = False,
    ) -> None:
        super().__init__()
        self.num_learners, self.continuous = num_learners, isinstance(actions, Continuous)
        self.observation_statistics = RunningMeanStd(num_learners, features) if normalize_observations else None
        sizes = [features, *hidden]
        hidden_layers = [StackedLinear(2 * num_learners, *pair) for pair in pairwise(sizes)]
        self.hidden = nn.ModuleList(hidden_layers)
        self.actor_head = StackedLinear(num_learners, sizes[-1], actions.count, gain=0.01)
        self.critic_head = StackedLinear(num_learners, sizes[-1], 1, gain=1.0)
        self.log_std = nn.Parameter(torch.zeros(num_learners, 1, actions.count)) if self.continuous else None
        self._layers = (*hidden_layers, self.actor_head, self.critic_head)  # module lookups cost as much as the layers

    def distribution(self, x: Float[Tensor, "learners batch features"]) -> ActionDistribution:
        """π(·|s) alone, as needed when acting."""
        return self._distribution(self._evaluate(self._normalise(x), 0))

    def values(self, x: Float[Tensor, "learners batch features"]) -> Float[Tensor, "learners batch"]:
        """v(s) alone."""
        return self._evaluate(self._normalise(x), 1).squeeze(-1)

    def forward(
        self, x: Float[Tensor, "learners batch features"]
    ) -> tuple[ActionDistribution, Float[Tensor, "learners batch"]]:
        """π(·|s) and v(s)."""
        x = self._normalise(x)
        return self._distribution(self._evaluate(x, 0)), self._evaluate(x, 1).squeeze(-1)

    @torch.no_grad()
    def forward_with_activations(self, x: Float[Tensor, "learners batch features"]) -> ActorCriticActivations:
        """Both outputs in one pass, with the layer inputs that `write_gradients` needs."""
        return forward_with_activations(self._normalise(x), self._parameters_by_layer)

    def read_activations(
        self, activations: ActorCriticActivations, rows: int
    ) -> tuple[ActionDistribution, Float[Tensor, "learners rows"]]:
        """π(·|s) and v(s) for the first `rows` states, from stored activations."""
        return self._distribution(activations.outputs[:, :rows]), activations.values[:, :rows, 0]

    @torch.no_grad()
    def write_gradients(
        self,
        activations: ActorCriticActivations,
        actions: Shaped[Tensor, "learners rows *action"],
        grad_log_prob: Float[Tensor, "learners rows"],
        grad_value: Float[Tensor, "learners rows"],
        grad_entropy: float = 0.0,
    ) -> None:
        """Write every parameter's `grad` by formulas, given ∂L/∂log π(a|s), ∂L/∂v(s) and ∂L/∂H(s)."""
        distribution, _ = self.read_activations(activations, grad_value.shape[1])
        gradients = distribution_gradients(distribution, actions, grad_log_prob, grad_entropy)
        write_gradients(activations, self._parameters_by_layer, gradients.outputs, grad_value.unsqueeze(-1))
        if self.log_std is not None and gradients.log_std is not None:
            torch.sum(gradients.log_std, 1, keepdim=True, out=gradient_buffer(self.log_std))

    @property
    def _parameters_by_layer(self) -> list[Layer]:
        return [(layer.weight, layer.bias) for layer in self._layers]

    def _evaluate(self, x: Tensor, network: int) -> Tensor:
        """Evaluate the actors alone (0, first half of every stack) or the critics alone (1, second half)."""
        begin, own = network * self.num_learners, self.num_learners
        for layer in self._layers[:-2]:
            x = torch.baddbmm(layer.bias.narrow(0, begin, own), x, layer.weight.narrow(0, begin, own)).tanh()
        head = self._layers[network - 2]
        return torch.baddbmm(head.bias, x, head.weight)

    def _normalise(self, x: Tensor) -> Tensor:
        return x if self.observation_statistics is None else self.observation_statistics(x)

    def _distribution(self, outputs: Tensor) -> ActionDistribution:
        return Categorical(outputs) if self.log_std is None else DiagonalGaussian(outputs, self.log_std)
