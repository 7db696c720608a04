"""Trained runs: models that no longer fit their run are refused with the version that made it."""

from collections.abc import Callable

import pytest

from parnassus import __version__
from parnassus.runs.errors import RunError
from parnassus.train.trained import TrainedRun

FACTS = {"shape": [1, 8, 8], "classes": ["a", "b"]}


def reopen(run: TrainedRun, **about: object) -> TrainedRun:
    run.folder.write_json("run.json", {"experiment": "classifier_on_digits", **about})
    return TrainedRun(run.folder, run.experiment)


def test_arguments_of_an_earlier_version_are_refused(untrained_run: Callable[..., TrainedRun]) -> None:
    run = untrained_run("classifier_on_digits", FACTS)
    run.folder.write_json("model.json", {**FACTS, "classes": 2})
    message = rf"cannot be rebuilt from model\.json: .*; the run was made by parnassus 0\.1\.0, this is {__version__}"
    with pytest.raises(RunError, match=message):
        _ = reopen(run, versions={"parnassus": "0.1.0"}).model
    run.folder.write_json("model.json", {"inputs": 64})
    with pytest.raises(RunError, match=message):
        _ = reopen(run, versions={"parnassus": "0.1.0"}).model


def test_weights_of_another_model_are_refused(untrained_run: Callable[..., TrainedRun]) -> None:
    run = untrained_run("classifier_on_digits", FACTS)
    run.folder.write_json("model.json", {**FACTS, "shape": [1, 4, 4]})
    with pytest.raises(RunError, match=rf"does not match the model: made by parnassus 0\.1\.0, this is {__version__}"):
        _ = reopen(run, versions={"parnassus": "0.1.0"}).model
    with pytest.raises(RunError, match=r"does not match the model: Error\(s\) in loading state_dict for Classifier"):
        _ = reopen(run, versions={"parnassus": __version__}).model
