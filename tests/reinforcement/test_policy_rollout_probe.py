"""The policy at play is the one that was trained, its world the one of the environments, and a kick is felt."""

from collections.abc import Callable
from typing import cast

import pytest
import torch

from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.environments import TENSOR_ENVIRONMENTS, CartPole, TensorEnvironments
from parnassus.reinforcement.experiments import dqn, trpo
from parnassus.reinforcement.figures.classic_control import HEIGHT, WIDTH
from parnassus.reinforcement.probes.policy_rollout import MAX_STEPS, policy_rollout
from parnassus.train.trained import Trained
from parnassus.widgets import Answer, Bars, Curves, Images, IntSlider, Numbers, evaluate_probe, read_controls

JUDGES: dict[str, dict[str, object]] = {
    "plain": {},
    "dueling": {"dueling": True, "num_learners": 3},
    "drawn alike": {"num_learners": 1, "exploration_final_eps": 1.0},
    "acrobot": {"env": "Acrobot-v1", "num_learners": 2, "exploration_final_eps": 0.0},
}
SWINGING = {"env": "Pendulum-v1", "n_steps": 64, "batch_size": 64, "num_learners": 1}


@pytest.fixture(scope="module")
def pole(trained_run: Callable[..., Trained]) -> Trained:
    return trained_run("ppo")


def touched(trained: Trained, **values: object) -> tuple[Images, Answer, Curves, Numbers]:
    picture, doing, curve, numbers = evaluate_probe(
        policy_rollout, trained, read_controls(policy_rollout, trained), values
    )
    return cast("Images", picture), doing, cast("Curves", curve), cast("Numbers", numbers)


def touched_judge(trained: Trained, **values: object) -> tuple[Bars, Bars, Curves, Numbers]:
    """The same of a run of DQN, whose network judges actions; without the picture."""
    _, doing, worth, curve, numbers = evaluate_probe(
        policy_rollout, trained, read_controls(policy_rollout, trained), values
    )
    return cast("Bars", doing), cast("Bars", worth), cast("Curves", curve), cast("Numbers", numbers)


def test_it_plays_as_the_trained_policy_does_in_its_world(pole: Trained) -> None:
    _, _, curve, numbers = touched(pole, step=MAX_STEPS, perturbation=0.0, learner=2, seed=3)
    model, worlds = cast("ActorCritic", pole.model), TensorEnvironments(CartPole(), 1)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(3)
        seen, values, over, steps = worlds.reset(), [], False, 0
        while not over and steps < MAX_STEPS:
            law, value = model(seen.expand(2, 1, -1))
            values.append(float(value[1, 0]))
            step = worlds.step(law.mode()[1])
            seen, steps, over = step.observation, steps + 1, bool(step.terminated)
    assert numbers.values["step"] == f"{steps} of {steps}"
    assert numbers.values["return of the episode"] == steps
    assert curve.lines["value"][1][:-1] == pytest.approx(values, abs=1e-5)


def test_the_answers_belong_to_the_step(pole: Trained) -> None:
    picture, doing, curve, numbers = touched(pole, step=4)
    assert picture.images.shape == (1, 3, HEIGHT, WIDTH)
    assert 0 <= float(picture.images.min()) < float(picture.images.max()) <= 1
    assert isinstance(doing, Bars)
    assert float(doing.values.sum()) == pytest.approx(1, abs=1e-6)
    assert doing.marked == int(doing.values.argmax())
    assert curve.marked == 4
    assert numbers.values["return so far"] == 4
    assert numbers.values["value of this state"] == curve.lines["value"][1][4]
    learner = read_controls(policy_rollout, pole)["learner"]
    assert isinstance(learner, IntSlider)
    assert learner.high == 2


def test_a_kick_is_felt_from_its_step_on(pole: Trained) -> None:
    calm, kicked = (touched(pole, perturbation=kick, perturbation_step=3)[2].lines["value"][1] for kick in (0.0, 1.0))
    assert calm[:3] == pytest.approx(kicked[:3], abs=1e-6)
    assert abs(calm[3] - kicked[3]) > 1e-4
    assert (
        touched(pole, perturbation=1.0, perturbation_step=3)[3].values["end of the episode"]
        == "pole fell or cart left the track"
    )


@pytest.mark.parametrize("name", ["trpo", "dqn"])  # which learn from rewards as they come
def test_what_followed_is_what_the_rewards_add_up_to(name: str, trained_run: Callable[[str], Trained]) -> None:
    """A reward of 1 a step up to the fall: (1 − γⁿ) / (1 − γ) with n steps left; and nothing after it."""
    agent = trained_run(name)
    *_, curve, numbers = evaluate_probe(
        policy_rollout, agent, read_controls(policy_rollout, agent), {"perturbation": 1.0, "perturbation_step": 3}
    )
    found = cast("Curves", curve).lines["discounted return"][1]
    gamma = cast("trpo.Experiment | dqn.Experiment", agent.experiment).gamma
    steps = len(found)
    assert cast("Numbers", numbers).values["return of the episode"] == steps < MAX_STEPS
    assert found == pytest.approx([(1 - gamma ** (steps - t)) / (1 - gamma) for t in range(steps)], rel=1e-5)


def test_a_critic_in_other_units_is_not_compared(trained_run: Callable[..., Trained]) -> None:
    curve = touched(trained_run("ppo", normalize=True))[2]
    assert list(curve.lines) == ["value"]
    assert "normalised rewards" in curve.about


def test_a_torque_has_a_density(trained_run: Callable[..., Trained]) -> None:
    _, doing, _, numbers = touched(trained_run("ppo", **SWINGING), step=50, perturbation=-0.5)
    assert isinstance(doing, Curves)
    torques, density = (torch.tensor(line) for line in doing.lines["density of the torque"])
    assert 0 < float(torch.trapezoid(density, torques)) <= 1
    assert -2 <= cast("float", doing.marked) <= 2
    assert numbers.values["end of the episode"] == "time limit"


@pytest.mark.parametrize("kind", JUDGES)
def test_the_values_of_actions_stand_beside_the_play(kind: str, trained_run: Callable[..., Trained]) -> None:
    """Every step takes the action with the largest Q of the learner asked for, from the state that led there."""
    judge = trained_run("dqn", **JUDGES[kind])
    experiment = cast("dqn.Experiment", judge.experiment)
    num_learners, epsilon, physics = (
        experiment.num_learners,
        experiment.exploration_final_eps,
        TENSOR_ENVIRONMENTS[experiment.env],
    )
    count = physics.actions.count
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(5)
        state = physics.start(1, torch.device("cpu"))
        for step in range(8):
            doing, worth, curve, numbers = touched_judge(
                judge, step=step, perturbation=0.0, learner=num_learners, seed=5
            )
            q = judge.model(physics.observe(state).float().expand(num_learners, 1, -1))[-1, 0]
            assert worth.values.tolist() == pytest.approx(q.tolist(), abs=1e-5)
            assert doing.marked == worth.marked == int(q.argmax())
            chances = [epsilon / count + (1 - epsilon) * (action == worth.marked) for action in range(count)]
            assert doing.values.tolist() == pytest.approx(chances, abs=1e-6)
            assert curve.lines["value"][1][step] == pytest.approx(float(q.max()), abs=1e-5)
            first, second = q.sort(descending=True).values[:2].tolist()
            assert numbers.values["gap of the two largest action values"] == pytest.approx(first - second, abs=1e-5)
            state = physics.move(state, q.argmax()[None]).state
    assert len(worth.names) == len(doing.names) == count
    control = read_controls(policy_rollout, judge)["learner"]
    assert isinstance(control, IntSlider)
    assert control.high == num_learners


def test_learners_judge_each_for_itself_and_feel_a_kick(trained_run: Callable[..., Trained]) -> None:
    judge = trained_run("dqn", dueling=True, num_learners=3)
    said = [touched_judge(judge, step=2, learner=learner)[1].values for learner in (1, 2, 3)]
    assert all(float((said[i] - said[j]).abs().max()) > 1e-4 for i, j in ((0, 1), (0, 2), (1, 2)))
    calm, kicked = (
        touched_judge(judge, perturbation=kick, perturbation_step=3)[2].lines["value"][1] for kick in (0.0, 1.0)
    )
    assert calm[:3] == pytest.approx(kicked[:3], abs=1e-6)
    assert abs(calm[3] - kicked[3]) > 1e-4
