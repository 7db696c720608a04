"""Laws of finite processes path by path, in exact fractions, and a judge of the Markov property (Diehl sec. 5.1).

A law is a mapping from paths (x_0, …, x_N) to their probabilities. With fractions every comparison is exact.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple, TypeAlias, TypeVar

State = TypeVar("State", bound=Hashable)
Seen = TypeVar("Seen", bound=Hashable)
Law: TypeAlias = Mapping[State, Fraction]
"""The probability of every state that can happen."""
PathLaw: TypeAlias = Mapping[tuple[State, ...], Fraction]
"""The probability of every path that can happen."""


class Memory(NamedTuple):
    """A moment at which the past says more than the present: P[X_n | past] ≠ P[X_n | X_{n−1}]."""

    history: tuple[Hashable, ...]
    following: Hashable
    given_history: Fraction
    given_present: Fraction


def chain_law(
    start: Law[State], transitions: Iterable[Mapping[State, Law[State]]]
) -> dict[tuple[State, ...], Fraction]:
    """P[x_0, …, x_N] = ν(x_0) A_0(x_0, x_1) … A_{N−1}(x_{N−1}, x_N), a matrix for each step (Diehl ex. 5.10)."""
    _require_total(start, "the starting law")
    law: dict[tuple[State, ...], Fraction] = {(state,): share for state, share in start.items() if share}
    for transition in transitions:
        for state, row in transition.items():
            _require_total(row, f"the row of state {state}")
        law = {
            (*path, following): probability * share
            for path, probability in law.items()
            for following, share in transition[path[-1]].items()
            if share
        }
    return law


def walk_law(steps: int, *, up: Fraction = Fraction(1, 2)) -> dict[tuple[int, ...], Fraction]:
    """The law of the random walk Y_0, …, Y_n with independent steps ±1 (Diehl ex. 5.10)."""
    if steps < 0 or not 0 <= up <= 1:
        raise ValueError(f"need steps ≥ 0 and a probability in [0, 1]; got steps={steps}, up={up}")
    move = {y: {y + 1: up, y - 1: 1 - up} for y in range(-steps, steps + 1)}
    return chain_law({1: up, -1: 1 - up}, [move] * steps)


def observed(law: PathLaw[State], function: Callable[[State], Seen]) -> dict[tuple[Seen, ...], Fraction]:
    """The law of Y_n = f(X_n): the paths that look alike are added up (Diehl ex. 5.10)."""
    total = defaultdict[tuple[Seen, ...], Fraction](Fraction)
    for path, probability in law.items():
        total[tuple(function(state) for state in path)] += probability
    return dict(total)


def lifted(law: PathLaw[int]) -> dict[tuple[tuple[int, ...], ...], Fraction]:
    """The law of Y_n = (X_0, …, X_n, 0, …, 0), with zeros up to the last moment of the law (Diehl ex. 5.10)."""
    if any(0 in path for path in law):
        raise ValueError("no state may be 0, for 0 says 'not yet'; rename the states")
    return {
        tuple(path[: n + 1] + (0,) * (len(path) - n - 1) for n in range(len(path))): probability
        for path, probability in law.items()
    }


def following_law(law: PathLaw[State], history: Sequence[State], *, since: int = 0) -> dict[State, Fraction]:
    """P[X_n = · | X_m = h_0, …, X_{n−1} = h_{n−1−m}] for a history that begins at the moment m = `since`."""
    past = tuple(history)
    moment = since + len(past)
    if not law or not 0 <= since <= moment < len(next(iter(law))):
        raise ValueError(f"the law must reach beyond the history; got a history of {len(past)} from moment {since}")
    joint = defaultdict[State, Fraction](Fraction)
    for path, probability in law.items():
        if path[since:moment] == past:
            joint[path[moment]] += probability
    total = sum(joint.values(), Fraction(0))
    if not total:
        raise ValueError(f"nothing follows from what cannot happen: the history {past} has probability 0")
    return {state: probability / total for state, probability in joint.items()}


def memories(law: PathLaw[State]) -> list[Memory]:
    """Every case in which the past says more than the present: none for a Markov chain, and only for one.

        P[X_n = x_n | X_0 = x_0, …, X_{n−1} = x_{n−1}] = P[X_n = x_n | X_{n−1} = x_{n−1}]    (Diehl sec. 5.1)

    All moments, all histories of positive probability and all states that may follow the present are compared.
    """
    found = []
    for moment in range(1, len(next(iter(law), ()))):
        upto, since = _marginal(law, 0, moment + 1), _marginal(law, moment - 1, moment + 1)
        before, now = _marginal(law, 0, moment), _marginal(law, moment - 1, moment)
        for history, weight in before.items():
            for (present, following), joint in since.items():
                if present != history[-1]:
                    continue
                given_history = upto.get((*history, following), Fraction(0)) / weight
                given_present = joint / now[(present,)]
                if given_history != given_present:
                    found.append(Memory(history, following, given_history, given_present))
    return found


def is_markov(law: PathLaw[State]) -> bool:
    """Whether the future is independent of the past given the present, exactly (Diehl sec. 5.1)."""
    return not memories(law)


def _marginal(law: PathLaw[State], first: int, last: int) -> dict[tuple[State, ...], Fraction]:
    """The law of X_first, …, X_{last−1}."""
    total = defaultdict[tuple[State, ...], Fraction](Fraction)
    for path, probability in law.items():
        if probability:
            total[path[first:last]] += probability
    return dict(total)


def _require_total(law: Law[State], name: str) -> None:
    total = sum(law.values(), Fraction(0))
    if min(law.values(), default=Fraction(0)) < 0 or total != 1:
        raise ValueError(f"{name} must hold non-negative fractions that sum to one; they sum to {total}")
