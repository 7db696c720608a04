"""Claims about ε-greedy exploration, of tables and of agents with networks (book sec. 18.3)."""

import torch
from scipy.stats import chisquare
from torch import Tensor

from parnassus.atlas import Evidence, accepts, all_of, claim, close, greater_equal
from parnassus.probability import seeded_generator, standard_normal
from parnassus.reinforcement.agents.dqn import epsilon_greedy, epsilon_greedy_actor
from parnassus.reinforcement.claims.random_processes import random_process
from parnassus.reinforcement.tabular.categorical_sampling import sample_categorical
from parnassus.reinforcement.tabular.exploration import add_exploration, epsilon_greedy_policy
from parnassus.reinforcement.tabular.grid_world import CLIFF, GridWorld
from parnassus.reinforcement.tabular.value_and_policy_iteration import policy_iteration


@claim("B18.3-1")
def epsilon_greedy_probabilities() -> Evidence:
    """Greedy actions have probability 1 − ε + ε/|A|, others ε/|A|; ties have equal probability, forbidden actions 0."""
    q = torch.tensor([[1.0, 3.0, 2.0, 0.0], [2.0, 2.0, 1.0, 0.0]], dtype=torch.float64)
    policy = epsilon_greedy_policy(q, 0.2)
    allowed = torch.tensor([[True, False, True, True], [True, True, False, False]])
    fewer = epsilon_greedy_policy(q, 0.2, allowed)
    drawn = (
        torch.bincount(sample_categorical(policy[:1].expand(100_000, -1), seeded_generator()), minlength=4) / 100_000
    )
    return all_of(
        greedy_and_others=close(policy[0], torch.tensor([0.05, 0.85, 0.05, 0.05]).double(), atol=1e-7),
        ties=close(policy[1], torch.tensor([0.45, 0.45, 0.05, 0.05]).double(), atol=1e-7),
        only_allowed=close(fewer[0], torch.tensor([0.2 / 3, 0, 0.8 + 0.2 / 3, 0.2 / 3]).double(), atol=1e-7),
        sampled_frequencies=close(drawn, policy[0], atol=0.005),
        without_exploration=close(epsilon_greedy_policy(q[:1], 0.0)[0].double(), torch.tensor([0.0, 1, 0, 0]).double()),
    )


@claim("B18.3-1")
def exploration_by_the_agent_or_by_the_process_is_the_same() -> Evidence:
    """A process that replaces actions at random has the values of (1 − ε)π + ε/|A| in the original (book sec. 18.3)."""
    process, epsilon = random_process(4, 3, seed=2), 0.3
    policy = standard_normal(4, 3, seed=3).softmax(-1)
    mixed = (1 - epsilon) * policy + epsilon * process.uniform_policy()
    exploring = add_exploration(process, epsilon)
    return all_of(
        values=close(exploring.state_values(policy), process.state_values(mixed), atol=1e-12),
        transition=close(exploring.transition.sum(-1), 1.0, atol=1e-14),
        effect=greater_equal((exploring.state_values(policy) - process.state_values(policy)).abs().max(), 0.05),
    )


@claim("B18.3-1")
def sampled_epsilon_greedy_actions_have_the_stated_frequencies() -> Evidence:
    """Of two greedy and four random actions; with one ε per step in the actor of DQN (book sec. 18.3)."""
    torch.manual_seed(0)
    q = torch.tensor([0.0, 3.0, 1.0, 2.0, -1.0])
    single = torch.bincount(epsilon_greedy(q.expand(50_000, 5), 0.3), minlength=5)
    epsilons = torch.tensor([0.0, 0.7, 1.0])[:, None, None].expand(3, 2, 25_000)
    evaluated: list[int] = []

    def table(x: Tensor) -> Tensor:
        evaluated.append(len(evaluated))
        return q.expand(*x.shape[:2], 5)

    act = epsilon_greedy_actor(table, 5, epsilons)
    steps = [torch.bincount(act(torch.zeros(2, 25_000, 1)).flatten(), minlength=5) for _ in epsilons]
    return all_of(
        epsilon_0_3=accepts(_fit_of_frequencies(single, 0.3)),
        epsilon_0_7=accepts(_fit_of_frequencies(steps[1], 0.7)),
        without_exploration=close(steps[0], 50_000.0 * (q == 3)),
        exploration_only=accepts(_fit_of_frequencies(steps[2], 1.0)),
        evaluations=close(float(len(evaluated)), 2.0),  # not where all explore
    )


def _fit_of_frequencies(counts: Tensor, epsilon: float) -> float:
    """The p-value of ε-greedy frequencies of five actions, the second of which is greedy."""
    expected = torch.full((5,), epsilon / 5, dtype=torch.float64)
    expected[1] += 1 - epsilon
    return float(chisquare(counts.numpy(), (counts.sum() * expected).numpy()).pvalue)


@claim("B18.3-2")
def the_best_path_at_the_cliff_depends_on_exploration() -> Evidence:
    """With ε = 0.1 the safe path (SARSA) has return −20.7, the path along the edge (Q-learning) −45.8."""
    world = GridWorld(CLIFF, step_reward=-1.0, slip_probability=0.0, rewards={"G": 0.0, "C": -99.0})
    exploring = add_exploration(world.process, 0.1)
    edge, safe = (policy_iteration(process).policy for process in (world.process, exploring))
    greedy_returns, exploring_returns = (
        [float(process.state_values(policy) @ world.start) for policy in (edge, safe)]
        for process in (world.process, exploring)
    )
    middle = world.state(2, 5)  # on the edge path; the safe path goes up here
    return all_of(
        edge_path=close(greedy_returns[0], -13.0, atol=1e-9),
        safe_path=close(greedy_returns[1], -15.0, atol=1e-9),
        safe_path_while_exploring=close(exploring_returns[1], -20.71, atol=5e-3),
        edge_path_while_exploring=close(exploring_returns[0], -45.80, atol=5e-3),
        edge_action=close(edge[middle], torch.tensor([0.0, 1, 0, 0]).double()),
        safe_action=close(safe[middle], torch.tensor([1.0, 0, 0, 0]).double()),
    )
