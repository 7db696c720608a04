"""The final evaluation of a training run: learning curves, a table of learners and their statistics."""

from torch import Tensor, nn

from parnassus.reinforcement.evaluation.episode_returns import (
    MultiLearnerExperiment,
    episode_returns,
    summarise_returns,
)
from parnassus.reinforcement.evaluation.reward_thresholds import reward_threshold
from parnassus.reinforcement.figures.learning_curves import learners_table, plot_learning_curves
from parnassus.train import Run


def report_evaluation(
    run: Run, experiment: MultiLearnerExperiment, model: nn.Module, steps: int, *, returns: Tensor | None = None
) -> dict[str, float]:
    """Evaluate all learners with the most probable actions, and report the returns with their learning curves.

    `returns` are those of the evaluation episodes, if they have been run already.
    """
    seconds, learners, threshold = run.seconds, experiment.num_learners, reward_threshold(experiment.env)
    curves = {f"learner {i + 1}": run.curve(f"return/{i + 1}") for i in range(learners)}
    if returns is None:
        environments = experiment.make_environments(experiment.n_eval_episodes * learners, run.device)
        returns = episode_returns(environments, lambda x: experiment.act(model, x), learners)
    dashed = "" if threshold is None else f" Dashed: Gymnasium's reward threshold, {threshold:g}."
    who = "1 learner" if learners == 1 else f"{learners} learners"
    if curves["learner 1"][0]:  # none where training ended before an episode did
        figure = plot_learning_curves(curves, threshold=threshold)
        run.figure("return", figure, f"Training returns of {who} on {experiment.env}.{dashed}")
    caption = f"Returns of {experiment.n_eval_episodes} evaluation episodes each, with the most probable actions."
    run.table("learners", learners_table(returns), caption)
    return {**summarise_returns(returns, threshold), "steps_per_second": steps * learners / seconds}
