"""DQN learns to act: a network, a memory, and a held copy that says what to aim at (book sec. 18.3).

Several learners, each with its own weights, memory and copies of the environment, learn side by side in one process.
What acts in the end is the moving mean of each learner's weights: a single late step cannot spoil it.
"""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor
from torch.optim import Optimizer

from parnassus.reinforcement.agent import Agent
from parnassus.reinforcement.collector import Collector
from parnassus.reinforcement.dqn import TUNED, Settings, explored, exploring, finitely_many, hold, q_slope
from parnassus.reinforcement.experiments import ppo
from parnassus.reinforcement.lean_adam import LeanAdam
from parnassus.reinforcement.prioritised import PrioritisedReplay
from parnassus.reinforcement.q_network import DuelingQNetwork, QNetwork
from parnassus.reinforcement.replay import Remembered, Replay
from parnassus.reinforcement.targets import double_q_targets, q_targets
from parnassus.reinforcement.transitions import NSteps
from parnassus.reinforcement.tuned import settled
from parnassus.train import Run, at_least, reported

Network: TypeAlias = QNetwork | DuelingQNetwork

covers = ("B18.1-1", "B18.3-1", "B18.3-3")
expected = {
    "return_mean": at_least(440.0, "mean return of whole episodes, the best action always"),
    "return_iqm": at_least(490.0, "mean of the middle half of the learners"),
    "return_worst": reported("mean return of the worst learner"),
    "solved": reported("share of the learners whose mean gymnasium calls solved; 0 where it names no goal"),
    "steps_a_second": reported("steps of all learners together, a second, learning included"),
}
profiles = {
    "smoke": {"budget": 512, "starts": 0, "updates": 8, "learners": 2, "episodes": 2},
    "gpu": {"learners": 32},
}


@dataclass(frozen=True)
class Experiment(Agent):
    env: str = "CartPole-v1"  # any environment of gymnasium with finitely many actions; some also written in tensors
    gym: bool = False  # use gymnasium's even where there is one in tensors
    workers: int = 0  # processes that share gymnasium's copies; 0 for this one alone
    learners: int = 5  # seeds that learn side by side
    episodes: int = 100  # of each learner, to judge it in the end
    double: bool = True  # the network chooses the next action, the held one judges it
    dueling: bool = False  # values of states and advantages of actions in parts of their own
    prioritised: bool = False  # come back most often to what was most wrong
    budget: int | None = None  # steps of each learner; this and what follows as tuned for the environment unless told
    copies: int | None = None  # of the environment, for each learner
    every: int | None = None  # steps between times of learning
    updates: int | None = None  # batches learned from each time
    batch: int | None = None  # transitions of a batch
    capacity: int | None = None  # transitions remembered
    starts: int | None = None  # steps before anything is learned; may be 0
    held: int | None = None  # steps for which the other network is held
    lr: float | None = None  # Adam's learning rate
    discount: float | None = None  # what a reward a step later counts
    exploring: float | None = None  # share of the budget over which ε falls from 1
    epsilon: float | None = None  # what it falls to
    border: float | None = None  # errors beyond it count by their size, not its square
    norm: float | None = None  # gradients are shortened to it
    width: int | None = None  # of the two hidden layers
    falling: bool | None = None  # let the learning rate fall to 0
    n_steps: int | None = None  # rewards before the held network is asked
    share: float | None = None  # of the way to the network that the held one goes
    mean: float | None = None  # the same for the mean of the weights that acts in the end

    def model(self) -> Network:
        world = self.worlds(1)
        kind = DuelingQNetwork if self.dueling else QNetwork
        count, hidden = finitely_many(world.actions, self.env), (self.settings.width,) * 2
        return kind(world.features, count, hidden=hidden, learners=self.learners)

    def act(self, model: Network, x: Tensor, *, drawn: bool = False) -> Tensor:
        """What the learners do in states x: the best action, or what they did while they explored in the end."""
        return explored(model(x), self.settings.epsilon if drawn else 0.0)

    def memory(self, features: int, device: torch.device) -> Replay:
        kind = PrioritisedReplay if self.prioritised else Replay
        room = min(self.settings.capacity, self.settings.budget)
        return kind(features, capacity=room, learners=self.learners, device=device)

    @property
    def settings(self) -> Settings:
        return settled(TUNED.get(self.env, Settings()), self)

    @torch.no_grad()
    def learn(self, drawn: Remembered, model: Network, held: Network, optimizer: Optimizer, memory: Replay) -> None:
        """A step of descent for each batch of what was drawn; the held network is asked about all of it at once."""
        told, ahead = self.settings, held(drawn.transitions.led_to)
        batches = list(drawn.batches(told.batch))
        for batch, targets in zip(batches, self.targets(drawn, batches, ahead, model), strict=True):
            trace = model.traced(batch.transitions.observations)
            slope, errors = q_slope(trace.said, batch, targets, border=told.border)
            model.pull_back(trace, slope)
            optimizer.step()
            memory.learned(batch, errors)

    def targets(self, drawn: Remembered, batches: list[Remembered], ahead: Tensor, model: Network) -> Iterator[Tensor]:
        """What the action values of each batch should become; `ahead` are the held network's where transitions led.

        For all batches at once, unless the network that learns has a say: then when it is a batch's turn.
        """
        seen, rows = drawn.transitions, batches[0].places.shape[1]
        if not self.double:
            yield from q_targets(seen.rewards, ahead, seen.terminated, discount=seen.discounts).split(rows, 1)
            return
        for batch, judging in zip(batches, ahead.split(rows, 1), strict=True):
            seen = batch.transitions
            yield double_q_targets(seen.rewards, model(seen.led_to), judging, seen.terminated, discount=seen.discounts)

    def __call__(self, run: Run) -> dict[str, float]:
        self.demand_one_process(run.world)
        told = self.settings
        model = run.build(self.model)
        held, mean = (deepcopy(model).requires_grad_(False).to(run.device) for _ in range(2))
        descent = partial(LeanAdam, lr=told.lr, most=told.norm, learners=self.learners)
        model, optimizer = run.prepare(model, descent)
        collector = Collector(self.worlds(told.copies * self.learners, run.device), self.learners)
        memory = self.memory(collector.environments.features, run.device)
        over = NSteps(told.n_steps, discount=told.discount)
        run.keep("held", held)
        run.keep("mean", mean)
        run.keep("collector", collector)
        run.keep("memory", memory)
        run.keep("waiting", over)

        count = finitely_many(collector.environments.actions, self.env)
        horizon = max(1, told.every // told.copies)
        times = max(1, told.budget // (told.copies * horizon))
        for time, _ in run.steps(times):
            optimizer.param_groups[0]["lr"] = told.lr * (1 - time / times if told.falling else 1)
            before = collector.steps
            falling = torch.tensor([told.epsilon_at(before + step * told.copies) for step in range(horizon)])
            epsilons = falling.view(-1, 1, 1).expand(-1, self.learners, told.copies).to(run.device)
            experience = collector.collect(exploring(model, count, epsilons), horizon)
            fresh = over(experience)
            if fresh is not None:
                memory.add(fresh)
            if collector.steps // told.held > before // told.held:
                hold(held, model, told.share)
            if collector.steps >= told.starts and len(memory):
                for drawn in memory.draw(told.batch, told.updates, progress=time / times):
                    self.learn(drawn, model, held, optimizer, memory)
            hold(mean, model, max(told.mean, 1 / (time + 1)))
            if time % max(1, times // 200) == 0 or time == times - 1:
                run.record(collector.steps, **collector.progress)
        hold(model, mean)
        return ppo.judge(run, self, model, collector.steps)
