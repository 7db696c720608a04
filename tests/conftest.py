"""Shared fixtures: one torch thread, finished runs, and no network unless the test is marked `network`."""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from parnassus.train.trained import TrainedRun

os.environ.setdefault("OMP_NUM_THREADS", "1")  # also for the processes that tests start
os.environ.pop("PARNASSUS_RUNS", None)  # ignore the user's runs


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "network: opens sockets, on this machine only")
    config.addinivalue_line("markers", "slow: takes more than 2 s; run by `make slow`, not by `make test`")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the values that tests recorded by `record_property("measured", …)`."""
    for report in terminalreporter.stats.get("passed", []):
        for name, value in getattr(report, "user_properties", []):
            if name == "measured":
                terminalreporter.write_line(f"measured: {value}")


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    import torch

    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def trained_run(tmp_path_factory: pytest.TempPathFactory) -> "Callable[..., TrainedRun]":
    """A finished run of an experiment: the smoke profile with the given settings, executed once per session."""
    from parnassus.atlas.index import Atlas
    from parnassus.cli.run import find_recipe, with_profile
    from parnassus.train import Options
    from parnassus.train.execute import execute, start
    from parnassus.train.trained import TrainedRun

    atlas, opened = Atlas(), dict[str, TrainedRun]()

    def run(name: str, **settings: object) -> TrainedRun:
        key = f"{name} {settings}"
        if key not in opened:
            entry = atlas.experiment(name)
            experiment = with_profile(entry, "smoke", settings)
            recipe = find_recipe(atlas, entry, experiment, "smoke")
            options = Options(device="cpu", quiet=True)
            folder = start(recipe, options, tmp_path_factory.mktemp("runs"))
            execute(recipe, options, folder)
            opened[key] = TrainedRun.open(folder)
        return opened[key]

    return run


@pytest.fixture(scope="session")
def untrained_run(tmp_path_factory: pytest.TempPathFactory) -> "Callable[..., TrainedRun]":
    """A run with the initial weights of the smoke profile, for tests of `Predict` that do not depend on training.

    `facts` are the arguments of the experiment's `model`; `test_experiments.py` rebuilds the models of real runs.
    """
    import torch

    from parnassus.atlas.index import Atlas
    from parnassus.cli.run import with_profile
    from parnassus.runs.folder import RunFolder
    from parnassus.train.checkpoint import save_weights
    from parnassus.train.trained import TrainedRun

    def run(name: str, facts: dict[str, object], **settings: object) -> TrainedRun:
        experiment: Any = with_profile(Atlas().experiment(name), "smoke", settings)
        folder = RunFolder.create(tmp_path_factory.mktemp("untrained"), name, {"experiment": name})
        folder.write_json("model.json", facts)
        torch.manual_seed(0)
        save_weights(folder.path / "weights.safetensors", experiment.model(**facts).state_dict())
        return TrainedRun(folder, experiment)

    return run


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two finished runs that differ in their seed."""
    from parnassus.cli.main import dispatch

    root = tmp_path_factory.mktemp("runs")
    for seed in ("0", "1"):
        flags = ["--profile", "smoke", "--device", "cpu", "--quiet", "--folder", str(root)]
        assert dispatch(["run", "classifier_on_digits", *flags, "--seed", seed, "--name", f"seed-{seed}"]) == 0
    return root


@pytest.fixture(scope="session")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs of PPO: two learners on CartPole, and one on Pendulum."""
    from parnassus.cli.main import dispatch

    root = tmp_path_factory.mktemp("agents")
    flags = ["--profile", "smoke", "--device", "cpu", "--quiet", "--folder", str(root)]
    assert dispatch(["run", "ppo", *flags, "--name", "two"]) == 0
    pendulum = ["--env", "Pendulum-v1", "--num-learners", "1", "--n-steps", "64", "--batch-size", "64"]
    assert dispatch(["run", "ppo", *flags, *pendulum, "--name", "one"]) == 0
    return root


@pytest.fixture(autouse=True)
def no_network(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail a test that opens a connection, and name the address; local Unix sockets are allowed."""
    if request.node.get_closest_marker("network") is not None:
        return
    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, _guard(getattr(socket.socket, name)))
    for name in ("create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, _refuse)


def _guard(call: Callable[..., object]) -> Callable[..., object]:
    unix_family = getattr(socket, "AF_UNIX", None)  # not available on Windows

    def connect(self: socket.socket, address: object) -> object:
        return call(self, address) if self.family == unix_family else _refuse(address)

    return connect


def _refuse(*address: object, **_: object) -> object:
    raise AssertionError(f"a test without the marker `network` tried to connect to {address}")
