"""DQN learns to act: a network, a memory, and a held copy that says what to aim at (book sec. 18.3).

Several learners, each with its own weights, memory and copies of the environment, learn side by side in one process.
"""

from copy import deepcopy
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.optim import Adam

from parnassus.reinforcement.collector import Collector
from parnassus.reinforcement.dqn import TUNED, Settings, explored, finitely_many, hold, q_loss
from parnassus.reinforcement.environments import Environments, environments
from parnassus.reinforcement.experiments import ppo
from parnassus.reinforcement.prioritised import PrioritisedReplay
from parnassus.reinforcement.q_network import DuelingQNetwork, QNetwork
from parnassus.reinforcement.replay import Remembered, Replay
from parnassus.reinforcement.stacked import clip_each
from parnassus.reinforcement.targets import double_q_targets, q_targets
from parnassus.reinforcement.transitions import NSteps
from parnassus.reinforcement.tuned import settled
from parnassus.train import Run, at_least, reported

covers = ("B18.1-1", "B18.3-1", "B18.3-3")
expected = {
    "return_mean": at_least(380.0, "mean return of 100 episodes a learner, the best action always"),
    "return_iqm": at_least(420.0, "mean of the middle half of all these episodes"),
    "return_worst": reported("mean return of the worst learner"),
    "solved": reported("share of the learners whose mean is at least 475"),
    "steps_a_second": reported("steps of all learners together, a second, learning included"),
}
profiles = {
    "smoke": {"budget": 512, "starts": 0, "updates": 8, "learners": 2, "episodes": 2},
    "gpu": {"learners": 32},
}


@dataclass(frozen=True)
class Experiment:
    env: str = "CartPole-v1"  # any environment of gymnasium with finitely many actions; some also written in tensors
    gym: bool = False  # use gymnasium's even where there is one in tensors
    learners: int = 5  # seeds that learn side by side
    episodes: int = 100  # of each learner, to judge it in the end
    double: bool = True  # the network chooses the next action, the held one judges it
    dueling: bool = False  # values of states and advantages of actions in parts of their own
    prioritised: bool = False  # come back most often to what was most wrong
    n_steps: int = 3  # rewards before the held network is asked
    budget: int | None = None  # steps of each learner; this and what follows as tuned for the environment unless told
    copies: int | None = None  # of the environment, for each learner
    every: int | None = None  # steps between times of learning
    updates: int | None = None  # batches learned from each time
    batch: int | None = None  # transitions of a batch
    capacity: int | None = None  # transitions remembered
    starts: int | None = None  # steps before anything is learned
    held: int | None = None  # steps for which the other network is held
    lr: float | None = None  # Adam's learning rate
    discount: float | None = None  # what a reward a step later counts
    exploring: float | None = None  # share of the budget over which ε falls from 1
    epsilon: float | None = None  # what it falls to
    border: float | None = None  # errors beyond it count by their size, not its square
    norm: float | None = None  # gradients are shortened to it
    width: int | None = None  # of the two hidden layers
    falling: bool | None = None  # let the learning rate fall to 0

    def worlds(self, copies: int, device: torch.device | str = "cpu") -> Environments:
        return environments(self.env, copies, device=device, gym=self.gym)

    def model(self) -> QNetwork | DuelingQNetwork:
        world = self.worlds(1)
        kind = DuelingQNetwork if self.dueling else QNetwork
        count, hidden = finitely_many(world.actions, self.env), (self.settings.width,) * 2
        return kind(world.features, count, hidden=hidden, learners=self.learners)

    def act(self, model: QNetwork | DuelingQNetwork, x: Tensor, *, drawn: bool = False) -> Tensor:
        """What the learners do in states x: the best action, or what they did while they explored in the end."""
        return explored(model(x), self.settings.epsilon if drawn else 0.0)

    def memory(self, features: int, device: torch.device) -> Replay:
        kind = PrioritisedReplay if self.prioritised else Replay
        room = min(self.settings.capacity, self.settings.budget)
        return kind(features, capacity=room, learners=self.learners, device=device)

    @property
    def settings(self) -> Settings:
        return settled(TUNED.get(self.env, Settings()), self)

    def __call__(self, run: Run) -> dict[str, float]:
        told = self.settings
        model = run.build(self.model)
        held = deepcopy(model).requires_grad_(False).to(run.device)
        model, optimizer = run.prepare(model, partial(Adam, lr=told.lr, fused=True))
        collector = Collector(self.worlds(told.copies * self.learners, run.device), self.learners)
        memory = self.memory(collector.environments.features, run.device)
        over = NSteps(self.n_steps, discount=told.discount)
        run.keep("held", held)
        run.keep("collector", collector)
        run.keep("memory", memory)
        run.keep("waiting", over)

        def targets(batch: Remembered) -> Tensor:
            seen, ahead = batch.transitions, held(batch.transitions.led_to)
            if not self.double:
                return q_targets(seen.rewards, ahead, seen.terminated, discount=seen.discounts)
            with torch.no_grad():
                choosing = model(seen.led_to)
            return double_q_targets(seen.rewards, choosing, ahead, seen.terminated, discount=seen.discounts)

        horizon = max(1, told.every // told.copies)
        times = max(1, told.budget // (told.copies * horizon))
        for time, _ in run.steps(times):
            optimizer.param_groups[0]["lr"] = told.lr * (1 - time / times if told.falling else 1)
            before = collector.steps
            experience = collector.collect(lambda x: explored(model(x), told.epsilon_at(collector.steps)), horizon)
            fresh = over(experience)
            if fresh is not None:
                memory.add(fresh)
            if collector.steps // told.held > before // told.held:
                hold(held, model)
            if collector.steps >= told.starts and len(memory):
                for batch in memory.draw(told.batch, told.updates, progress=time / times):
                    loss = q_loss(model(batch.transitions.observations), batch, targets(batch), border=told.border)
                    optimizer.zero_grad(set_to_none=True)
                    loss.total.sum().backward()
                    clip_each(list(model.parameters()), told.norm, learners=self.learners)
                    optimizer.step()
                    memory.learned(batch, loss.errors)
            if time % max(1, times // 200) == 0 or time == times - 1:
                run.record(collector.steps, **{f"return/{i}": mean for i, mean in enumerate(collector.recent_returns)})
        return ppo.judge(run, self, model, told, collector.steps)
