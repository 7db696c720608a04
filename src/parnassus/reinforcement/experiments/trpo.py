"""TRPO learns to act: natural steps, as long as the divergence from the last policy allows (book sec. 18.5).

Several learners, each with its own weights and its own copies of the environment, learn side by side in one process.
"""

from dataclasses import dataclass
from functools import partial

import torch
from torch.optim import Adam

from parnassus.reinforcement.actor_critic import ActorCritic
from parnassus.reinforcement.agent import Actor
from parnassus.reinforcement.collector import Collector
from parnassus.reinforcement.experiments import ppo
from parnassus.reinforcement.judged import judged
from parnassus.reinforcement.ppo import minibatches
from parnassus.reinforcement.trpo import TUNED, Settings, natural_step
from parnassus.reinforcement.tuned import settled, whole_updates
from parnassus.report.learning import divergences
from parnassus.train import Run, at_least, at_most, reported

covers = ("B18.1-1", "B18.5-1", "B18.5-2")
expected = {
    "return_mean": at_least(470.0, "mean return of whole episodes, the best action always"),
    "return_iqm": at_least(490.0, "mean of the middle half of the learners"),
    "return_worst": reported("mean return of the worst learner"),
    "solved": at_least(0.8, "share of the learners whose mean gymnasium calls solved; 0 where it names no goal"),
    "largest_kl": at_most(0.01, "divergence of the new policy from the old, the largest of all steps"),
    "moved": at_least(0.9, "share of the updates in which a step was found"),
    "steps_a_second": reported("steps of all learners together, a second, learning included"),
}
profiles = {
    "smoke": {"budget": 512, "copies": 4, "horizon": 32, "epochs": 2, "learners": 2, "episodes": 2},
    "gpu": {"copies": 512, "budget": 5_000_000, "batch": 4_096},
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
    threshold: float | None = None  # δ, the divergence that a step may reach
    damping: float | None = None  # added to the curvature
    products: int | None = None  # of the curvature with a vector, to find the direction
    batch: int | None = None  # rows of a minibatch of the critic
    epochs: int | None = None  # passes of the critic over what was seen
    lr: float | None = None  # Adam's learning rate for the critic
    discount: float | None = None  # what a reward a step later counts
    decay: float | None = None  # λ of the advantages

    def model(self) -> ActorCritic:
        return self.actor_critic()

    @property
    def settings(self) -> Settings:
        return settled(TUNED.get(self.env, Settings()), self)

    def __call__(self, run: Run) -> dict[str, float]:
        self.demand_one_process(run.world)
        told = self.settings
        collector = Collector(self.worlds(told.copies * self.learners, run.device), self.learners)
        model, optimizer = run.prepare(run.build(self.model), partial(Adam, lr=told.lr, fused=True))
        run.keep("collector", collector)

        for _ in run.steps(whole_updates(told.budget, told.copies, told.horizon)):
            experience = collector.collect(lambda x: self.act(model, x, drawn=True), told.horizon)
            seen = judged(model, experience, discount=told.discount, decay=told.decay)
            moved = natural_step(model, seen, threshold=told.threshold, damping=told.damping, products=told.products)
            for batch in minibatches(seen, told.batch, told.epochs):
                # the values depend on the critic's part of the stacks alone: the actor's has a slope of 0
                run.update(optimizer, (model.values(batch.observations) - batch.returns).square().mean(1).sum())
            run.record(
                collector.steps,
                **collector.progress,
                **{f"kl/{i}": spent for i, spent in enumerate(moved.kl.tolist(), 1)},
            )

        divergence = {f"learner {i + 1}": run.curve(f"kl/{i + 1}") for i in range(self.learners)}
        kls = torch.tensor([kl for _, own in divergence.values() for kl in own])
        run.figure(
            "kl",
            divergences(divergence, threshold=told.threshold),
            "KL(old ‖ new), the mean over the states seen, at every update. At 0 no step kept its promise.",
        )
        return {
            **ppo.judge(run, self, model, collector.steps),
            "largest_kl": float(kls.max()),
            "moved": float((kls > 0).double().mean()),
        }
