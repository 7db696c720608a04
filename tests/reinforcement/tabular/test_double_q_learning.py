"""Double Q-learning: convergence and absence of maximisation bias."""

from functools import partial

import torch

from parnassus.reinforcement.tabular.control import q_learning_value, td_control
from parnassus.reinforcement.tabular.double_q_learning import double_q_learning
from parnassus.reinforcement.tabular.epsilon_greedy_learners import TabularLearners
from parnassus.reinforcement.tabular.grid_world import GridWorld
from parnassus.reinforcement.tabular.markov_decision_process import MarkovDecisionProcess
from parnassus.reinforcement.tabular.step_sizes import constant_step_size, polynomial_step_size
from parnassus.reinforcement.tabular.value_and_policy_iteration import policy_iteration


def test_deterministic_corridor_is_learned_exactly() -> None:
    env = GridWorld("S.G", step_reward=-1.0, slip_probability=0.0, rewards={"G": 0.0})
    generator = torch.Generator().manual_seed(0)
    learners = TabularLearners(
        env.process,
        env.start,
        steps=800,
        epsilon=1.0,
        step_size=constant_step_size(0.5),
        num_learners=4,
        generator=generator,
    )
    record = double_q_learning(learners)
    optimal_q = policy_iteration(env.process).q
    torch.testing.assert_close(record.q, optimal_q.expand(4, -1, -1), atol=1e-4, rtol=0)


def test_double_q_learning_has_no_maximisation_bias() -> None:
    """Eight equal actions with rewards ±1 and value 0, which plain Q-learning overestimates."""
    transition = torch.zeros(4, 8, 4, dtype=torch.float64)
    transition[0, :, 1] = transition[2, :, 2] = transition[3, :, 3] = 1
    transition[1, :, 2] = transition[1, :, 3] = 0.5
    reward = torch.zeros(4, 8, 4, dtype=torch.float64)
    reward[1, :, 2], reward[1, :, 3] = 1.0, -1.0
    terminal = torch.tensor([False, False, True, True])
    process = MarkovDecisionProcess(transition, reward, 1.0, terminal, torch.ones(4, 8, dtype=torch.bool))
    start = torch.tensor([1.0, 0, 0, 0]).double()
    generator = torch.Generator().manual_seed(0)
    learners = partial(
        TabularLearners, process, start, steps=200, epsilon=1.0, step_size=polynomial_step_size(), num_learners=400
    )
    single = td_control(learners(generator=generator), q_learning_value).q
    double = double_q_learning(learners(generator=generator)).q
    assert float(single[:, 0].mean()) > 0.2
    assert abs(float(double[:, 0].mean())) < 0.05
