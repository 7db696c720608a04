"""The commands at the end of a report exist, and follow from the declarations of the experiment."""

import importlib
from pathlib import Path

import pytest

from parnassus.atlas.index import load_atlas
from parnassus.runs.folder import RunFolder
from parnassus.train.next_commands import next_commands


def suggested(name: str, folder: Path = Path("runs/first")) -> set[str]:
    experiment = importlib.import_module(load_atlas().experiments[name].module).Experiment()
    return set(next_commands(name, experiment, RunFolder(folder)).values())


@pytest.mark.parametrize(
    ("name", "commands"),
    [
        ("gpt", {"parnassus sample first --prompt Once", "parnassus evaluate first"}),
        ("ppo", {"parnassus watch first", "parnassus evaluate first"}),
        (
            "shap_breast_cancer",
            {
                "parnassus predict first my.csv",
                "parnassus evaluate first --data OTHER",
                "parnassus explain --model first --data breast_cancer",
            },
        ),
        ("vae", {"parnassus sample first", "parnassus evaluate first --data OTHER"}),
        ("pca_on_digits", set()),
    ],
)
def test_commands_follow_from_the_declarations(name: str, commands: set[str]) -> None:
    assert suggested(name) == commands


def test_declared_verbs_are_suggested() -> None:
    experiments = [entry for entry in load_atlas().experiments.values() if entry.verbs]
    for entry in experiments[::12]:  # importing all of them takes long
        name = entry.name
        verbs = {command.split()[1] for command in suggested(name)}
        assert set(entry.verbs) <= verbs


def test_runs_of_other_folders_are_named_by_their_path() -> None:
    assert "parnassus watch 'my runs/first'" in suggested("ppo", Path("my runs/first"))
    assert next_commands("toy", object(), RunFolder(Path("runs/toy"))) == {}


def test_explain_is_not_suggested_for_folders_of_images(tmp_path: Path) -> None:
    module = importlib.import_module(load_atlas().experiments["classifier_on_digits"].module)
    for data, is_suggested in (("digits", True), (str(tmp_path), False)):
        commands = next_commands("classifier_on_digits", module.Experiment(data=data), RunFolder(Path("runs/first")))
        assert any(command.startswith("parnassus explain") for command in commands.values()) == is_suggested
