"""Distributions over paths of finite processes in exact fractions, and a test of the Markov property (Diehl sec. 5.1).

A path distribution maps paths (x_0, …, x_N) to their probabilities. With fractions every comparison is exact.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple, TypeAlias, TypeVar

State = TypeVar("State", bound=Hashable)
Observation = TypeVar("Observation", bound=Hashable)
StateDistribution: TypeAlias = Mapping[State, Fraction]
"""The probability of every state in the support."""
PathDistribution: TypeAlias = Mapping[tuple[State, ...], Fraction]
"""The probability of every path in the support."""


class MarkovViolation(NamedTuple):
    """A history and next state with P[X_n | X_0, …, X_{n−1}] ≠ P[X_n | X_{n−1}].

    >>> from fractions import Fraction
    >>> MarkovViolation((0, 1), 1, given_history=Fraction(1, 2), given_last_state=Fraction(1, 3)).next_state
    1
    """

    history: tuple[Hashable, ...]
    next_state: Hashable
    given_history: Fraction
    given_last_state: Fraction


def chain_distribution(
    start: StateDistribution[State], transitions: Iterable[Mapping[State, StateDistribution[State]]]
) -> dict[tuple[State, ...], Fraction]:
    """P[x_0, …, x_N] = ν(x_0) A_0(x_0, x_1) … A_{N−1}(x_{N−1}, x_N), a matrix for each step (Diehl ex. 5.10)."""
    _check_total(start, "the initial distribution")
    paths: dict[tuple[State, ...], Fraction] = {(state,): p for state, p in start.items() if p}
    for transition in transitions:
        for state, row in transition.items():
            _check_total(row, f"the row of state {state}")
        paths = {
            (*path, following): probability * p
            for path, probability in paths.items()
            for following, p in transition[path[-1]].items()
            if p
        }
    return paths


def random_walk_distribution(steps: int, *, up: Fraction = Fraction(1, 2)) -> dict[tuple[int, ...], Fraction]:
    """The distribution of the random walk Y_0, …, Y_n with independent steps ±1 (Diehl ex. 5.10)."""
    if steps < 0 or not 0 <= up <= 1:
        raise ValueError(f"need steps ≥ 0 and a probability in [0, 1]; got steps={steps}, up={up}")
    move = {y: {y + 1: up, y - 1: 1 - up} for y in range(-steps, steps + 1)}
    return chain_distribution({1: up, -1: 1 - up}, [move] * steps)


def observed_distribution(
    distribution: PathDistribution[State], function: Callable[[State], Observation]
) -> dict[tuple[Observation, ...], Fraction]:
    """The distribution of Y_n = f(X_n), summed over paths with equal observations (Diehl ex. 5.10)."""
    total = defaultdict[tuple[Observation, ...], Fraction](Fraction)
    for path, probability in distribution.items():
        total[tuple(function(state) for state in path)] += probability
    return dict(total)


def history_distribution(distribution: PathDistribution[int]) -> dict[tuple[tuple[int, ...], ...], Fraction]:
    """The distribution of the histories Y_n = (X_0, …, X_n, 0, …, 0), padded with zeros (Diehl ex. 5.10)."""
    if any(0 in path for path in distribution):
        raise ValueError("no state may be 0, which is the padding value; relabel the states")
    return {
        tuple(path[: n + 1] + (0,) * (len(path) - n - 1) for n in range(len(path))): probability
        for path, probability in distribution.items()
    }


def next_state_distribution(
    distribution: PathDistribution[State], history: Sequence[State], *, since: int = 0
) -> dict[State, Fraction]:
    """P[X_n = · | X_m = h_0, …, X_{n−1} = h_{n−1−m}] for a history that begins at time m = `since`."""
    past = tuple(history)
    time = since + len(past)
    if not distribution or not 0 <= since <= time < len(next(iter(distribution))):
        raise ValueError(f"paths must extend beyond the history; got a history of {len(past)} from time {since}")
    joint = defaultdict[State, Fraction](Fraction)
    for path, probability in distribution.items():
        if path[since:time] == past:
            joint[path[time]] += probability
    total = sum(joint.values(), Fraction(0))
    if not total:
        raise ValueError(f"the history must have positive probability; {past} has probability 0")
    return {state: probability / total for state, probability in joint.items()}


def markov_violations(distribution: PathDistribution[State]) -> list[MarkovViolation]:
    """All histories whose next-state distribution depends on more than the last state; none for a Markov chain.

        P[X_n = x_n | X_0 = x_0, …, X_{n−1} = x_{n−1}] = P[X_n = x_n | X_{n−1} = x_{n−1}]    (Diehl sec. 5.1)

    All times, all histories of positive probability and all possible next states are compared.
    """
    violations = []
    for time in range(1, len(next(iter(distribution), ()))):
        histories, longer = _marginal(distribution, 0, time), _marginal(distribution, 0, time + 1)
        states, pairs = _marginal(distribution, time - 1, time), _marginal(distribution, time - 1, time + 1)
        for history, probability in histories.items():
            for (state, following), joint in pairs.items():
                if state != history[-1]:
                    continue
                given_history = longer.get((*history, following), Fraction(0)) / probability
                given_last_state = joint / states[(state,)]
                if given_history != given_last_state:
                    violations.append(MarkovViolation(history, following, given_history, given_last_state))
    return violations


def is_markov(distribution: PathDistribution[State]) -> bool:
    """Whether the future is independent of the past given the present, exactly (Diehl sec. 5.1)."""
    return not markov_violations(distribution)


def _marginal(distribution: PathDistribution[State], first: int, last: int) -> dict[tuple[State, ...], Fraction]:
    """The distribution of X_first, …, X_{last−1}."""
    total = defaultdict[tuple[State, ...], Fraction](Fraction)
    for path, probability in distribution.items():
        if probability:
            total[path[first:last]] += probability
    return dict(total)


def _check_total(distribution: StateDistribution[State], name: str) -> None:
    total = sum(distribution.values(), Fraction(0))
    if min(distribution.values(), default=Fraction(0)) < 0 or total != 1:
        raise ValueError(f"{name} must hold non-negative fractions with sum one; they sum to {total}")
