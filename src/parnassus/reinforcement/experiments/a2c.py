"""A2C learns to act: one step on what eight copies saw, then new experience (book sec. 18.5).

Several learners, each with its own weights and its own copies of the environment, learn side by side in one process.
"""

from dataclasses import dataclass
from functools import partial

from parnassus.reinforcement.a2c import TUNED, Settings, a2c_backward
from parnassus.reinforcement.actor_critic import ActorCritic
from parnassus.reinforcement.agent import Actor
from parnassus.reinforcement.collector import Collector
from parnassus.reinforcement.experiments import ppo
from parnassus.reinforcement.judged import judged, visited
from parnassus.reinforcement.lean_rmsprop import LeanRMSprop
from parnassus.reinforcement.moments import RewardScale, at_scale
from parnassus.reinforcement.tuned import settled, whole_updates
from parnassus.train import Run, at_least, reported

covers = ("B18.1-1", "B18.5-1")
expected = {
    "return_mean": at_least(470.0, "mean return of whole episodes, the best action always"),
    "return_iqm": at_least(490.0, "mean of the middle half of the learners"),
    "return_worst": reported("mean return of the worst learner"),
    "solved": at_least(0.8, "share of the learners whose mean gymnasium calls solved; 0 where it names no goal"),
    "steps_a_second": reported("steps of all learners together, a second, learning included"),
}
profiles = {"smoke": {"budget": 512, "learners": 2, "episodes": 2}, "gpu": {"copies": 512, "budget": 10_000_000}}


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
    lr: float | None = None  # RMSprop's learning rate at first; it falls to 0
    discount: float | None = None  # what a reward a step later counts
    decay: float | None = None  # λ of the advantages
    entropy: float | None = None  # weight of the policy's entropy
    normalised: bool | None = None  # bring observations and rewards to one scale

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
        descent = partial(LeanRMSprop, lr=told.lr, alpha=0.99, eps=1e-5, most=0.5, learners=self.learners)
        model, optimizer = run.prepare(model, descent)
        run.keep("collector", collector)
        if scale is not None:
            run.keep("scale", scale)

        updates = whole_updates(told.budget, told.copies, told.horizon)
        for update, _ in run.steps(updates):
            optimizer.param_groups[0]["lr"] = (1 - update / updates) * told.lr
            experience = at_scale(scale, collector.collect(lambda x: self.act(model, x, drawn=True), told.horizon))
            trace = model.traced(visited(experience))
            seen = judged(model, experience, trace, discount=told.discount, decay=told.decay)
            a2c_backward(model, seen, trace, entropy_weight=told.entropy)
            optimizer.step()
            if model.seen is not None:
                model.seen.update(seen.observations)
            if update % max(1, updates // 200) == 0 or update == updates - 1:
                run.record(collector.steps, **collector.progress)
        return ppo.judge(run, self, model, collector.steps)
