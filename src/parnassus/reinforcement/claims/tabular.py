"""Claims about learning action values in a table (book sec. 18.3)."""

from functools import partial

import torch
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum, rate
from parnassus.reinforcement.cat import cat_decisions
from parnassus.reinforcement.decision import MarkovDecisionProcess
from parnassus.reinforcement.double_q import double_q_learning
from parnassus.reinforcement.draws import draw
from parnassus.reinforcement.exploration import epsilon_greedy, trembling
from parnassus.reinforcement.grid_world import CLIFF, CORNER, GridWorld
from parnassus.reinforcement.planning import policy_iteration
from parnassus.reinforcement.step_sizes import constant, shrinking
from parnassus.reinforcement.sweeps import sweeping_q_learning
from parnassus.reinforcement.tabular import best_next, drawn_next, expected_next, learn
from parnassus.reinforcement.targets import half_squared_error, q_targets, taken
from parnassus.reinforcement.walks import Walks

AWAKE = torch.tensor([0.2] * 5 + [0.0], dtype=torch.float64)


def source(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def misses(process: MarkovDecisionProcess, q: Tensor, exact: Tensor) -> Tensor:
    """Root mean square error of the tables over what can be done where something can be done."""
    there = process.allowed & ~process.terminal[:, None]
    return (q - exact)[:, there].square().mean().sqrt()


@claim("B18.3-1")
def any_action_has_its_share_of_epsilon() -> Evidence:
    """The best action has 1 − ε + ε/|A|, each other ε/|A|; equals share, and what is not allowed has 0."""
    q = torch.tensor([[1.0, 3.0, 2.0, 0.0], [2.0, 2.0, 1.0, 0.0]], dtype=torch.float64)
    law = epsilon_greedy(q, 0.2)
    allowed = torch.tensor([[True, False, True, True], [True, True, False, False]])
    fewer = epsilon_greedy(q, 0.2, allowed)
    drawn = torch.bincount(draw(law[:1].expand(100_000, -1), source()), minlength=4) / 100_000
    return all_of(
        best_and_others=close(law[0], torch.tensor([0.05, 0.85, 0.05, 0.05]).double(), atol=1e-7),
        equals_share=close(law[1], torch.tensor([0.45, 0.45, 0.05, 0.05]).double(), atol=1e-7),
        only_allowed=close(fewer[0], torch.tensor([0.2 / 3, 0, 0.8 + 0.2 / 3, 0.2 / 3]).double(), atol=1e-7),
        drawn_as_often=close(drawn, law[0], atol=0.005),
        never_explores=close(epsilon_greedy(q[:1], 0.0)[0].double(), torch.tensor([0.0, 1, 0, 0]).double()),
    )


@claim("B18.3-2")
def q_learning_settles_on_the_best_values() -> Evidence:
    """With steps α_n = n^(−p) the error falls as n^(−p/2), on the cat and on a grid (book eq. 18.6)."""
    cat, grid = cat_decisions(0.9), GridWorld(CORNER, discount=0.9).process
    parts: dict[str, Evidence] = {}
    for name, process, enough in (("cat", cat, 1.0), ("grid", grid, 0.03)):
        exact, sweeps = policy_iteration(process).q, (300, 600, 1_200)
        ask = partial(sweeping_q_learning, process, learners=50)
        tables = [ask(sweeps=count, step_size=shrinking(0.6), generator=source()) for count in sweeps]
        errors = [misses(process, q, exact) for q in tables]
        restless = ask(sweeps=400, step_size=constant(0.2), generator=source())
        parts |= {
            f"{name}_falls": rate(torch.tensor(sweeps), torch.stack(errors), -0.3, atol=0.1),
            f"{name}_is_near": at_most(errors[-1], enough),
            f"{name}_not_with_constant_steps": at_least(misses(process, restless, exact), 2.5 * float(errors[-1])),
        }
        if process is cat:
            parts["in_the_mean"] = close(tables[-1].mean(0)[cat.allowed], exact[cat.allowed], atol=0.4)
    return all_of(**parts)


@claim("B18.3-2")
def a_walk_learns_the_same_values() -> Evidence:
    """ε-greedy walks, which see rare states rarely, come to prefer talking too; the end stays 0 (book eq. 18.6)."""
    process = cat_decisions(0.9)
    exact = policy_iteration(process).q
    walks = partial(Walks, process, AWAKE, epsilon=0.5, step_size=shrinking(0.6), learners=400)
    tables = [learn(walks(steps=steps, generator=source()), best_next).q for steps in (100, 400, 1_600)]
    errors = torch.stack([misses(process, q, exact) for q in tables])
    return all_of(
        falls=at_most(errors[1:] / errors[:-1], 0.75),
        talks=at_least((tables[-1][:, 3, 1] > tables[-1][:, 3, 2]).double().mean(), 0.95),
        stroking_pays_two=close(tables[-1][:, 3, 2], 2.0, atol=1e-12),
        the_end_is_worth_nothing=close(tables[-1][:, -1], 0.0),
    )


@claim("B18.3-2")
def sarsa_learns_the_policy_that_acts() -> Evidence:
    """Choosing at random, SARSA finds Q^π and Q-learning Q*; expected SARSA is SARSA with less noise."""
    world = GridWorld("..G", living=-0.1, slip=0.0, discount=0.9)
    process = world.process
    followed = process.q_values(process.values_of(process.uniform_policy()))
    best = policy_iteration(process).q
    walks = partial(Walks, process, world.start, epsilon=1.0, steps=800, step_size=shrinking(0.6), learners=100)
    sarsa, expected, greedy = (
        learn(walks(generator=source()), worth).q for worth in (drawn_next, expected_next, best_next)
    )
    there = ~process.terminal
    return all_of(
        sarsa=close(sarsa.mean(0)[there], followed[there], atol=0.03),
        expected_sarsa=close(expected.mean(0)[there], followed[there], atol=0.03),
        q_learning=close(greedy.mean(0)[there], best[there], atol=0.03),
        they_differ=at_least((best - followed)[0].min(), 0.5),
        expectation_is_quieter=at_most(expected.var(0)[there].mean() / sarsa.var(0)[there].mean(), 0.8),
    )


@claim("B18.3-2")
def on_the_cliff_the_best_way_depends_on_exploring() -> Evidence:
    """Who explores with ε = 0.1 pays 20.7 for SARSA's way, a row higher, and 45.8 for Q-learning's along the edge."""
    world = GridWorld(CLIFF, living=-1.0, slip=0.0, pays={"G": 0.0, "C": -99.0})
    exploring = trembling(world.process, 0.1)
    edge, careful = (policy_iteration(process).policy for process in (world.process, exploring))
    calm, shaking = (
        [float(process.values_of(policy) @ world.start) for policy in (edge, careful)]
        for process in (world.process, exploring)
    )
    middle = world.state(2, 5)  # where one walks along the edge and the other climbs
    return all_of(
        along_the_edge=close(calm[0], -13.0, atol=1e-9),
        the_careful_way_is_longer=close(calm[1], -15.0, atol=1e-9),
        but_better_while_exploring=close(shaking[1], -20.71, atol=5e-3),
        than_the_edge=close(shaking[0], -45.80, atol=5e-3),
        one_goes_right=close(edge[middle], torch.tensor([0.0, 1, 0, 0]).double()),
        one_goes_up=close(careful[middle], torch.tensor([1.0, 0, 0, 0]).double()),
    )


def lucky_draws(actions: int) -> tuple[MarkovDecisionProcess, Tensor]:
    """End with 0, or go on to `actions` alike that pay +0.9 or −1.1: −0.1 in the mean, but some look good."""
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
def two_tables_are_not_fooled_by_luck() -> Evidence:
    """Among ten bad choices the luckiest looks good: Q-learning goes there, double Q-learning less."""
    process, start = lucky_draws(10)
    walks = partial(Walks, process, start, steps=400, epsilon=0.1, step_size=constant(0.1), learners=400)
    single = learn(walks(generator=source()), best_next)
    double = double_q_learning(walks(generator=source()))
    went = [float((each.rewards != 0).sum() / each.ended.sum()) for each in (single, double)]
    return all_of(
        not_worth_it=close(policy_iteration(process).q[0, 1], -0.1, atol=1e-12),
        one_table_goes=at_least(went[0], 0.3),
        two_go_less=at_most(went[1], went[0] - 0.1),
        one_table_hopes_for_more=at_least(single.q[:, 0, 1].mean() - double.q[:, 0, 1].mean(), 0.02),
    )


def batch(seed: int = 0) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """States, actions, rewards, next states and ends of 64 made-up transitions among 5 states with 3 actions."""
    chance = source(seed)
    states, following = torch.randint(5, (2, 64), generator=chance)
    actions = torch.randint(3, (64,), generator=chance)
    rewards = torch.randn(64, generator=chance, dtype=torch.float64)
    return states, actions, rewards, following, torch.rand(64, generator=chance) < 0.2


def network(seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)).double()


@erratum("B18.3-3", printed="∇L = E[(target − Q) ∇Q]", right="∇L = −E[(target − Q) ∇Q]")
def the_gradient_of_the_loss_has_a_minus() -> Correction:
    """With the printed sign gradient descent walks away from its target (book eq. 18.8)."""
    states, actions, rewards, following, terminated = batch()
    one_hot, online, held = torch.eye(5).double(), network(0), network(1)
    q = taken(online(one_hot[states]), actions)
    target = q_targets(rewards, held(one_hot[following]), terminated, discount=0.9)
    parameters = list(online.parameters())
    gradient = torch.autograd.grad(half_squared_error(q, target), parameters, retain_graph=True)
    weighted = torch.autograd.grad(((target - q).detach() * q).mean(), parameters)
    ours, printed = (torch.cat([part.flatten() for part in parts]) for parts in (gradient, weighted))
    return Correction(printed=close(printed, ours, rtol=1e-9, atol=1e-12), corrected=close(-printed, ours, atol=1e-12))


@claim("B18.3-3")
def one_hot_features_give_back_the_table() -> Evidence:
    """A step of descent on the loss of one transition, with one-hot features, is the tabular rule (book eq. 18.6)."""
    states, actions, rewards, following, terminated = batch()
    table = torch.randn(5, 3, generator=source(1), dtype=torch.float64).requires_grad_()
    gaps = []
    for s, a, r, t, end in zip(states, actions, rewards, following, terminated, strict=True):
        target = q_targets(r[None], table[t][None], end[None], discount=0.9)
        (gradient,) = torch.autograd.grad(half_squared_error(taken(table[s][None], a[None]), target), table)
        stepped = table.detach() - 0.3 * gradient
        ruled = table.detach().clone()
        ahead = 0.0 if end else 0.9 * ruled[t].max()
        ruled[s, a] += 0.3 * (r + ahead - ruled[s, a])
        gaps.append((stepped - ruled).abs().max())
    return close(torch.stack(gaps), 0.0, atol=1e-15)


@erratum("B18.3-3", printed="target r + γ max Q(s′, a′) at every step", right="target r where the episode ends")
def a_target_at_the_end_is_the_reward_alone() -> Correction:
    """Counting what comes after the end, by an entry that is never updated, moves Q-learning's answer."""
    process = cat_decisions(0.9)
    exact = policy_iteration(process).q
    stroke = exact[3, 2]
    after = torch.full((1, 3), 1.0, dtype=torch.float64)  # a random beginning that nothing corrects at the end
    reward = torch.tensor([2.0], dtype=torch.float64)
    going_on, over = torch.tensor([False]), torch.tensor([True])
    return Correction(
        printed=close(q_targets(reward, after, going_on, discount=0.9)[0], stroke, atol=1e-6),
        corrected=close(q_targets(reward, after, over, discount=0.9)[0], stroke, atol=1e-12),
    )
