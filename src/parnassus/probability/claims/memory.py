"""Claims about what remembers its past: blurred chains, and the past as a state (Diehl sec. 5.1)."""

from fractions import Fraction

import torch

from parnassus.atlas import Correction, Evidence, all_of, at_least, claim, close, erratum
from parnassus.probability.hidden_markov import BLUR, BLURRED_CHAIN, blurred_chain
from parnassus.probability.markov_chains import stationary_law
from parnassus.probability.path_laws import chain_law, following_law, is_markov, lifted, memories, observed
from parnassus.probability.processes import lift

EVENLY = {state: Fraction(1, 5) for state in range(1, 6)}
PRINTED = torch.tensor(
    [[0, 1, 0, 0.2, 0], [0, 0, 1, 0.2, 0], [0.5, 0, 0, 0.2, 0], [0, 0, 0, 0.2, 1], [0.5, 0, 0, 0.2, 0]],
    dtype=torch.float64,
)
"""The matrix of the blurred chain as the notes have it."""


@claim("D5.1.8", "D5.1.2")
def a_blurred_chain_remembers() -> Evidence:
    """After 2 the chance to see 2 again behind one, two, three 1s is 1/6, 1/5, 1/4 (Diehl ex. 5.10).

    The hidden chain has no memory, what is seen of it has, and the forward algorithm finds the same fractions.
    """
    hidden = chain_law(EVENLY, [BLURRED_CHAIN] * 5)
    seen = observed(hidden, BLUR.__getitem__)
    after = [following_law(seen, (2, *[1] * ones))[2] for ones in (1, 2, 3)]
    model = blurred_chain(torch.full((5,), 0.2, dtype=torch.float64))
    forward = [model.predict(torch.tensor([[1] + [0] * ones]))[0, 1] for ones in (1, 2, 3)]
    exact = torch.tensor([1 / 6, 1 / 5, 1 / 4], dtype=torch.float64)
    return all_of(
        hidden_has_no_memory=close(len(memories(hidden)), 0),
        seen_has=at_least(len(memories(seen)), 1),
        exact_fractions=close(float(after == [Fraction(1, 6), Fraction(1, 5), Fraction(1, 4)]), 1.0),
        forward_algorithm=close(torch.stack(forward), exact, atol=1e-15),
    )


@claim("D5.1.8")
def the_blurred_chain_comes_to_rest_at_24ths() -> Evidence:
    """Its stationary law is (6, 5, 4, 5, 4)/24, and blurred from there it still remembers (Diehl ex. 5.10)."""
    rest = torch.tensor([6, 5, 4, 5, 4], dtype=torch.float64) / 24
    start = {state: Fraction(share, 24) for state, share in enumerate((6, 5, 4, 5, 4), start=1)}
    after = chain_law(start, [BLURRED_CHAIN])
    again = {state: sum((p for path, p in after.items() if path[1] == state), Fraction(0)) for state in start}
    seen = observed(chain_law(start, [BLURRED_CHAIN] * 4), BLUR.__getitem__)
    return all_of(
        solved=close(stationary_law(blurred_chain(rest).chain.transition), rest, atol=1e-15),
        exactly=close(float(again == start), 1.0),
        remembers=at_least(len(memories(seen)), 1),
    )


@erratum("D5.1.8", printed="A as printed, for n = 2", right="its transpose, for n = 5: A_ij = P[i → j]")
def the_blurred_chain_is_printed_on_its_side() -> Correction:
    """The printed matrix has columns that sum to one; its rows sum to 1.2, 1.2, 0.7, 1.2, 0.7 (Diehl ex. 5.10)."""
    model = blurred_chain(torch.full((5,), 0.2, dtype=torch.float64))
    return Correction(
        printed=close(PRINTED.sum(1), 1.0, atol=1e-12),
        corrected=all_of(
            rows_of_the_transpose=close(PRINTED.T.sum(1), 1.0, atol=1e-12),
            is_our_chain=close(PRINTED.T, model.chain.transition),
            as_printed=close(PRINTED.sum(1), torch.tensor([1.2, 1.2, 0.7, 1.2, 0.7]), atol=1e-6),
            states=close(len(PRINTED), 5),
        ),
    )


@claim("D5.1.9")
def the_whole_past_as_state_leaves_no_memory() -> Evidence:
    """The lift (X_0, …, X_n, 0, …) of the blurred chain is Markov, though the blurred chain is not (Diehl ex. 5.10)."""
    seen = observed(chain_law(EVENLY, [BLURRED_CHAIN] * 5), BLUR.__getitem__)
    raised = lifted(seen)
    paths = torch.tensor(list(seen))
    as_tensor = [tuple(tuple(state) for state in path) for path in lift(paths).tolist()]
    return all_of(
        before=at_least(len(memories(seen)), 1),
        after=close(len(memories(raised)), 0),
        same_as_tensors=close(float(as_tensor == list(raised)), 1.0),
        as_many_paths=close(len(raised), len(seen)),
    )


@erratum(
    "D5.1.9", printed="P[Y_n = y_n | Y_0 = y_0, …, Y_n = y_n]", right="P[Y_n = y_n | Y_0 = y_0, …, Y_{n−1} = y_{n−1}]"
)
def the_proof_conditions_on_what_it_asks() -> Correction:
    """Given Y_n itself the probability of Y_n is 1, which P[Y_n | Y_{n−1}] is not (Diehl ex. 5.10)."""
    raised = lifted(observed(chain_law(EVENLY, [BLURRED_CHAIN] * 4), BLUR.__getitem__))
    path = next(path for path in raised if path[-1] == (2, 1, 1, 1, 2))
    given_present = float(following_law(raised, path[3:4], since=3)[path[4]])
    given_itself = sum(p for each, p in raised.items() if each == path) / raised[path]
    return Correction(
        printed=close(float(given_itself), given_present),
        corrected=all_of(
            given_the_past=close(float(following_law(raised, path[:4])[path[4]]), given_present),
            a_quarter=close(given_present, 0.25),
            markov=close(float(is_markov(raised)), 1.0),
        ),
    )
