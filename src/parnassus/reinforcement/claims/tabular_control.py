"""Claims about tabular Q-learning, SARSA and their relatives (book sec. 18.3)."""

from functools import partial

import torch
from torch import Tensor

from parnassus.atlas import (
    Correction,
    Evidence,
    all_of,
    claim,
    close,
    erratum,
    greater_equal,
    less_equal,
    rate,
)
from parnassus.probability import seeded_generator, standard_normal
from parnassus.reinforcement.agents.q_learning_targets import q_targets, squared_td_loss, values_of_actions
from parnassus.reinforcement.tabular.control import expected_sarsa_value, q_learning_value, sarsa_value, td_control
from parnassus.reinforcement.tabular.double_q_learning import double_q_learning
from parnassus.reinforcement.tabular.epsilon_greedy_learners import TabularLearners
from parnassus.reinforcement.tabular.grid_world import CORNER, GridWorld
from parnassus.reinforcement.tabular.markov_decision_process import MarkovDecisionProcess
from parnassus.reinforcement.tabular.n_step_control import n_step_td_control
from parnassus.reinforcement.tabular.step_sizes import constant_step_size, polynomial_step_size
from parnassus.reinforcement.tabular.synchronous_q_learning import synchronous_q_learning
from parnassus.reinforcement.tabular.value_and_policy_iteration import policy_iteration
from parnassus.reinforcement.textbook.cat import UNIFORM_START, cat_decision_process


def rms_error(process: MarkovDecisionProcess, q: Tensor, exact: Tensor) -> Tensor:
    """Root mean square error of the tables over allowed actions in non-terminal states."""
    there = process.allowed & ~process.terminal[:, None]
    return (q - exact)[:, there].square().mean().sqrt()


@claim("B18.3-2")
def n_step_targets_find_the_same_values() -> Evidence:
    """Three-step SARSA with a uniform policy finds Q^π; one step is SARSA itself (Sutton and Barto 2018, ch. 7)."""
    world = GridWorld("...G", step_reward=-0.1, slip_probability=0.0, gamma=0.9)
    process = world.process
    exact = process.q_values(process.state_values(process.uniform_policy()))
    learners = partial(
        TabularLearners, process, world.start, epsilon=1.0, step_size=polynomial_step_size(0.6), num_learners=100
    )
    three = n_step_td_control(learners(steps=1_500, generator=seeded_generator()), sarsa_value, n_steps=3).q
    one, ordinary = (
        learn(learners(steps=50, generator=seeded_generator()), sarsa_value).q
        for learn in (partial(n_step_td_control, n_steps=1), td_control)
    )
    there = ~process.terminal
    return all_of(
        three_steps=close(three.mean(0)[there], exact[there], atol=0.03),
        one_step=close(one, ordinary, atol=1e-14),
        differences_of_the_values=greater_equal(exact[there].max() - exact[there].min(), 0.5),
    )


@claim("B18.3-2")
def q_learning_converges_to_the_optimal_values() -> Evidence:
    """With step sizes α_n = n^(−p) the error decays as n^(−p/2), on the cat and on a grid (book eq. 18.6)."""
    cat, grid = cat_decision_process(0.9), GridWorld(CORNER, gamma=0.9).process
    parts: dict[str, Evidence] = {}
    for name, process, max_error in (("cat", cat, 1.0), ("grid", grid, 0.03)):
        exact, sweeps = policy_iteration(process).q, (300, 600, 1_200)
        learn = partial(synchronous_q_learning, process, num_learners=50)
        tables = [
            learn(sweeps=count, step_size=polynomial_step_size(0.6), generator=seeded_generator()) for count in sweeps
        ]
        errors = [rms_error(process, q, exact) for q in tables]
        constant = learn(sweeps=400, step_size=constant_step_size(0.2), generator=seeded_generator())
        parts |= {
            f"{name}_decay_rate": rate(torch.tensor(sweeps), torch.stack(errors), -0.3, atol=0.1),
            f"{name}_final_error": less_equal(errors[-1], max_error),
            f"{name}_error_with_constant_steps": greater_equal(
                rms_error(process, constant, exact), 2.5 * float(errors[-1])
            ),
        }
        if process is cat:
            parts["cat_mean_over_learners"] = close(tables[-1].mean(0)[cat.allowed], exact[cat.allowed], atol=0.4)
    return all_of(**parts)


@claim("B18.3-2")
def q_learning_from_trajectories_converges() -> Evidence:
    """ε-greedy Q-learning also finds talking optimal; terminal values remain 0 (book eq. 18.6)."""
    process = cat_decision_process(0.9)
    exact = policy_iteration(process).q
    learners = partial(
        TabularLearners, process, UNIFORM_START, epsilon=0.5, step_size=polynomial_step_size(0.6), num_learners=400
    )
    tables = [
        td_control(learners(steps=steps, generator=seeded_generator()), q_learning_value).q
        for steps in (100, 400, 1_600)
    ]
    errors = torch.stack([rms_error(process, q, exact) for q in tables])
    return all_of(
        error_ratios=less_equal(errors[1:] / errors[:-1], 0.75),
        learners_that_talk=greater_equal((tables[-1][:, 3, 1] > tables[-1][:, 3, 2]).double().mean(), 0.95),
        value_of_stroking=close(tables[-1][:, 3, 2], 2.0, atol=1e-12),
        terminal_values=close(tables[-1][:, -1], 0.0),
    )


@claim("B18.3-2")
def sarsa_is_on_policy_and_q_learning_off_policy() -> Evidence:
    """With a uniform policy SARSA finds Q^π and Q-learning Q*; expected SARSA varies less than SARSA."""
    world = GridWorld("..G", step_reward=-0.1, slip_probability=0.0, gamma=0.9)
    process = world.process
    on_policy = process.q_values(process.state_values(process.uniform_policy()))
    best = policy_iteration(process).q
    learners = partial(
        TabularLearners,
        process,
        world.start,
        epsilon=1.0,
        steps=800,
        step_size=polynomial_step_size(0.6),
        num_learners=100,
    )
    sarsa, expected, greedy = (
        td_control(learners(generator=seeded_generator()), worth).q
        for worth in (sarsa_value, expected_sarsa_value, q_learning_value)
    )
    there = ~process.terminal
    return all_of(
        sarsa=close(sarsa.mean(0)[there], on_policy[there], atol=0.03),
        expected_sarsa=close(expected.mean(0)[there], on_policy[there], atol=0.03),
        q_learning=close(greedy.mean(0)[there], best[there], atol=0.03),
        difference_of_the_values=greater_equal((best - on_policy)[0].min(), 0.5),
        variance_ratio=less_equal(expected.var(0)[there].mean() / sarsa.var(0)[there].mean(), 0.8),
    )


def overestimation_process(actions: int) -> tuple[MarkovDecisionProcess, Tensor]:
    """A process with two choices: terminate with reward 0, or take actions with reward +0.9 or −1.1, mean −0.1."""
    here, there, good, bad = range(4)
    transition = torch.zeros(4, actions, 4, dtype=torch.float64)
    transition[:, :, bad] = 1
    transition[here, 0], transition[here, 1] = torch.eye(4).double()[[bad, there]]
    transition[there, :, good] = transition[there, :, bad] = 0.5
    reward = torch.zeros(4, actions, 4, dtype=torch.float64)
    reward[there, :, good], reward[there, :, bad] = 0.9, -1.1
    allowed = torch.ones(4, actions, dtype=torch.bool)
    allowed[here, 2:] = False
    terminal = torch.tensor([False, False, True, True])
    return MarkovDecisionProcess(transition, reward, 1.0, terminal, allowed), torch.eye(4).double()[here]


@claim("B18.3-2")
def double_q_learning_reduces_overestimation() -> Evidence:
    """Q-learning overestimates the maximum over ten actions of mean −0.1 more than double Q-learning."""
    process, start = overestimation_process(10)
    learners = partial(
        TabularLearners, process, start, steps=400, epsilon=0.1, step_size=constant_step_size(0.1), num_learners=400
    )
    single = td_control(learners(generator=seeded_generator()), q_learning_value)
    double = double_q_learning(learners(generator=seeded_generator()))
    frequencies = [float((each.rewards != 0).sum() / each.ended.sum()) for each in (single, double)]
    return all_of(
        true_value=close(policy_iteration(process).q[0, 1], -0.1, atol=1e-12),
        q_learning=greater_equal(frequencies[0], 0.3),
        double_q_learning=less_equal(frequencies[1], frequencies[0] - 0.1),
        difference_of_the_estimates=greater_equal(single.q[:, 0, 1].mean() - double.q[:, 0, 1].mean(), 0.02),
    )


def batch(seed: int = 0) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """64 random transitions: states, actions, rewards, next states and ends."""
    chance = seeded_generator(seed)
    states, following = torch.randint(5, (2, 64), generator=chance)
    actions = torch.randint(3, (64,), generator=chance)
    rewards = torch.randn(64, generator=chance, dtype=torch.float64)
    return states, actions, rewards, following, torch.rand(64, generator=chance) < 0.2


def network(seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)).double()


@erratum("B18.3-3", printed="∇L = E[(target − Q) ∇Q]", right="∇L = −E[(target − Q) ∇Q]")
def the_gradient_of_the_loss_has_a_minus() -> Correction:
    """With the printed sign gradient descent increases the loss (book eq. 18.8)."""
    states, actions, rewards, following, terminated = batch()
    one_hot, online, held = torch.eye(5).double(), network(0), network(1)
    q = values_of_actions(online(one_hot[states]), actions)
    target = q_targets(rewards, held(one_hot[following]), terminated, gamma=0.9)
    parameters = list(online.parameters())
    gradient = torch.autograd.grad(squared_td_loss(q, target), parameters, retain_graph=True)
    weighted = torch.autograd.grad(((target - q).detach() * q).mean(), parameters)
    ours, printed = (torch.cat([part.flatten() for part in parts]) for parts in (gradient, weighted))
    return Correction(printed=close(printed, ours, rtol=1e-9, atol=1e-12), corrected=close(-printed, ours, atol=1e-12))


@claim("B18.3-3")
def one_hot_features_recover_tabular_q_learning() -> Evidence:
    """With one-hot features a gradient step on one transition is the tabular update (book eq. 18.6)."""
    states, actions, rewards, following, terminated = batch()
    table = standard_normal(5, 3, seed=1).requires_grad_()
    gaps = []
    for s, a, r, t, end in zip(states, actions, rewards, following, terminated, strict=True):
        target = q_targets(r[None], table[t][None], end[None], gamma=0.9)
        (gradient,) = torch.autograd.grad(squared_td_loss(values_of_actions(table[s][None], a[None]), target), table)
        stepped = table.detach() - 0.3 * gradient
        ruled = table.detach().clone()
        ahead = 0.0 if end else 0.9 * ruled[t].max()
        ruled[s, a] += 0.3 * (r + ahead - ruled[s, a])
        gaps.append((stepped - ruled).abs().max())
    return close(torch.stack(gaps), 0.0, atol=1e-15)


@erratum("B18.3-3", printed="target r + γ max Q(s′, a′) at every step", right="target r where the episode ends")
def the_target_at_terminal_states_is_the_reward() -> Correction:
    """Bootstrapping from a terminal state, whose entry is never updated, changes Q-learning's fixed point."""
    process = cat_decision_process(0.9)
    exact = policy_iteration(process).q
    stroke = exact[3, 2]
    after = torch.full((1, 3), 1.0, dtype=torch.float64)  # a random initialisation, never updated
    reward = torch.tensor([2.0], dtype=torch.float64)
    not_terminal, terminal = torch.tensor([False]), torch.tensor([True])
    return Correction(
        printed=close(q_targets(reward, after, not_terminal, gamma=0.9)[0], stroke, atol=1e-6),
        corrected=close(q_targets(reward, after, terminal, gamma=0.9)[0], stroke, atol=1e-12),
    )
