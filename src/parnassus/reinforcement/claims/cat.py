"""Claims about the cat: its chain, its values, and what to do when it is relaxed (book secs. 18.1, 18.2)."""

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, at_least, at_most, claim, close
from parnassus.reinforcement.cat import A_DAY, ACTIONS, MOODS, always, cat_chain, cat_decisions, cat_rewards, moods
from parnassus.reinforcement.planning import (
    finite_horizon,
    modified_policy_iteration,
    optimal_backup,
    policy_iteration,
    value_iterates,
    value_iteration,
)
from parnassus.reinforcement.prediction import sampled_values, temporal_differences
from parnassus.reinforcement.rollout import rollout
from parnassus.reinforcement.step_sizes import shrinking

PRINTED = torch.tensor([-24.4, -10.2, 6.1, 2.1, 0.7, 0.0], dtype=torch.float64)
"""The values in the book, at γ = 0.9."""
AWAKE = torch.tensor([0.2] * 5 + [0.0], dtype=torch.float64)
"""Any mood but sleep, alike."""
RELAXED, TALK, STROKE = MOODS.index("relaxed"), ACTIONS.index("talk"), ACTIONS.index("stroke")


def source(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def numbers(*values: float | int) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


@claim("B18.1-1")
def agents_see_states_as_often_as_the_occupancy_says() -> Evidence:
    """In the loop of agent and environment, r_t and s_{t+1} follow a_t; visits meet their law (book fig. 18.1)."""
    process, policy = cat_decisions(1.0), cat_decisions().uniform_policy()
    seen = rollout(process, policy, AWAKE, steps=400, envs=500, generator=source())
    episodes = float(seen.terminated.sum())
    visits = torch.bincount(seen.states.flatten(), minlength=len(MOODS)) / episodes
    expected = process.occupancy(policy, AWAKE)
    stays = seen.following[:-1][~seen.terminated[:-1]] == seen.states[1:][~seen.terminated[:-1]]
    return all_of(
        visits_an_episode=close(visits, expected, rtol=0.05),
        length_of_an_episode=close(seen.terminated.numel() / episodes, expected.sum(), rtol=0.03),
        reward_of_its_own_state=close(seen.rewards, cat_rewards().reward[seen.states]),
        next_state_is_the_next=close(stays.double().mean(), 1.0),
    )


@claim("B18.2-1")
def the_cat_falls_asleep_in_the_end() -> Evidence:
    """Rows sum to one, sleep is the one end, and P[awake after n steps] falls as 0.917ⁿ (book fig. 18.2)."""
    chain = cat_chain()
    awake = chain.laws(400)[:, :-1].sum(1)
    radius = torch.linalg.eigvals(chain.transition[:-1, :-1]).abs().max()
    return all_of(
        rows=close(chain.transition.sum(1), 1.0, atol=1e-15),
        ends=close(cat_rewards().ends.double(), numbers(0, 0, 0, 0, 0, 1)),
        radius=close(radius, 0.917, atol=5e-4),
        falls_at_that_rate=close(awake[400] / awake[399], radius, rtol=1e-9),
        asleep=at_most(awake[400], 1e-12),
    )


@claim("B18.2-2")
def a_day_of_the_cat_returns_what_is_printed() -> Evidence:
    """Hungry, hunting, hungry, affectionate, sleeping: −4, and −4.475 at γ = 0.9 (book fig. 18.3)."""
    day = moods(*A_DAY)
    return all_of(
        plain=close(cat_rewards(1.0).path_return(day), -4.0, atol=1e-12),
        discounted=close(cat_rewards(0.9).path_return(day), -4.475, atol=1e-12),
        it_can_happen=at_least(cat_chain().log_prob(day[None]).exp(), 0.5 * 0.2 * 0.5 * 0.2 - 1e-12),
    )


@claim("B18.2-3")
def bellmans_equations_give_the_printed_values() -> Evidence:
    """At γ = 0.9: −24.435, −10.232, 6.141, 2.124, 0.687; without discount finite too (book eqs. 18.1-18.5)."""
    process = cat_rewards(0.9)
    values = process.values()
    x1, x2, x3, x4, x5, _ = values
    equations = torch.stack(
        [
            -5 + 0.9 * (0.8 * x1 + 0.2 * x2),
            -2 + 0.9 * (0.5 * x1 + 0.5 * x3),
            5 + 0.9 * (0.3 * x5 + 0.5 * x4),
            2 + 0.9 * 0.2 * x5,
            1 + 0.9 * (0.2 * x2 + 0.8 * x4),
        ]
    )
    return all_of(
        as_printed=close(values, PRINTED, atol=0.05),
        three_digits=close(values, numbers(-24.435, -10.232, 6.141, 2.124, 0.687, 0), atol=6e-4),
        the_five_equations=close(values[:5], equations, atol=1e-12),
        without_discount=close(cat_rewards(1.0).values(), numbers(-49.05, -24.05, 4.95, 1.47, -2.63, 0), atol=6e-3),
    )


@claim("B18.2-3")
def four_ways_lead_to_the_same_values() -> Evidence:
    """Solving, iterating, averaging returns and temporal differences agree (book eqs. 18.1-18.5)."""
    process = cat_rewards(0.9)
    exact = process.values()
    sampled, error = sampled_values(process, 4_000, steps=120, generator=source())
    learned = temporal_differences(
        process, AWAKE, steps=1_500, step_size=shrinking(0.7), learners=400, generator=source()
    )
    settled = exact != 0
    return all_of(
        iterated=close(process.iterates(400)[-1], exact, atol=1e-12),
        sampled=at_most((sampled - exact)[settled].abs() / error[settled], 4.0),
        temporal_differences=close(learned.mean(0), exact, atol=0.5),
    )


@claim("B18.2-3")
def a_backup_contracts_by_the_discount() -> Evidence:
    """‖T v − T w‖ ≤ γ ‖v − w‖ in the largest difference, with and without a maximum (book sec. 18.2)."""
    v, w = torch.randn(2, 500, len(MOODS), generator=source(), dtype=torch.float64)
    v[:, -1] = w[:, -1] = 0  # the end is worth nothing
    before = (v - w).abs().amax(1)
    shrunk = [
        (cat_rewards(discount).backup(v) - cat_rewards(discount).backup(w)).abs().amax(1) / before
        for discount in (0.5, 0.9)
    ]
    best = (optimal_backup(cat_decisions(0.9), v) - optimal_backup(cat_decisions(0.9), w)).abs().amax(1) / before
    errors = (cat_rewards(0.9).iterates(60) - cat_rewards(0.9).values()).abs().amax(1)
    return all_of(
        at_half=at_most(shrunk[0], 0.5 + 1e-12),
        at_nine_tenths=at_most(shrunk[1], 0.9 + 1e-12),
        of_the_best=at_most(best, 0.9 + 1e-12),
        error_after_sweeps=at_most(errors, errors[0] * 0.9 ** torch.arange(61, dtype=torch.float64) + 1e-12),
    )


@claim("B18.2-4")
def talking_is_best_at_nine_tenths() -> Evidence:
    """Q(relaxed, talk) = 3.867 > Q(relaxed, stroke) = 2; three ways of planning agree (book sec. 18.2)."""
    process = cat_decisions(0.9)
    talk, stroke = process.values_of(torch.stack([always("talk"), always("stroke")]))
    plans = [value_iteration(process), policy_iteration(process), modified_policy_iteration(process, 5)]
    return all_of(
        always_talk=close(talk, numbers(-23.963, -9.498, 7.301, 3.867, 2.075, 0), atol=6e-4),
        always_stroke=close(stroke, numbers(-24.469, -10.284, 6.059, 2.0, 0.589, 0), atol=6e-4),
        q_of_talking=close(plans[1].q[RELAXED, TALK], 3.867, atol=5e-4),
        q_of_stroking=close(plans[1].q[RELAXED, STROKE], 2.0, atol=1e-12),
        by_values=close(plans[0].values, talk, atol=1e-8),
        by_policies=close(plans[1].values, talk, atol=1e-12),
        in_between=close(plans[2].values, talk, atol=1e-8),
        few_policies=at_most(float(plans[1].sweeps), 3.0),
    )


@claim("B18.2-4")
def who_looks_far_ahead_strokes() -> Evidence:
    """From γ = 0.9384 on stroking is better than talking: a confused cat may be hungry soon (book sec. 18.2)."""
    discounts = torch.linspace(0.5, 1.0, 51, dtype=torch.float64)
    ahead = torch.stack([policy_iteration(cat_decisions(float(gamma))).q[RELAXED] for gamma in discounts])
    gain = ahead[:, TALK] - ahead[:, STROKE]
    changes = (gain[:-1].sign() != gain[1:].sign()).sum()
    return all_of(
        talks_below=at_least(gain[discounts <= 0.93], 0.1),
        strokes_above=at_most(gain[discounts >= 0.94], -0.01),
        even_between=close(policy_iteration(cat_decisions(0.938326)).q[RELAXED].diff()[-1], 0.0, atol=1e-4),
        strokes_without_discount=close(gain[-1], -2.1277, atol=5e-5),
        changes_its_mind_once=close(float(changes), 1.0),
    )


@claim("B18.2-4")
def value_iteration_knows_when_to_stop() -> Evidence:
    """At any tolerance the values are within their bound and the greedy policy within the tolerance of the best."""
    process = cat_decisions(0.9)
    best = policy_iteration(process).values
    kept, within = [], []
    for tolerance in (1.0, 1e-2, 1e-4):
        plan = value_iteration(process, tolerance=tolerance)
        kept.append(float((plan.values - best).abs().max()) / plan.bound)
        within.append(float((process.values_of(plan.policy) - best).abs().max()) / tolerance)
    steps, _ = finite_horizon(process, 3)
    by_hand = numbers(-5 - 0.9 * 5 * 0.8 - 0.9 * 2 * 0.2, -2 - 0.9 * 2.5 + 0.9 * 2.5)
    return all_of(
        values_within_their_bound=at_most(numbers(*kept), 1.0),
        policy_within_the_tolerance=at_most(numbers(*within), 1.0),
        with_two_steps_to_go=close(steps[2, :2], by_hand, atol=1e-12),
        horizon_is_iteration=close(steps, value_iterates(process, 3)),
    )
