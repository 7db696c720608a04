"""A2C: one actor-critic update for each rollout of parallel environments (book sec. 18.5).

Several independent learners, each with its own weights and environments, are trained in one process.
"""

from dataclasses import dataclass
from functools import partial

from parnassus.reinforcement.agents.a2c import TUNED, A2CSettings, a2c_loss
from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.agents.multi_learner import MultiLearnerActor, num_updates
from parnassus.reinforcement.commands.actor_training import prepare_actor_training, prepare_reward_normaliser
from parnassus.reinforcement.commands.evaluate_agents import EvaluateAgents as Evaluate  # noqa: F401 - declares `parnassus evaluate`
from parnassus.reinforcement.experience.rollout_batch import estimate_advantages, visited_states
from parnassus.reinforcement.experience.running_statistics import normalise_rewards
from parnassus.reinforcement.fast.a2c_backward import a2c_backward
from parnassus.reinforcement.fast.flat_rmsprop import FlatRMSprop
from parnassus.reinforcement.figures.training_report import report_evaluation
from parnassus.train import Run, at_least, no_band

covers = ("B18.1-1", "B18.5-1")
expected = {
    "return_mean": at_least(470.0, "mean return of episodes with the most probable actions"),
    "return_iqm": at_least(490.0, "interquartile mean of the return over learners"),
    "return_worst": no_band("mean return of the worst learner"),
    "solved": at_least(0.8, "fraction of learners above Gymnasium's reward threshold; 0 if there is none"),
    "steps_per_second": no_band("environment steps per second of all learners, training included"),
}
profiles = {
    "smoke": {"total_timesteps": 512, "num_learners": 2, "n_eval_episodes": 2},
    "gpu": {"n_envs": 512, "total_timesteps": 10_000_000},
}
tuned = {"env": TUNED}


@dataclass(frozen=True)
class Experiment(A2CSettings, MultiLearnerActor):
    fast_backward: bool = False  # compute the gradient of the loss by hand instead of by autograd; equal up to rounding

    def model(self) -> ActorCritic:
        return self.actor_critic(normalize_observations=self.normalize)

    def __call__(self, run: Run) -> dict[str, float]:
        make_optimizer = partial(
            FlatRMSprop,
            lr=self.learning_rate,
            alpha=0.99,
            eps=1e-5,
            max_norm=self.max_grad_norm,
            num_learners=self.num_learners,
        )
        model, optimizer, collector = prepare_actor_training(run, self, make_optimizer)
        normaliser = prepare_reward_normaliser(run, self)

        updates = num_updates(self.total_timesteps, self.n_envs, self.n_steps)
        for update, _ in run.steps(updates):
            optimizer.param_groups[0]["lr"] = (1 - update / updates) * self.learning_rate
            experience = collector.collect(lambda x: self.act(model, x, sample_actions=True), self.n_steps)
            experience = normalise_rewards(normaliser, experience)
            activations = model.forward_with_activations(visited_states(experience))
            batch = estimate_advantages(model, experience, activations, gamma=self.gamma, gae_lambda=self.gae_lambda)
            optimizer.zero_grad()
            if self.fast_backward:
                a2c_backward(model, batch, activations, vf_coef=self.vf_coef, ent_coef=self.ent_coef)
            else:
                a2c_loss(model, batch, vf_coef=self.vf_coef, ent_coef=self.ent_coef).sum().backward()
            optimizer.step()
            if model.observation_statistics is not None:
                model.observation_statistics.update(batch.observations)
            if update % max(1, updates // 200) == 0 or update == updates - 1:
                run.record(collector.steps, **collector.metrics)
        return report_evaluation(run, self, model, collector.steps)
