"""Claims about lumped Markov chains and histories as states (Diehl sec. 5.1)."""

from fractions import Fraction

import torch

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal
from parnassus.probability.processes.hidden_markov_model import LUMPED_CHAIN, LUMPING, lumped_chain
from parnassus.probability.processes.markov_chain import stationary_distribution
from parnassus.probability.processes.path_distribution import (
    chain_distribution,
    history_distribution,
    is_markov,
    markov_violations,
    next_state_distribution,
    observed_distribution,
)
from parnassus.probability.processes.random_walk import lift_to_histories

UNIFORM = {state: Fraction(1, 5) for state in range(1, 6)}
PRINTED = torch.tensor(
    [[0, 1, 0, 0.2, 0], [0, 0, 1, 0.2, 0], [0.5, 0, 0, 0.2, 0], [0, 0, 0, 0.2, 1], [0.5, 0, 0, 0.2, 0]],
    dtype=torch.float64,
)
"""The transition matrix of the lumped chain as printed in the notes."""


@claim("D5.1.8", "D5.1.2")
def a_lumped_chain_is_not_markov() -> Evidence:
    """P[2 | 2, then one, two or three 1s] is 1/6, 1/5, 1/4, so the observations are not Markov (Diehl ex. 5.10).

    The hidden chain is Markov, and the forward algorithm gives the same fractions.
    """
    hidden = chain_distribution(UNIFORM, [LUMPED_CHAIN] * 5)
    observations = observed_distribution(hidden, LUMPING.__getitem__)
    conditionals = [next_state_distribution(observations, (2, *[1] * ones))[2] for ones in (1, 2, 3)]
    model = lumped_chain(torch.full((5,), 0.2, dtype=torch.float64))
    forward = [model.predict(torch.tensor([[1] + [0] * ones]))[0, 1] for ones in (1, 2, 3)]
    exact = torch.tensor([1 / 6, 1 / 5, 1 / 4], dtype=torch.float64)
    return all_of(
        hidden_chain_is_markov=close(len(markov_violations(hidden)), 0),
        observations_are_not=greater_equal(len(markov_violations(observations)), 1),
        exact_fractions=close(float(conditionals == [Fraction(1, 6), Fraction(1, 5), Fraction(1, 4)]), 1.0),
        forward_algorithm=close(torch.stack(forward), exact, atol=1e-15),
    )


@claim("D5.1.8")
def the_stationary_lumped_chain_is_not_markov() -> Evidence:
    """Started in the stationary distribution (6, 5, 4, 5, 4)/24, the lumped chain is not Markov (Diehl ex. 5.10)."""
    stationary = torch.tensor([6, 5, 4, 5, 4], dtype=torch.float64) / 24
    start = {state: Fraction(weight, 24) for state, weight in enumerate((6, 5, 4, 5, 4), start=1)}
    one_step = chain_distribution(start, [LUMPED_CHAIN])
    next_marginal = {
        state: sum((p for path, p in one_step.items() if path[1] == state), Fraction(0)) for state in start
    }
    observations = observed_distribution(chain_distribution(start, [LUMPED_CHAIN] * 4), LUMPING.__getitem__)
    return all_of(
        solved=close(stationary_distribution(lumped_chain(stationary).chain.transition), stationary, atol=1e-15),
        exactly=close(float(next_marginal == start), 1.0),
        observations_are_not_markov=greater_equal(len(markov_violations(observations)), 1),
    )


@erratum("D5.1.8", printed="A as printed, for n = 2", right="the transpose of A, for n = 5: A_ij = P[i → j]")
def the_transition_matrix_is_printed_transposed() -> Correction:
    """The printed matrix has columns that sum to one; its rows sum to 1.2, 1.2, 0.7, 1.2, 0.7 (Diehl ex. 5.10)."""
    model = lumped_chain(torch.full((5,), 0.2, dtype=torch.float64))
    return Correction(
        printed=close(PRINTED.sum(1), 1.0, atol=1e-12),
        corrected=all_of(
            rows_of_the_transpose=close(PRINTED.T.sum(1), 1.0, atol=1e-12),
            is_the_chain=close(PRINTED.T, model.chain.transition),
            as_printed=close(PRINTED.sum(1), torch.tensor([1.2, 1.2, 0.7, 1.2, 0.7]), atol=1e-6),
            states=close(len(PRINTED), 5),
        ),
    )


@claim("D5.1.9")
def the_history_process_is_markov() -> Evidence:
    """The history (X_0, …, X_n, 0, …) of the lumped chain is Markov, the lumped chain is not (Diehl ex. 5.10)."""
    observations = observed_distribution(chain_distribution(UNIFORM, [LUMPED_CHAIN] * 5), LUMPING.__getitem__)
    histories = history_distribution(observations)
    paths = torch.tensor(list(observations))
    as_tensor = [tuple(tuple(state) for state in path) for path in lift_to_histories(paths).tolist()]
    return all_of(
        before=greater_equal(len(markov_violations(observations)), 1),
        after=close(len(markov_violations(histories)), 0),
        same_as_tensors=close(float(as_tensor == list(histories)), 1.0),
        same_number_of_paths=close(len(histories), len(observations)),
    )


@erratum(
    "D5.1.9", printed="P[Y_n = y_n | Y_0 = y_0, …, Y_n = y_n]", right="P[Y_n = y_n | Y_0 = y_0, …, Y_{n−1} = y_{n−1}]"
)
def the_proof_conditions_on_its_own_event() -> Correction:
    """Given Y_n itself the probability of Y_n is 1, which P[Y_n | Y_{n−1}] is not (Diehl ex. 5.10)."""
    histories = history_distribution(
        observed_distribution(chain_distribution(UNIFORM, [LUMPED_CHAIN] * 4), LUMPING.__getitem__)
    )
    path = next(path for path in histories if path[-1] == (2, 1, 1, 1, 2))
    given_present = float(next_state_distribution(histories, path[3:4], since=3)[path[4]])
    given_itself = sum(p for each, p in histories.items() if each == path) / histories[path]
    return Correction(
        printed=close(float(given_itself), given_present),
        corrected=all_of(
            given_the_past=close(float(next_state_distribution(histories, path[:4])[path[4]]), given_present),
            a_quarter=close(given_present, 0.25),
            markov=close(float(is_markov(histories)), 1.0),
        ),
    )
