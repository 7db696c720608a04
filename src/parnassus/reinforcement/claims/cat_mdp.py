"""Claims about the book's cat: Markov chain, values and optimal actions (book secs. 18.1, 18.2)."""

from dataclasses import replace

import torch

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.probability import float64_tensor, seeded_generator, standard_normal
from parnassus.reinforcement.tabular.control import q_learning_value, td_control
from parnassus.reinforcement.tabular.epsilon_greedy_learners import TabularLearners
from parnassus.reinforcement.tabular.grid_world import CORNER, GridWorld
from parnassus.reinforcement.tabular.markov_reward_process import solve_bellman
from parnassus.reinforcement.tabular.prediction import monte_carlo_values, td_lambda
from parnassus.reinforcement.tabular.rollout import rollout
from parnassus.reinforcement.tabular.step_sizes import constant_step_size, polynomial_step_size
from parnassus.reinforcement.tabular.value_and_policy_iteration import (
    backward_induction,
    modified_policy_iteration,
    optimal_backup,
    policy_iteration,
    value_iterates,
    value_iteration,
)
from parnassus.reinforcement.textbook.cat import (
    ACTIONS,
    EXAMPLE_EPISODE,
    REWARDS,
    STATES,
    TRANSITION_PROBABILITIES,
    UNIFORM_START,
    cat_chain,
    cat_decision_process,
    cat_reward_process,
    constant_policy,
    state_indices,
)

PRINTED = torch.tensor([-24.4, -10.2, 6.1, 2.1, 0.7, 0.0], dtype=torch.float64)
"""The values in the book, at γ = 0.9."""
RELAXED, TALK, STROKE = STATES.index("relaxed"), ACTIONS.index("talk"), ACTIONS.index("stroke")


@claim("B18.1-1")
def visit_frequencies_match_the_occupancy() -> Evidence:
    """In the agent-environment loop r_t and s_{t+1} follow a_t; visits match the occupancy (book fig. 18.1)."""
    process, policy = cat_decision_process(1.0), cat_decision_process().uniform_policy()
    steps = rollout(process, policy, UNIFORM_START, steps=400, n_envs=500, generator=seeded_generator())
    episodes = float(steps.terminated.sum())
    visits = torch.bincount(steps.states.flatten(), minlength=len(STATES)) / episodes
    expected = process.occupancy(policy, UNIFORM_START)
    matches = steps.next_states[:-1][~steps.terminated[:-1]] == steps.states[1:][~steps.terminated[:-1]]
    return all_of(
        visits_per_episode=close(visits, expected, rtol=0.05),
        length_of_an_episode=close(steps.terminated.numel() / episodes, expected.sum(), rtol=0.03),
        rewards_are_those_of_the_states=close(steps.rewards, cat_reward_process().reward[steps.states]),
        next_states_follow=close(matches.double().mean(), 1.0),
    )


@claim("B18.1-1")
def independent_learners_have_the_expected_return() -> Evidence:
    """With ε = 1 the episodes of tabular learners have the expected return of the uniform policy (book fig. 18.1)."""
    process = cat_decision_process(1.0)
    learners = TabularLearners(
        process,
        UNIFORM_START,
        steps=2_000,
        epsilon=1.0,
        step_size=constant_step_size(0.1),
        num_learners=500,
        generator=seeded_generator(),
    )
    returns = td_control(learners, q_learning_value).episode_returns(30)
    expected = process.state_values(process.uniform_policy()) @ UNIFORM_START
    return all_of(
        completed=close(returns.isnan().double().mean(), 0.0),
        mean=close(returns.mean(), expected, atol=0.8),
    )


@claim("B18.2-1")
def sleep_is_reached_geometrically() -> Evidence:
    """Sleep is the only terminal state, and P[awake after n steps] decays as 0.917ⁿ (book fig. 18.2)."""
    chain, numbers = cat_chain(), state_indices(*STATES)
    arrows = torch.zeros(6, 6, dtype=torch.float64)
    for (before, after), probability in TRANSITION_PROBABILITIES.items():
        arrows[state_indices(before), state_indices(after)] = probability
    awake = chain.marginals(400)[:, :-1].sum(1)
    radius = torch.linalg.eigvals(chain.transition[:-1, :-1]).abs().max()
    return all_of(
        rows=close(chain.transition.sum(1), 1.0, atol=1e-15),
        arrows_of_the_figure=close(chain.transition[numbers], arrows),
        ends=close(cat_reward_process().terminal.double(), float64_tensor(0, 0, 0, 0, 0, 1)),
        radius=close(radius, 0.917, atol=5e-4),
        decay_rate=close(awake[400] / awake[399], radius, rtol=1e-9),
        awake_in_the_limit=less_equal(awake[400], 1e-12),
    )


@claim("B18.2-2")
def the_example_day_has_the_printed_return() -> Evidence:
    """The return of hungry, hunting, hungry, affectionate, sleeping is −4, and −4.475 at γ = 0.9 (book fig. 18.3)."""
    day = state_indices(*EXAMPLE_EPISODE)
    rewards = torch.tensor([REWARDS[state] for state in EXAMPLE_EPISODE], dtype=torch.float64)
    return all_of(
        rewards=close(rewards, float64_tensor(-2, -5, -2, 5, 0)),
        plain=close(cat_reward_process(1.0).path_return(day), -4.0, atol=1e-12),
        discounted=close(cat_reward_process(0.9).path_return(day), -4.475, atol=1e-12),
        probability=close(cat_chain().log_prob(day[None]).exp(), 0.5 * 0.2 * 0.5 * 0.2, rtol=1e-12),
    )


@claim("B18.2-3")
def bellmans_equations_give_the_printed_values() -> Evidence:
    """The values are −24.435, −10.232, 6.141, 2.124, 0.687 at γ = 0.9, and finite at γ = 1 (book eqs. 18.1-18.5)."""
    process = cat_reward_process(0.9)
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
        three_digits=close(values, float64_tensor(-24.435, -10.232, 6.141, 2.124, 0.687, 0), atol=6e-4),
        the_five_equations=close(values[:5], equations, atol=1e-12),
        without_discount=close(
            cat_reward_process(1.0).values(), float64_tensor(-49.05, -24.05, 4.95, 1.47, -2.63, 0), atol=6e-3
        ),
    )


@erratum("B18.2-3", printed="the reward depends on the new state", right="the reward depends on the current state")
def rewards_belong_to_the_current_state() -> Correction:
    """The equations count the reward of the state that is left; on arrival the values differ (book eqs. 18.1-18.5)."""
    process = cat_reward_process(0.9)
    on_arrival = solve_bellman(process.transition, process.transition @ process.reward, 0.9, process.terminal)
    return Correction(
        printed=close(on_arrival, PRINTED, atol=0.05), corrected=close(process.values(), PRINTED, atol=0.05)
    )


@claim("B18.2-4")
def talking_is_optimal_with_rewards_on_arrival() -> Evidence:
    """With the reward of the new state the values of talking are −21.07, −8.33, 2.56, 2.08, 1.19 (book sec. 18.2)."""
    rewards = cat_reward_process().reward.expand(len(STATES), len(ACTIONS), -1)
    process = replace(cat_decision_process(0.9), reward=rewards)
    plan = policy_iteration(process)
    return all_of(
        values=close(
            process.state_values(constant_policy("talk")), float64_tensor(-21.07, -8.33, 2.56, 2.08, 1.19, 0), atol=6e-3
        ),
        optimal_values=close(plan.values, process.state_values(constant_policy("talk")), atol=1e-12),
        gain_of_talking=greater_equal(plan.q[RELAXED, TALK] - plan.q[RELAXED, STROKE], 1.0),
    )


@claim("B18.2-3")
def four_methods_agree_on_the_values() -> Evidence:
    """Linear solve, iteration, Monte Carlo and TD(0) give the same values (book eqs. 18.1-18.5)."""
    process = cat_reward_process(0.9)
    exact = process.values()
    sampled, error = monte_carlo_values(process, 4_000, steps=120, generator=seeded_generator())
    learned = td_lambda(
        process,
        UNIFORM_START,
        steps=1_500,
        step_size=polynomial_step_size(0.7),
        num_learners=400,
        generator=seeded_generator(),
    )
    is_awake = exact != 0
    return all_of(
        iterated=close(process.iterates(400)[-1], exact, atol=1e-12),
        sampled=less_equal((sampled - exact)[is_awake].abs() / error[is_awake], 4.0),
        temporal_differences=close(learned.mean(0), exact, atol=0.5),
    )


@claim("B18.2-3")
def bellman_backups_are_contractions() -> Evidence:
    """‖T v − T w‖ ≤ γ ‖v − w‖ in the maximum norm, for evaluation and optimality (book sec. 18.2)."""
    v, w = standard_normal(2, 500, len(STATES))
    v[:, -1] = w[:, -1] = 0  # terminal
    before = (v - w).abs().amax(1)
    ratios = [
        (cat_reward_process(gamma).backup(v) - cat_reward_process(gamma).backup(w)).abs().amax(1) / before
        for gamma in (0.5, 0.9)
    ]
    optimality = (
        optimal_backup(cat_decision_process(0.9), v) - optimal_backup(cat_decision_process(0.9), w)
    ).abs().amax(1) / before
    errors = (cat_reward_process(0.9).iterates(60) - cat_reward_process(0.9).values()).abs().amax(1)
    return all_of(
        at_half=less_equal(ratios[0], 0.5 + 1e-12),
        at_nine_tenths=less_equal(ratios[1], 0.9 + 1e-12),
        optimality_operator=less_equal(optimality, 0.9 + 1e-12),
        error_after_sweeps=less_equal(errors, errors[0] * 0.9 ** torch.arange(61, dtype=torch.float64) + 1e-12),
    )


@claim("B18.2-4")
def talking_is_optimal_at_discount_nine_tenths() -> Evidence:
    """Q(relaxed, talk) = 3.867 > Q(relaxed, stroke) = 2; three planning methods agree (book sec. 18.2)."""
    process = cat_decision_process(0.9)
    talk, stroke = process.state_values(torch.stack([constant_policy("talk"), constant_policy("stroke")]))
    plans = [value_iteration(process), policy_iteration(process), modified_policy_iteration(process, 5)]
    return all_of(
        always_talk=close(talk, float64_tensor(-23.963, -9.498, 7.301, 3.867, 2.075, 0), atol=6e-4),
        always_stroke=close(stroke, float64_tensor(-24.469, -10.284, 6.059, 2.0, 0.589, 0), atol=6e-4),
        q_of_talking=close(plans[1].q[RELAXED, TALK], 3.867, atol=5e-4),
        q_of_stroking=close(plans[1].q[RELAXED, STROKE], 2.0, atol=1e-12),
        value_iteration=close(plans[0].values, talk, atol=1e-8),
        policy_iteration=close(plans[1].values, talk, atol=1e-12),
        modified_policy_iteration=close(plans[2].values, talk, atol=1e-8),
        policies_tried=less_equal(float(plans[1].sweeps), 3.0),
    )


@claim("B18.2-4")
def planning_finds_the_known_utilities_of_a_grid() -> Evidence:
    """On the 4 × 3 world optimal play has the utilities 0.705, …, 0.918 (Russell and Norvig 2020, fig. 16.3)."""
    world = GridWorld(CORNER, step_reward=-0.04, slip_probability=0.2, gamma=1.0)
    known = float64_tensor(0.812, 0.868, 0.918, 0, 0.762, 0.660, 0, 0.705, 0.655, 0.611, 0.388)
    plan = policy_iteration(world.process)
    return all_of(
        utilities=close(plan.values, known, atol=6e-4),
        walls=close(world.on_grid(plan.values)[1, 1].isnan().double(), 1.0),
        policy=close(float(world.arrows(plan.q.argmax(1)) == "→→→G\n↑#↑X\n↑←←←"), 1.0),
    )


@claim("B18.2-4")
def stroking_is_optimal_for_large_discounts() -> Evidence:
    """For γ ≥ 0.9384 stroking is optimal, as a confused cat may become hungry (book sec. 18.2)."""
    discounts = torch.linspace(0.5, 1.0, 51, dtype=torch.float64)
    ahead = torch.stack([policy_iteration(cat_decision_process(float(gamma))).q[RELAXED] for gamma in discounts])
    gain = ahead[:, TALK] - ahead[:, STROKE]
    changes = (gain[:-1].sign() != gain[1:].sign()).sum()
    return all_of(
        talking_below=greater_equal(gain[discounts <= 0.93], 0.1),
        stroking_above=less_equal(gain[discounts >= 0.94], -0.01),
        equal_at_the_border=close(
            policy_iteration(cat_decision_process(0.938326)).q[RELAXED].diff()[-1], 0.0, atol=1e-4
        ),
        stroking_without_discount=close(gain[-1], -2.1277, atol=5e-5),
        sign_changes=close(float(changes), 1.0),
    )


@claim("B18.2-4")
def value_iteration_meets_its_tolerance() -> Evidence:
    """Values are within their bound, and the greedy policy is within the tolerance of the optimum."""
    process = cat_decision_process(0.9)
    optimal = policy_iteration(process).values
    value_errors, policy_errors = [], []
    for tolerance in (1.0, 1e-2, 1e-4):
        plan = value_iteration(process, tolerance=tolerance)
        value_errors.append(float((plan.values - optimal).abs().max()) / plan.bound)
        policy_errors.append(float((process.state_values(plan.policy) - optimal).abs().max()) / tolerance)
    horizon_values, _ = backward_induction(process, 3)
    by_hand = float64_tensor(-5 - 0.9 * 5 * 0.8 - 0.9 * 2 * 0.2, -2 - 0.9 * 2.5 + 0.9 * 2.5)
    return all_of(
        values_within_their_bound=less_equal(float64_tensor(*value_errors), 1.0),
        policy_within_the_tolerance=less_equal(float64_tensor(*policy_errors), 1.0),
        two_steps_to_go=close(horizon_values[2, :2], by_hand, atol=1e-12),
        horizon_is_iteration=close(horizon_values, value_iterates(process, 3)),
    )
