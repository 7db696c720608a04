"""PPO learns to act: many clipped steps on what the last policy saw (book sec. 18.5).

Several learners, each with its own weights and its own copies of the environment, learn side by side in one process.
"""

from dataclasses import dataclass
from functools import partial

from torch import Tensor, nn

from parnassus.reinforcement.actor_critic import ActorCritic
from parnassus.reinforcement.agent import Actor
from parnassus.reinforcement.collector import Collector
from parnassus.reinforcement.evaluation import Learners, episode_returns, goal_of, summary
from parnassus.reinforcement.judged import judged
from parnassus.reinforcement.lean_adam import LeanAdam
from parnassus.reinforcement.moments import RewardScale, at_scale
from parnassus.reinforcement.ppo import TUNED, Settings, minibatches, ppo_backward
from parnassus.reinforcement.solved import UntilSolved
from parnassus.reinforcement.tuned import settled, whole_updates
from parnassus.report.learning import learners_table, learning_curves
from parnassus.train import Run, at_least, reported

covers = ("B18.1-1", "B18.5-1", "B18.5-3")
expected = {
    "return_mean": at_least(450.0, "mean return of whole episodes, the best action always"),
    "return_iqm": at_least(475.0, "mean of the middle half of the learners"),
    "return_worst": reported("mean return of the worst learner"),
    "solved": at_least(0.8, "share of the learners whose mean gymnasium calls solved; 0 where it names no goal"),
    "steps_a_second": reported("steps of all learners together, a second, learning included"),
}
profiles = {
    "smoke": {"budget": 1_024, "learners": 2, "episodes": 2},
    "gpu": {"copies": 512, "budget": 1_000_000, "batch": 4_096},
}


@dataclass(frozen=True)
class Experiment(Actor):
    env: str = "CartPole-v1"  # any environment of gymnasium; the classic ones are also written in tensors
    gym: bool = False  # use gymnasium's even where there is one in tensors
    workers: int = 0  # processes that share gymnasium's copies; 0 for this one alone
    learners: int = 5  # seeds that learn side by side
    episodes: int = 100  # of each learner, to judge it in the end
    budget: int | None = None  # steps of each learner; this and what follows as tuned for the environment unless told
    copies: int | None = None  # of the environment, for each learner
    horizon: int | None = None  # steps of every copy between updates
    batch: int | None = None  # rows of a minibatch
    epochs: int | None = None  # passes over what was seen
    lr: float | None = None  # Adam's learning rate at first; it falls to 0
    clip: float | None = None  # how far the ratio of probabilities may go
    discount: float | None = None  # what a reward a step later counts
    decay: float | None = None  # λ of the advantages
    entropy: float | None = None  # weight of the policy's entropy
    normalised: bool | None = None  # bring observations and rewards to one scale
    until_solved: bool = False  # stop as soon as all learners have solved the environment

    def model(self) -> ActorCritic:
        return self.actor_critic(normalised=self.settings.normalised)

    @property
    def settings(self) -> Settings:
        return settled(TUNED.get(self.env, Settings()), self)

    def __call__(self, run: Run) -> dict[str, float]:
        self.demand_one_process(run.world)
        told = self.settings
        collector = Collector(self.worlds(told.copies * self.learners, run.device), self.learners)
        model = run.build(self.model)
        scale = RewardScale(self.learners, told.copies, told.discount).to(run.device) if told.normalised else None
        descent = partial(LeanAdam, lr=told.lr, eps=1e-5, most=0.5, learners=self.learners)
        model, optimizer = run.prepare(model, descent)
        run.keep("collector", collector)
        if scale is not None:
            run.keep("scale", scale)

        until = UntilSolved(self, run.device) if self.until_solved else None
        updates = whole_updates(told.budget, told.copies, told.horizon)
        for update, _ in run.steps(updates):
            left = 1 - update / updates
            optimizer.param_groups[0]["lr"] = left * told.lr
            experience = at_scale(scale, collector.collect(lambda x: model.law(x).draw(), told.horizon))
            seen = judged(model, experience, discount=told.discount, decay=told.decay)
            for batch in minibatches(seen, told.batch, told.epochs):
                ppo_backward(model, batch, clip=max(left * told.clip, 1e-3), entropy_weight=told.entropy)
                optimizer.step()
            if model.seen is not None:
                model.seen.update(seen.observations)
            solved = until is not None and until.reached(collector, model)
            if solved or update % max(1, updates // 200) == 0 or update == updates - 1:
                run.record(collector.steps, **collector.progress)
            if solved:
                break
        if until is None:
            return judge(run, self, model, collector.steps)
        run.note("solved", until.story(collector.steps, run.seconds))
        return judge(run, self, model, collector.steps, returns=until.returns)


def judge(
    run: Run, experiment: Learners, model: nn.Module, steps: int, *, returns: Tensor | None = None
) -> dict[str, float]:
    """How the learners came on, and what they reach in whole episodes at their best.

    `returns` are those of these episodes, where they were played already.
    """
    spent, learners, goal = run.seconds, experiment.learners, goal_of(experiment.env)
    curves = {f"learner {i + 1}": run.curve(f"return/{i + 1}") for i in range(learners)}
    if returns is None:
        judging = experiment.worlds(experiment.episodes * learners, run.device)
        returns = episode_returns(judging, lambda x: experiment.act(model, x), learners)
    dashed = "" if goal is None else f" Dashed: {goal:g}, the mean return at which gymnasium counts it as solved."
    who = "1 learner" if learners == 1 else f"{learners} learners"
    if curves["learner 1"][0]:  # not where the budget ended before an episode did
        run.figure("return", learning_curves(curves, goal=goal), f"{who} on {experiment.env}, exploring.{dashed}")
    run.table("learners", learners_table(returns), f"{experiment.episodes} episodes each, the best action always.")
    return {**summary(returns, goal), "steps_a_second": steps * learners / spent}
