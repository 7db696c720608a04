"""Markov reward processes and their values (book sec. 18.2).

A state is terminal if it is absorbing and has reward 0: its value is 0 for any discount.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from parnassus.errors import check_non_negative
from parnassus.probability import MarkovChain
from parnassus.probability.processes.markov_chain import check_transition


@dataclass(frozen=True)
class MarkovRewardProcess:
    """A Markov chain with a reward for each state and a discount γ (book sec. 18.2).

        v(s) = r(s) + γ Σ_s' P(s, s') v(s')                                        (book eqs. 18.1-18.5)
        v = (1 − γP)⁻¹ r

    With γ = 1 values are finite where every state eventually reaches a terminal one.

    >>> process = MarkovRewardProcess(torch.tensor([[0.0, 1.0], [0.0, 1.0]]), torch.tensor([1.0, 0.0]), gamma=0.9)
    >>> process.gamma
    0.9
    """

    transition: Float[Tensor, "states states"]
    reward: Float[Tensor, " states"]
    gamma: float

    def __post_init__(self) -> None:
        check_transition(self.transition, states=len(self.reward))
        check_discount(self.gamma)

    @property
    def terminal(self) -> Bool[Tensor, " states"]:
        """Which states are terminal: absorbing, with reward 0."""
        return (self.transition.diagonal() == 1) & (self.reward == 0)

    def chain(self, start: Float[Tensor, " states"]) -> MarkovChain:
        """The Markov chain without rewards."""
        return MarkovChain(start, self.transition)

    def values(self) -> Float[Tensor, " states"]:
        """State values, by solving Bellman's equations (book eqs. 18.1-18.5)."""
        return solve_bellman(self.transition, self.reward, self.gamma, self.terminal)

    def backup(self, values: Float[Tensor, "*batch states"]) -> Float[Tensor, "*batch states"]:
        """Bellman's operator r + γ P v, a contraction with factor γ in the maximum norm."""
        return self.reward + self.gamma * values @ self.transition.mT

    def iterates(self, sweeps: int) -> Float[Tensor, "{sweeps}+1 states"]:
        """v_0 = 0 and v_{k+1} = r + γ P v_k, stacked: v_k is the expected sum of the first k rewards."""
        check_non_negative(sweeps=sweeps)
        iterates = [torch.zeros_like(self.reward)]
        for _ in range(sweeps):
            iterates.append(self.backup(iterates[-1]))
        return torch.stack(iterates)

    def path_return(self, path: Int[Tensor, "*batch time"]) -> Float[Tensor, "*batch"]:
        """Σ_t γ^t r(s_t) along a path of states (book sec. 18.2)."""
        powers = self.gamma ** torch.arange(path.shape[-1], dtype=self.reward.dtype, device=self.reward.device)
        return (self.reward[path] * powers).sum(-1)


def solve_bellman(
    transition: Float[Tensor, "*batch states states"],
    reward: Float[Tensor, "*batch states"],
    gamma: float,
    terminal: Bool[Tensor, "*batch states"],
) -> Float[Tensor, "*batch states"]:
    """The v with v = r + γ P v, and v = 0 at terminal states; many processes at once."""
    onward = transition.masked_fill(terminal[..., None], 0)
    if gamma == 1:
        _check_reachable_end(transition, terminal)
    system = torch.eye(transition.shape[-1], dtype=transition.dtype, device=transition.device) - gamma * onward
    values: Tensor = torch.linalg.solve(system, reward.masked_fill(terminal, 0))
    return values


def check_discount(gamma: float) -> None:
    """Raise a ValueError unless 0 ≤ γ ≤ 1."""
    if not 0 <= gamma <= 1:
        raise ValueError(f"the discount γ must satisfy 0 ≤ γ ≤ 1; got {gamma}")


def _check_reachable_end(transition: Tensor, terminal: Tensor) -> None:
    """Raise a ValueError if a state cannot reach a terminal one: for γ = 1 its value would be undefined."""
    has_transition = (transition.detach() > 0).to(transition)
    reaches_end = terminal
    for _ in range(transition.shape[-1]):
        previous = reaches_end
        reaches_end = terminal | ((has_transition @ reaches_end[..., None].to(transition))[..., 0] > 0)
        if torch.equal(previous, reaches_end):
            break
    if not bool(reaches_end.all()):
        stuck = int((~reaches_end).reshape(-1, transition.shape[-1]).any(0).nonzero()[0])
        raise ValueError(
            f"without discount every state must be able to reach a terminal state; state {stuck} never does: "
            "use a discount below 1"
        )
