"""`parnassus evaluate`: returns of trained agents as a table or as JSON."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
import torch

from parnassus.cli.main import dispatch
from parnassus.errors import UserError
from parnassus.reinforcement.commands.trained_agents import MAX_ENVIRONMENTS, find_agents
from parnassus.reinforcement.evaluation.episode_returns import interquartile_mean
from parnassus.runs.errors import RunError
from parnassus.train.trained import TrainedRun


def evaluate_json(capsys: pytest.CaptureFixture[str], root: Path, *arguments: str) -> list[dict[str, object]]:
    """Parsed output of `parnassus evaluate … --json`."""
    capsys.readouterr()
    assert dispatch(["evaluate", *arguments, "--device", "cpu", "--folder", str(root), "--json"]) == 0
    return cast("list[dict[str, object]]", json.loads(capsys.readouterr().out))


def test_statistics_are_computed_over_learners(agents: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (result,) = evaluate_json(capsys, agents, "two", "--n-eval-episodes", "6")
    means = torch.tensor(cast("list[float]", result["means"]), dtype=torch.float64)
    assert len(means) == result["learners"] == 2
    assert result["mean"] == pytest.approx(float(means.mean()))
    assert result["std"] == pytest.approx(float(means.std()))
    assert result["iqm"] == pytest.approx(float(interquartile_mean(means)))
    assert [result["ci_low"], result["ci_high"]] == pytest.approx([float(means.min()), float(means.max())])
    returns = find_agents("two", agents, device="cpu").returns(6, seed=0)
    torch.testing.assert_close(returns.mean(1), means)
    assert 8 <= float(returns.min()) <= float(returns.max()) <= 500


def test_evaluation_is_reproducible_and_depends_on_seed_and_sampling(
    agents: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flag_sets = [[], [], ["--seed", "1"], ["--stochastic"]]
    first, repeated, other_seed, sampled = (
        evaluate_json(capsys, agents, "two", "--n-eval-episodes", "20", *flags)[0]["means"] for flags in flag_sets
    )
    assert first == repeated
    assert first != other_seed
    assert first != sampled


def test_many_episodes_are_evaluated_in_chunks(agents: Path) -> None:
    trained = find_agents("two", agents, device="cpu")
    assert trained.returns(MAX_ENVIRONMENTS // 2 + 1, seed=0).shape == (2, MAX_ENVIRONMENTS // 2 + 1)


def test_several_runs_are_listed_in_one_table(
    agents: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert (
        dispatch(["evaluate", "two", "one", "--n-eval-episodes", "3", "--device", "cpu", "--folder", str(agents)]) == 0
    )
    header, *lines = capsys.readouterr().out.splitlines()
    assert " ".join(header.split()) == "run env learners n eval episodes mean std iqm ci low ci high solved"
    assert lines[0].split()[:4] == ["two", "CartPole-v1", "2", "3"]
    assert lines[1].split()[:4] == ["one", "Pendulum-v1", "1", "3"]
    assert lines[1].split()[5] == "—"  # one learner has no standard deviation


def test_runs_that_differ_only_in_their_seed_are_also_pooled(agents: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--profile", "smoke", "--device", "cpu", "--quiet", "--folder", str(agents)]
    assert dispatch(["run", "ppo", *flags, "--seed", "1", "--name", "more"]) == 0
    first, _, other, repeated, pooled = evaluate_json(
        capsys, agents, "two", "one", "more", "two", "--n-eval-episodes", "3"
    )
    assert pooled["run"] == "two + more"  # without duplicate seeds
    assert pooled["means"] == [*cast("list[float]", first["means"]), *cast("list[float]", other["means"])]
    assert first == repeated
    assert pooled["learners"] == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["two", "--n-eval-episodes", "0"], "--n-eval-episodes must be at least 1; got 0"),
        (["two", "--seed", "-1"], "--seed must be at least 0; got -1"),
        (["nobody"], "nobody"),
    ],
)
def test_invalid_arguments_raise_user_error(agents: Path, arguments: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        dispatch(["evaluate", *arguments, "--folder", str(agents)])


def test_experiment_without_evaluation_raises_run_error(trained_run: Callable[..., TrainedRun]) -> None:
    run = trained_run("activation_functions").folder.path
    with pytest.raises(RunError, match="is a run of activation_functions, which does not support `evaluate`"):
        dispatch(["evaluate", run.name, "--folder", str(run.parent)])
