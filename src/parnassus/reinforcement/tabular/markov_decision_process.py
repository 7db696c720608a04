"""Finite Markov decision processes and the values of policies (book sec. 18.2).

A policy is a table π(a|s), one row per state. The reward r(s, a, s') follows the action and has the index of its state
and action: s_0, a_0, r_0, s_1, … (book sec. 18.4).
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from parnassus.probability.distributions.simplex import check_distribution
from parnassus.reinforcement.tabular.categorical_sampling import sample_categorical
from parnassus.reinforcement.tabular.markov_reward_process import MarkovRewardProcess, check_discount, solve_bellman


@dataclass(frozen=True)
class MarkovDecisionProcess:
    """A decision process with finitely many states and actions (book sec. 18.2).

        P[s_{t+1} = s' | s_t = s, a_t = a] = P(s, a, s'),   r_t = r(s, a, s')
        Q(s, a) = Σ_s' P(s, a, s') (r(s, a, s') + γ V(s')),   V = 0 at a terminal state

    `allowed` marks the actions available in each state; it is ignored at terminal states.

    >>> process = GridWorld("..G").process
    >>> process.transition.shape
    torch.Size([3, 4, 3])
    """

    transition: Float[Tensor, "states actions states"]
    reward: Float[Tensor, "states actions states"]
    gamma: float
    terminal: Bool[Tensor, " states"]
    allowed: Bool[Tensor, "states actions"]

    def __post_init__(self) -> None:
        check_distribution(self.transition, "transition")
        check_discount(self.gamma)
        stuck = (~self.terminal & ~self.allowed.any(1)).nonzero()[:, 0].tolist()
        if stuck:
            raise ValueError(f"every non-terminal state needs an allowed action; states {stuck} have none")

    @property
    def num_states(self) -> int:
        return self.transition.shape[0]

    @property
    def num_actions(self) -> int:
        return self.transition.shape[1]

    @property
    def expected_reward(self) -> Float[Tensor, "states actions"]:
        """r̄(s, a) = Σ_s' P(s, a, s') r(s, a, s')."""
        return (self.transition * self.reward).sum(-1)

    def with_discount(self, gamma: float) -> "MarkovDecisionProcess":
        """The process with another discount."""
        return replace(self, gamma=gamma)

    def q_values(self, values: Float[Tensor, "*batch states"]) -> Float[Tensor, "*batch states actions"]:
        """Q(s, a) = r̄(s, a) + γ Σ_s' P(s, a, s') V(s'); −∞ where a is not allowed, 0 at a terminal state."""
        next_values = torch.einsum("sat,...t->...sa", self.transition, values.masked_fill(self.terminal, 0))
        q = (self.expected_reward + self.gamma * next_values).masked_fill(~self.allowed, -torch.inf)
        return q.masked_fill(self.terminal[:, None], 0)

    def reward_process(self, policy: Float[Tensor, "states actions"]) -> MarkovRewardProcess:
        """The Markov reward process of a policy: P_π(s, s') = Σ_a π(a|s) P(s, a, s')."""
        self.check_policy(policy)
        transition, reward = self._marginalise(policy)
        stay = torch.eye(self.num_states, dtype=transition.dtype, device=transition.device)
        return MarkovRewardProcess(
            torch.where(self.terminal[:, None], stay, transition), reward.masked_fill(self.terminal, 0), self.gamma
        )

    def state_values(self, policy: Float[Tensor, "*batch states actions"]) -> Float[Tensor, "*batch states"]:
        """V^π of many policies from Bellman's equations, differentiable with respect to π (book eqs. 18.1-18.5)."""
        self.check_policy(policy)
        transition, reward = self._marginalise(policy)
        return solve_bellman(transition, reward, self.gamma, self.terminal.expand(reward.shape))

    def advantages(self, policy: Float[Tensor, "*batch states actions"]) -> Float[Tensor, "*batch states actions"]:
        """A^π(s, a) = Q^π(s, a) − V^π(s); −∞ where a is not allowed, 0 at a terminal state (book sec. 18.5)."""
        values = self.state_values(policy)
        return self.q_values(values) - values.masked_fill(self.terminal, 0)[..., None]

    def occupancy(
        self, policy: Float[Tensor, "*batch states actions"], start: Float[Tensor, " states"]
    ) -> Float[Tensor, "*batch states"]:
        """Discounted state occupancy d(s) = Σ_t γ^t P[s_t = s, not terminal]: d = ρ + γ P_πᵀ d.

        It sums to 1/(1 − γ) without terminal states, and to the mean length of an episode without discount.
        """
        self.check_policy(policy)
        check_distribution(start, "start")
        transition, _ = self._marginalise(policy)
        active = (~self.terminal).to(start)
        onward = transition * active * active[:, None]
        system = torch.eye(self.num_states, dtype=start.dtype, device=start.device) - self.gamma * onward.mT
        visits: Tensor = torch.linalg.solve(system, (start * active).expand(transition.shape[:-1]))
        return visits

    def uniform_policy(self) -> Float[Tensor, "states actions"]:
        """The policy with equal probability for every allowed action."""
        mask = torch.where(self.terminal[:, None], torch.ones_like(self.allowed), self.allowed).to(self.transition)
        return mask / mask.sum(1, keepdim=True)

    def greedy_policy(self, q: Float[Tensor, "*batch states actions"]) -> Float[Tensor, "*batch states actions"]:
        """The greedy policy: the first action with the largest value."""
        greedy = self.mask_q_values(q).argmax(-1)
        return torch.nn.functional.one_hot(greedy, self.num_actions).to(q)

    def mask_q_values(self, q: Float[Tensor, "*batch states actions"]) -> Float[Tensor, "*batch states actions"]:
        """The table with −∞ where an action is not allowed and 0 at terminal states."""
        return q.masked_fill(~self.allowed, -torch.inf).masked_fill(self.terminal[:, None], 0)

    def step(
        self,
        states: Int[Tensor, " count"],
        actions: Int[Tensor, " count"],
        *,
        generator: torch.Generator | None = None,
    ) -> tuple[Float[Tensor, " count"], Int[Tensor, " count"]]:
        """Sampled rewards and next states of many agents at once."""
        next_states = sample_categorical(self.transition[states, actions], generator)
        return self.reward[states, actions, next_states], next_states

    def check_policy(self, policy: Float[Tensor, "*batch states actions"]) -> None:
        """Raise a ValueError unless each row is a distribution over allowed actions."""
        check_distribution(policy, "policy")
        forbidden = (policy.detach() * ~(self.allowed | self.terminal[:, None])).amax(-1)
        if float(forbidden.max()) > 0:
            state = int(forbidden.reshape(-1, self.num_states).amax(0).argmax())
            raise ValueError(
                f"a policy must choose allowed actions only; in state {state} another one has probability "
                f"{float(forbidden.max()):g}"
            )

    def _marginalise(self, policy: Tensor) -> tuple[Tensor, Tensor]:
        """Transition matrix and expected reward of a step under the policy."""
        return (
            torch.einsum("...sa,sat->...st", policy, self.transition),
            (policy * self.expected_reward).sum(-1),
        )
