"""DQN: Q-learning with a neural network, a replay buffer and a target network (book sec. 18.3).

Several independent learners, each with its own weights, buffer and environments, are trained in one process.
The evaluated policy uses a moving average of the weights, which reduces the effect of single updates.
"""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor
from torch.optim import Optimizer

from parnassus.reinforcement.agents.dqn import (
    TUNED,
    DQNSettings,
    count_discrete_actions,
    dqn_loss,
    epsilon_greedy,
    epsilon_greedy_actor,
    update_target,
)
from parnassus.reinforcement.agents.multi_learner import MultiLearnerAgent
from parnassus.reinforcement.agents.q_learning_targets import double_q_targets, q_targets
from parnassus.reinforcement.agents.q_network import DuelingQNetwork, QNetwork
from parnassus.reinforcement.commands.evaluate_agents import EvaluateAgents as Evaluate  # noqa: F401 - declares `parnassus evaluate`
from parnassus.reinforcement.experience.collector import Collector
from parnassus.reinforcement.experience.prioritised_replay import PrioritisedReplayBuffer
from parnassus.reinforcement.experience.replay_buffer import ReplayBuffer, ReplaySample
from parnassus.reinforcement.experience.transitions import NStepTransitions
from parnassus.reinforcement.fast.dqn_backward import dqn_backward
from parnassus.reinforcement.fast.flat_adam import FlatAdam
from parnassus.reinforcement.figures.training_report import report_evaluation
from parnassus.train import Run, at_least, no_band

Network: TypeAlias = QNetwork | DuelingQNetwork

covers = ("B18.1-1", "B18.3-1", "B18.3-3")
expected = {
    "return_mean": at_least(440.0, "mean return of episodes with the most probable actions"),
    "return_iqm": at_least(490.0, "interquartile mean of the return over learners"),
    "return_worst": no_band("mean return of the worst learner"),
    "solved": no_band("fraction of learners above Gymnasium's reward threshold; 0 if there is none"),
    "steps_per_second": no_band("environment steps per second of all learners, training included"),
}
profiles = {
    "smoke": {
        "total_timesteps": 512,
        "learning_starts": 0,
        "gradient_steps": 8,
        "num_learners": 2,
        "n_eval_episodes": 2,
    },
    "gpu": {"num_learners": 32},
}
tuned = {"env": TUNED}


@dataclass(frozen=True)
class Experiment(DQNSettings, MultiLearnerAgent):
    double_q: bool = True  # double DQN: the online network selects the next action, the target network evaluates it
    dueling: bool = False  # dueling architecture: separate heads for state values and advantages
    prioritized_replay: bool = False  # sample transitions in proportion to their errors instead of uniformly
    fast_backward: bool = False  # compute the gradient of the loss by hand instead of by autograd; equal up to rounding

    def model(self) -> Network:
        environment = self.make_environments(1)
        network = DuelingQNetwork if self.dueling else QNetwork
        count, hidden = count_discrete_actions(environment.actions, self.env), (self.width,) * 2
        return network(environment.features, count, hidden=hidden, num_learners=self.num_learners)

    def act(self, model: Network, x: Tensor, *, sample_actions: bool = False) -> Tensor:
        """Actions of the learners in states x: the greedy ones, or ε-greedy with the final ε."""
        return epsilon_greedy(model(x), self.exploration_final_eps if sample_actions else 0.0)

    def replay_buffer(self, features: int, device: torch.device) -> ReplayBuffer:
        buffer = PrioritisedReplayBuffer if self.prioritized_replay else ReplayBuffer
        capacity = min(self.buffer_size, self.total_timesteps)
        return buffer(features, capacity=capacity, num_learners=self.num_learners, device=device)

    def learn(
        self, sample: ReplaySample, model: Network, target: Network, optimizer: Optimizer, buffer: ReplayBuffer
    ) -> None:
        """One gradient step for each batch of the sample; the target network is evaluated on all of it at once."""
        with torch.no_grad():
            next_q = target(sample.transitions.next_observations)
        batches = list(sample.batches(self.batch_size))
        for batch, targets in zip(batches, self.targets(sample, batches, next_q, model), strict=True):
            optimizer.zero_grad()
            if self.fast_backward:
                errors = dqn_backward(model, batch, targets, huber_delta=self.huber_delta)
            else:
                loss = dqn_loss(model, batch, targets, huber_delta=self.huber_delta)
                loss.total.sum().backward()
                errors = loss.errors
            optimizer.step()
            buffer.update_priorities(batch, errors)

    def targets(
        self, sample: ReplaySample, batches: list[ReplaySample], next_q: Tensor, model: Network
    ) -> Iterator[Tensor]:
        """The targets of each batch; `next_q` are the target network's values of the next states.

        Those of double DQN depend on the online network, which changes between the batches.
        """
        transitions, rows = sample.transitions, batches[0].indices.shape[1]
        if not self.double_q:
            targets = q_targets(transitions.rewards, next_q, transitions.terminated, gamma=transitions.discounts)
            yield from targets.split(rows, 1)
            return
        for batch, target_q in zip(batches, next_q.split(rows, 1), strict=True):
            transitions = batch.transitions
            with torch.no_grad():
                online_q = model(transitions.next_observations)
            yield double_q_targets(
                transitions.rewards, online_q, target_q, transitions.terminated, gamma=transitions.discounts
            )

    def __call__(self, run: Run) -> dict[str, float]:
        self.check_single_process(run.world_size)
        model = run.build(self.model)
        target, average = (deepcopy(model).requires_grad_(False).to(run.device) for _ in range(2))
        make_optimizer = partial(
            FlatAdam, lr=self.learning_rate, max_norm=self.max_grad_norm, num_learners=self.num_learners
        )
        model, optimizer = run.prepare(model, make_optimizer)
        environments = self.make_environments(self.n_envs * self.num_learners, run.device)
        collector = Collector(environments, self.num_learners)
        buffer = self.replay_buffer(environments.features, run.device)
        n_step_transitions = NStepTransitions(self.n_steps, gamma=self.gamma)
        run.keep("target", target)
        run.keep("average", average)
        run.keep("collector", collector)
        run.keep("buffer", buffer)
        run.keep("n_step_transitions", n_step_transitions)

        count = count_discrete_actions(environments.actions, self.env)
        steps = max(1, self.train_freq // self.n_envs)
        phases = max(1, self.total_timesteps // (self.n_envs * steps))
        for phase, _ in run.steps(phases):
            progress = phase / phases
            optimizer.param_groups[0]["lr"] = self.learning_rate * (1 - progress if self.decay_learning_rate else 1)
            before = collector.steps
            schedule = torch.tensor([self.epsilon_at(before + step * self.n_envs) for step in range(steps)])
            epsilons = schedule.view(-1, 1, 1).expand(-1, self.num_learners, self.n_envs).to(run.device)
            transitions = n_step_transitions(collector.collect(epsilon_greedy_actor(model, count, epsilons), steps))
            if transitions is not None:
                buffer.add(transitions)
            if collector.steps // self.target_update_interval > before // self.target_update_interval:
                update_target(target, model, self.tau)
            if collector.steps >= self.learning_starts and len(buffer):
                for sample in buffer.sample(self.batch_size, self.gradient_steps, progress=progress):
                    self.learn(sample, model, target, optimizer, buffer)
            update_target(average, model, max(self.averaging_tau, 1 / (phase + 1)))
            if phase % max(1, phases // 200) == 0 or phase == phases - 1:
                run.record(collector.steps, **collector.metrics)
        update_target(model, average)
        return report_evaluation(run, self, model, collector.steps)
