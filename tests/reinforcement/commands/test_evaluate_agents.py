"""`parnassus evaluate`: the returns of trained agents in a table or as JSON, and a sentence for other runs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
import torch

from parnassus.cli.main import dispatch
from parnassus.reinforcement.commands.trained_agents import MAX_ENVIRONMENTS, find_agents
from parnassus.reinforcement.evaluation.episode_returns import interquartile_mean
from parnassus.runs.errors import RunError
from parnassus.train.trained import Trained


def evaluated(capsys: pytest.CaptureFixture[str], root: Path, *arguments: str) -> list[dict[str, object]]:
    """What `parnassus evaluate … --json` prints."""
    capsys.readouterr()
    assert dispatch(["evaluate", *arguments, "--device", "cpu", "--folder", str(root), "--json"]) == 0
    return cast("list[dict[str, object]]", json.loads(capsys.readouterr().out))


def test_the_numbers_are_those_of_the_learners(agents: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = evaluated(capsys, agents, "two", "--episodes", "6")
    means = torch.tensor(cast("list[float]", found["means"]), dtype=torch.float64)
    assert len(means) == found["learners"] == 2
    assert found["mean"] == pytest.approx(float(means.mean()))
    assert found["std"] == pytest.approx(float(means.std()))
    assert found["iqm"] == pytest.approx(float(interquartile_mean(means)))
    assert [found["ci_low"], found["ci_high"]] == pytest.approx([float(means.min()), float(means.max())])
    returns = find_agents("two", agents, device="cpu").returns(6, seed=0)
    torch.testing.assert_close(returns.mean(1), means)
    assert 8 <= float(returns.min()) <= float(returns.max()) <= 500


def test_it_repeats_itself_and_seeds_and_drawing_count(agents: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ways = [[], [], ["--seed", "1"], ["--sample-actions"]]
    first, again, other, drawn = (
        evaluated(capsys, agents, "two", "--episodes", "20", *more)[0]["means"] for more in ways
    )
    assert first == again
    assert first != other
    assert first != drawn


def test_many_episodes_come_in_rounds(agents: Path) -> None:
    player = find_agents("two", agents, device="cpu")
    assert player.returns(MAX_ENVIRONMENTS // 2 + 1, seed=0).shape == (2, MAX_ENVIRONMENTS // 2 + 1)


def test_several_runs_stand_in_one_table(
    agents: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert dispatch(["evaluate", "two", "one", "--episodes", "3", "--device", "cpu", "--folder", str(agents)]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert " ".join(head.split()) == "run env learners episodes mean std iqm ci low ci high solved"
    assert lines[0].split()[:4] == ["two", "CartPole-v1", "2", "3"]
    assert lines[1].split()[:4] == ["one", "Pendulum-v1", "1", "3"]
    assert lines[1].split()[5] == "—"  # one learner has no standard deviation


def test_runs_that_differ_in_their_seed_alone_are_also_taken_together(
    agents: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--profile", "smoke", "--device", "cpu", "--quiet", "--folder", str(agents)]
    assert dispatch(["run", "ppo", *flags, "--seed", "1", "--name", "more"]) == 0
    first, _, other, again, together = evaluated(capsys, agents, "two", "one", "more", "two", "--episodes", "3")
    assert together["run"] == "two + more"  # each seed once
    assert together["means"] == [*cast("list[float]", first["means"]), *cast("list[float]", other["means"])]
    assert first == again
    assert together["learners"] == 4


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["two", "--episodes", "0"], "--episodes must be at least 1; got 0"),
        (["two", "--seed", "-1"], "--seed must be at least 0; got -1"),
        (["nobody"], "nobody"),
    ],
)
def test_what_cannot_be_played_is_told(agents: Path, arguments: list[str], sentence: str) -> None:
    with pytest.raises(RunError, match=sentence):
        dispatch(["evaluate", *arguments, "--folder", str(agents)])


def test_a_run_of_an_experiment_without_evaluation_raises(trained_run: Callable[..., Trained]) -> None:
    run = trained_run("activation_functions").folder.path
    with pytest.raises(RunError, match="is a run of activation_functions, which does not know `evaluate`"):
        dispatch(["evaluate", run.name, "--folder", str(run.parent)])
