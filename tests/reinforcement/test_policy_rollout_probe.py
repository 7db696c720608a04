"""Policy rollout probe."""

from collections.abc import Callable
from typing import cast

import pytest
import torch

from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.environments import TENSOR_ENVIRONMENTS, CartPole, TensorEnvironments
from parnassus.reinforcement.experiments import dqn, trpo
from parnassus.reinforcement.figures.classic_control import HEIGHT, WIDTH
from parnassus.reinforcement.probes.policy_rollout import MAX_STEPS, policy_rollout
from parnassus.train.trained import TrainedRun
from parnassus.widgets import Answer, Bars, Curves, Images, IntSlider, Numbers, evaluate_probe, read_controls

DQN_SETTINGS: dict[str, dict[str, object]] = {
    "plain": {},
    "dueling": {"dueling": True, "num_learners": 3},
    "uniform": {"num_learners": 1, "exploration_final_eps": 1.0},
    "acrobot": {"env": "Acrobot-v1", "num_learners": 2, "exploration_final_eps": 0.0},
}
PENDULUM_SETTINGS = {"env": "Pendulum-v1", "n_steps": 64, "batch_size": 64, "num_learners": 1}


@pytest.fixture(scope="module")
def cartpole_run(trained_run: Callable[..., TrainedRun]) -> TrainedRun:
    return trained_run("ppo")


def evaluate(trained: TrainedRun, **values: object) -> tuple[Images, Answer, Curves, Numbers]:
    image, policy, curves, numbers = evaluate_probe(
        policy_rollout, trained, read_controls(policy_rollout, trained), values
    )
    return cast("Images", image), policy, cast("Curves", curves), cast("Numbers", numbers)


def evaluate_dqn(trained: TrainedRun, **values: object) -> tuple[Bars, Bars, Curves, Numbers]:
    """Answers of the probe for a run of DQN, without the image."""
    _, policy, q_values, curves, numbers = evaluate_probe(
        policy_rollout, trained, read_controls(policy_rollout, trained), values
    )
    return cast("Bars", policy), cast("Bars", q_values), cast("Curves", curves), cast("Numbers", numbers)


def test_rollout_matches_the_trained_policy_and_environment(cartpole_run: TrainedRun) -> None:
    _, _, curves, numbers = evaluate(cartpole_run, step=MAX_STEPS, perturbation=0.0, learner=2, seed=3)
    model, envs = cast("ActorCritic", cartpole_run.model), TensorEnvironments(CartPole(), 1)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(3)
        observation, values, terminated, steps = envs.reset(), [], False, 0
        while not terminated and steps < MAX_STEPS:
            distribution, value = model(observation.expand(2, 1, -1))
            values.append(float(value[1, 0]))
            step = envs.step(distribution.mode()[1])
            observation, steps, terminated = step.observation, steps + 1, bool(step.terminated)
    assert numbers.values["step"] == f"{steps} of {steps}"
    assert numbers.values["return of the episode"] == steps
    assert curves.lines["value"][1][:-1] == pytest.approx(values, abs=1e-5)


def test_answers_belong_to_the_selected_step(cartpole_run: TrainedRun) -> None:
    image, policy, curves, numbers = evaluate(cartpole_run, step=4)
    assert image.images.shape == (1, 3, HEIGHT, WIDTH)
    assert 0 <= float(image.images.min()) < float(image.images.max()) <= 1
    assert isinstance(policy, Bars)
    assert float(policy.values.sum()) == pytest.approx(1, abs=1e-6)
    assert policy.marked == int(policy.values.argmax())
    assert curves.marked == 4
    assert numbers.values["return so far"] == 4
    assert numbers.values["value of this state"] == curves.lines["value"][1][4]
    learner = read_controls(policy_rollout, cartpole_run)["learner"]
    assert isinstance(learner, IntSlider)
    assert learner.high == 2


def test_perturbation_acts_from_its_step(cartpole_run: TrainedRun) -> None:
    unperturbed, perturbed = (
        evaluate(cartpole_run, perturbation=perturbation, perturbation_step=3)[2].lines["value"][1]
        for perturbation in (0.0, 1.0)
    )
    assert unperturbed[:3] == pytest.approx(perturbed[:3], abs=1e-6)
    assert abs(unperturbed[3] - perturbed[3]) > 1e-4
    assert (
        evaluate(cartpole_run, perturbation=1.0, perturbation_step=3)[3].values["end of the episode"]
        == "pole fell or cart left the track"
    )


@pytest.mark.parametrize("name", ["trpo", "dqn"])  # agents without reward normalisation
def test_discounted_return_matches_closed_form(name: str, trained_run: Callable[[str], TrainedRun]) -> None:
    """With reward 1 per step the return is (1 − γⁿ) / (1 − γ) for n remaining steps."""
    run = trained_run(name)
    *_, curves, numbers = evaluate_probe(
        policy_rollout, run, read_controls(policy_rollout, run), {"perturbation": 1.0, "perturbation_step": 3}
    )
    returns = cast("Curves", curves).lines["discounted return"][1]
    gamma = cast("trpo.Experiment | dqn.Experiment", run.experiment).gamma
    steps = len(returns)
    assert cast("Numbers", numbers).values["return of the episode"] == steps < MAX_STEPS
    assert returns == pytest.approx([(1 - gamma ** (steps - t)) / (1 - gamma) for t in range(steps)], rel=1e-5)


def test_return_is_omitted_for_normalised_rewards(trained_run: Callable[..., TrainedRun]) -> None:
    curves = evaluate(trained_run("ppo", normalize=True))[2]
    assert list(curves.lines) == ["value"]
    assert "normalised rewards" in curves.about


def test_continuous_actions_show_a_density(trained_run: Callable[..., TrainedRun]) -> None:
    _, policy, _, numbers = evaluate(trained_run("ppo", **PENDULUM_SETTINGS), step=50, perturbation=-0.5)
    assert isinstance(policy, Curves)
    torques, density = (torch.tensor(line) for line in policy.lines["density of the torque"])
    assert 0 < float(torch.trapezoid(density, torques)) <= 1
    assert -2 <= cast("float", policy.marked) <= 2
    assert numbers.values["end of the episode"] == "time limit"


@pytest.mark.parametrize("name", DQN_SETTINGS)
def test_dqn_rollout_shows_q_values_and_action_probabilities(name: str, trained_run: Callable[..., TrainedRun]) -> None:
    """Every step takes the action with the largest Q-value of the selected learner."""
    run = trained_run("dqn", **DQN_SETTINGS[name])
    experiment = cast("dqn.Experiment", run.experiment)
    num_learners, epsilon, dynamics = (
        experiment.num_learners,
        experiment.exploration_final_eps,
        TENSOR_ENVIRONMENTS[experiment.env],
    )
    count = dynamics.actions.count
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(5)
        state = dynamics.sample_initial_states(1, torch.device("cpu"))
        for step in range(8):
            policy, q_values, curves, numbers = evaluate_dqn(
                run, step=step, perturbation=0.0, learner=num_learners, seed=5
            )
            q = run.model(dynamics.observe(state).float().expand(num_learners, 1, -1))[-1, 0]
            assert q_values.values.tolist() == pytest.approx(q.tolist(), abs=1e-5)
            assert policy.marked == q_values.marked == int(q.argmax())
            probabilities = [epsilon / count + (1 - epsilon) * (action == q_values.marked) for action in range(count)]
            assert policy.values.tolist() == pytest.approx(probabilities, abs=1e-6)
            assert curves.lines["value"][1][step] == pytest.approx(float(q.max()), abs=1e-5)
            first, second = q.sort(descending=True).values[:2].tolist()
            assert numbers.values["gap of the two largest action values"] == pytest.approx(first - second, abs=1e-5)
            state = dynamics.step(state, q.argmax()[None]).state
    assert len(q_values.names) == len(policy.names) == count
    control = read_controls(policy_rollout, run)["learner"]
    assert isinstance(control, IntSlider)
    assert control.high == num_learners


def test_dqn_learners_differ_and_perturbation_acts_from_its_step(trained_run: Callable[..., TrainedRun]) -> None:
    run = trained_run("dqn", dueling=True, num_learners=3)
    q_values = [evaluate_dqn(run, step=2, learner=learner)[1].values for learner in (1, 2, 3)]
    assert all(float((q_values[i] - q_values[j]).abs().max()) > 1e-4 for i, j in ((0, 1), (0, 2), (1, 2)))
    unperturbed, perturbed = (
        evaluate_dqn(run, perturbation=perturbation, perturbation_step=3)[2].lines["value"][1]
        for perturbation in (0.0, 1.0)
    )
    assert unperturbed[:3] == pytest.approx(perturbed[:3], abs=1e-6)
    assert abs(unperturbed[3] - perturbed[3]) > 1e-4
