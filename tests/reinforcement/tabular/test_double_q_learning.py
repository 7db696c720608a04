"""Two tables learn the same truth, and are not too high on average."""

from functools import partial

import torch

from parnassus.reinforcement.tabular.control import q_learning_value, td_control
from parnassus.reinforcement.tabular.double_q_learning import double_q_learning
from parnassus.reinforcement.tabular.epsilon_greedy_learners import TabularLearners
from parnassus.reinforcement.tabular.grid_world import GridWorld
from parnassus.reinforcement.tabular.markov_decision_process import MarkovDecisionProcess
from parnassus.reinforcement.tabular.planning import policy_iteration
from parnassus.reinforcement.tabular.step_sizes import constant_step_size, polynomial_step_size


def test_a_corridor_without_chance_is_learned_exactly() -> None:
    world = GridWorld("S.G", step_reward=-1.0, slip=0.0, rewards={"G": 0.0})
    source = torch.Generator().manual_seed(0)
    walks = TabularLearners(
        world.process,
        world.start,
        steps=800,
        epsilon=1.0,
        step_size=constant_step_size(0.5),
        num_learners=4,
        generator=source,
    )
    learned = double_q_learning(walks)
    best = policy_iteration(world.process).q
    torch.testing.assert_close(learned.q, best.expand(4, -1, -1), atol=1e-4, rtol=0)


def test_the_largest_of_noisy_zeros() -> None:
    """From the first state one comes to eight alike, each +1 or −1: worth 0, and one table says more."""
    transition = torch.zeros(4, 8, 4, dtype=torch.float64)
    transition[0, :, 1] = transition[2, :, 2] = transition[3, :, 3] = 1
    transition[1, :, 2] = transition[1, :, 3] = 0.5
    reward = torch.zeros(4, 8, 4, dtype=torch.float64)
    reward[1, :, 2], reward[1, :, 3] = 1.0, -1.0
    terminal = torch.tensor([False, False, True, True])
    process = MarkovDecisionProcess(transition, reward, 1.0, terminal, torch.ones(4, 8, dtype=torch.bool))
    start = torch.tensor([1.0, 0, 0, 0]).double()
    source = torch.Generator().manual_seed(0)
    walks = partial(
        TabularLearners, process, start, steps=200, epsilon=1.0, step_size=polynomial_step_size(), num_learners=400
    )
    single = td_control(walks(generator=source), q_learning_value).q
    double = double_q_learning(walks(generator=source)).q
    assert float(single[:, 0].mean()) > 0.2
    assert abs(float(double[:, 0].mean())) < 0.05
