"""The forward algorithm against sums over every hidden path."""

import pytest
import torch
from torch import Tensor

from parnassus.probability import LUMPED_CHAIN, LUMPING, HiddenMarkovModel, MarkovChain, lumped_chain


def dishonest_dice() -> HiddenMarkovModel:
    def table(*rows: list[float]) -> Tensor:
        return torch.tensor(rows, dtype=torch.float64)

    chain = MarkovChain(table([0.6, 0.4])[0], table([0.9, 0.1], [0.3, 0.7]))
    return HiddenMarkovModel(chain, table([0.5, 0.3, 0.2], [0.1, 0.1, 0.8]))


def joint_with_every_hidden_path(model: HiddenMarkovModel, seen: Tensor) -> Tensor:
    """P[y, x] for all hidden paths x, the slow way."""
    hidden = torch.cartesian_prod(*[torch.arange(len(model.emission))] * len(seen))
    emitted = model.emission[hidden, seen].log().sum(1)
    return (model.chain.log_prob(hidden) + emitted).exp()


def test_the_forward_algorithm_sums_over_all_hidden_paths() -> None:
    model = dishonest_dice()
    seen = torch.tensor([0, 2, 2, 1, 2])
    joint = joint_with_every_hidden_path(model, seen)
    torch.testing.assert_close(model.log_prob(seen[None])[0], joint.sum().log())


def test_the_belief_is_the_share_of_hidden_paths_that_end_there() -> None:
    model = dishonest_dice()
    seen = torch.tensor([0, 2, 2, 1])
    joint = joint_with_every_hidden_path(model, seen)
    ends = torch.cartesian_prod(*[torch.arange(2)] * 4)[:, -1]
    expected = torch.stack([joint[ends == state].sum() for state in range(2)]) / joint.sum()
    torch.testing.assert_close(model.filter_states(seen[None])[0][0, -1], expected)


def test_predictions_are_ratios_of_probabilities() -> None:
    model = dishonest_dice()
    seen = torch.tensor([[1, 0, 2]])
    longer = torch.cat([seen.expand(3, -1), torch.arange(3)[:, None]], 1)
    torch.testing.assert_close(model.predict(seen)[0], (model.log_prob(longer) - model.log_prob(seen)).exp())


def test_all_that_can_be_seen_has_probability_one() -> None:
    every = torch.cartesian_prod(*[torch.arange(3)] * 4)
    torch.testing.assert_close(float(dishonest_dice().log_prob(every).exp().sum()), 1.0)


def test_long_paths_do_not_underflow() -> None:
    model = dishonest_dice()
    _, seen = model.sample(2, steps=5_000, generator=torch.Generator().manual_seed(0))
    assert bool(model.log_prob(seen).isfinite().all())
    assert float(model.log_prob(seen).max()) < -3_000


def test_samples_show_what_their_states_emit() -> None:
    hidden, seen = dishonest_dice().sample(3_000, steps=20, generator=torch.Generator().manual_seed(0))
    frequencies = torch.bincount(seen[hidden == 1], minlength=3) / (hidden == 1).sum()
    torch.testing.assert_close(frequencies, torch.tensor([0.1, 0.1, 0.8]), atol=0.01, rtol=0)


def test_the_example_lumps_the_states_as_printed() -> None:
    hidden, seen = lumped_chain(torch.full((5,), 0.2)).sample(200, steps=30)
    assert [LUMPING[state] for state in (hidden + 1).flatten().tolist()] == (seen + 1).flatten().tolist()
    moves = set(zip((hidden[:, :-1] + 1).flatten().tolist(), (hidden[:, 1:] + 1).flatten().tolist(), strict=True))
    assert moves == {(state, following) for state, row in LUMPED_CHAIN.items() for following in row}


def test_what_cannot_happen_is_said() -> None:
    model = lumped_chain(torch.tensor([1.0, 0.0, 0.0, 0.0, 0.0]))
    assert float(model.log_prob(torch.tensor([[1]]))[0]) == -torch.inf  # state 1 looks like 1, never like 2
    with pytest.raises(ValueError, match="must have positive probability"):
        model.predict(torch.tensor([[1]]))
    with pytest.raises(ValueError, match=r"need one or more symbols from 0 to 1; got \[\[2\]\]"):
        model.log_prob(torch.tensor([[2]]))
    with pytest.raises(ValueError, match="emission must have one row per state; got 2 rows, 5 states"):
        HiddenMarkovModel(model.chain, torch.eye(2))
