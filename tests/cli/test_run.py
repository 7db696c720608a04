"""`run`, `resume` and `sample`: flags, settings, error messages, and folders."""

import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cli.conftest import EXPERIMENT, Command
from parnassus.atlas.index import Atlas
from parnassus.cli.main import dispatch, main
from parnassus.cli.run import execute_and_print, find_recipe, has_no_progress, parse, with_profile
from parnassus.errors import UserError
from parnassus.runs import RunError, RunFolder, RunInterrupted
from parnassus.train import Options, Run
from parnassus.train.execute import start
from parnassus.train.trained import experiment_from

ATLAS = Atlas()
ENTRY = ATLAS.experiment(EXPERIMENT)
MODULE = importlib.import_module(ENTRY.module)


def test_run_prints_results_and_report_path(parnassus: Command, tmp_path: Path) -> None:
    completed = parnassus("run", "classifier_on_d", "--profile", "smoke", "--seed", "3", PARNASSUS_RUNS="elsewhere")
    assert completed.returncode == 0, completed.stderr
    (folder,) = (tmp_path / "elsewhere").iterdir()
    assert folder.name.startswith(f"{EXPERIMENT}-")
    assert not (tmp_path / "runs").exists()
    assert completed.stdout.splitlines()[-1] == f"report: {Path('elsewhere') / folder.name / 'report.html'}"
    for name in MODULE.expected:
        assert name.replace("_", " ") in completed.stdout
    assert "laptop profile" in completed.stdout
    assert "steps/s" in completed.stderr  # progress is written to standard error
    about = json.loads((folder / "run.json").read_text())
    assert (about["experiment"], about["profile"], about["options"]["seed"]) == (EXPERIMENT, "smoke", 3)
    assert about["command"] == "python -m parnassus run classifier_on_d --profile smoke --seed 3"
    assert (folder / "report.html").exists()
    listed = parnassus("runs", PARNASSUS_RUNS="elsewhere").stdout
    assert f"{folder.name}  finished" in listed


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--device", "abacus"], "device must be auto, cpu, cuda, cuda:N or mps; got 'abacus'"),
        (["--threads", "0"], "--threads must be at least 1; got 0"),
        (["--width", "0"], "--width must be at least 1; got 0 ("),
        (["--name", "a/b"], "--name must be a plain folder name; got 'a/b'"),
        (["--name", ".."], "--name must be a plain folder name; got '..'"),
        (["--profile", "huge"], f"{EXPERIMENT} has no profile 'huge'; available: laptop, "),
        (["--profile=huge"], f"{EXPERIMENT} has no profile 'huge'; available: laptop, "),
        (["--data", "no/such/folder", "--device", "cpu"], "no/such/folder"),
    ],
)
def test_invalid_values_raise_and_leave_no_folder(flags: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^[^\n]*$") as caught:
        dispatch(["run", EXPERIMENT, "--folder", str(tmp_path), "--quiet", *flags])
    assert message in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_crash_before_the_first_step_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(self: object, run: Run) -> dict[str, float]:
        raise RuntimeError("negative dimension")

    monkeypatch.setattr(MODULE.Experiment, "__call__", crash)
    with pytest.raises(RuntimeError, match="negative dimension"):
        dispatch(["run", EXPERIMENT, "--folder", str(tmp_path), "--device", "cpu", "--quiet"])
    assert list(tmp_path.iterdir()) == []


def test_invalid_device_exits_with_code_2(parnassus: Command) -> None:
    completed = parnassus("run", EXPERIMENT, "--device", "abacus")
    assert completed.returncode == 2
    assert completed.stderr == "parnassus: device must be auto, cpu, cuda, cuda:N or mps; got 'abacus'\n"


@pytest.mark.parametrize("flags", [["--nope"], ["--seed", "many"], ["--precision", "int3"], ["--profile"], ["extra"]])
def test_unparsable_flags_exit_with_code_2(
    flags: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as exit_info:
        dispatch(["run", EXPERIMENT, *flags])
    assert exit_info.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"parnassus run {EXPERIMENT} --help" in " ".join(printed.err.split())
    assert list(tmp_path.iterdir()) == []


def test_help_lists_every_flag_with_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        dispatch(["run", EXPERIMENT, "--help"])
    assert exit_info.value.code == 0
    output = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert " ".join(ENTRY.title.split()) in output
    for setting in ENTRY.settings:
        assert f"--{setting.name.replace('_', '-')}" in output
        assert setting.help in output
    for flag in ("--seed", "--device", "--precision", "--profile", "--name", "--folder", "--save-seconds"):
        assert flag in output


def test_flags_override_profile_defaults() -> None:
    smoke = with_profile(ENTRY, "smoke")
    name, value = next(iter(MODULE.profiles["smoke"].items()))
    experiment, options, launch = parse(ENTRY, ["--profile", "smoke", "--seed", "7"])
    assert experiment == smoke
    assert (options, launch.profile) == (Options(seed=7), "smoke")
    flag = f"--{name.replace('_', '-')}"
    changed, _, _ = parse(ENTRY, ["--profile=smoke", flag, str(value + 1)])
    assert changed == replace(smoke, **{name: value + 1})
    default, _, launch = parse(ENTRY, [])
    assert default == MODULE.Experiment()
    assert launch.profile == "laptop"


def test_experiment_is_restored_from_a_run_folder(runs: Path) -> None:
    about = RunFolder(runs / "seed-0").read_json("run.json")
    assert experiment_from(MODULE, about) == with_profile(ENTRY, "smoke")


def test_settings_of_another_version_raise_run_error() -> None:
    with pytest.raises(RunError, match="made by parnassus unknown, whose old had the settings gone, lost"):
        experiment_from(MODULE, {"experiment": "old", "settings": {"lost": 1, "gone": 2}})


def test_existing_name_raises_run_error(runs: Path) -> None:
    before = sorted(path.name for path in runs.iterdir())
    with pytest.raises(RunError, match="already exists: choose another --name, or resume it"):
        dispatch(["run", EXPERIMENT, "--folder", str(runs), "--name", "seed-0", "--device", "cpu", "--quiet"])
    assert sorted(path.name for path in runs.iterdir()) == before


def test_resuming_a_finished_run_raises_run_error(runs: Path) -> None:
    with pytest.raises(RunError, match="seed-0 is already finished"):
        dispatch(["resume", "seed-0", "--folder", str(runs)])


def test_sampling_without_a_generative_model_raises_run_error(runs: Path) -> None:
    with pytest.raises(RunError, match=f"seed-1 is a run of {EXPERIMENT}, which does not support `sample`"):
        dispatch(["sample", str(runs / "seed-1")])


def test_interrupted_run_prints_how_to_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(self: object, run: Run) -> dict[str, float]:
        raise RunInterrupted

    monkeypatch.setattr(MODULE.Experiment, "__call__", stop)
    recipe = find_recipe(ATLAS, ENTRY, MODULE.Experiment(), "laptop")
    options = Options(device="cpu", quiet=True)
    folder = start(recipe, options, tmp_path, name="mine")
    assert execute_and_print(recipe, options, folder) == 130
    assert "Resume with: parnassus resume mine" in capsys.readouterr().err
    assert folder.status == "interrupted"
    assert has_no_progress(folder)


def test_failed_run_with_a_checkpoint_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: object, run: Run) -> dict[str, float]:
        run.record(3, loss=1.0)
        run.checkpoint()
        raise RunError("it went wrong")

    monkeypatch.setattr(MODULE.Experiment, "__call__", fail)
    with pytest.raises(RunError, match="it went wrong"):
        dispatch(["run", EXPERIMENT, "--folder", str(tmp_path), "--name", "late", "--device", "cpu", "--quiet"])
    assert not has_no_progress(RunFolder.open(tmp_path / "late"))


def test_resumed_run_has_identical_results(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = ["--profile", "smoke", "--device", "cpu", "--quiet", "--folder", str(tmp_path), "--name", "again"]
    finish = Run.finish

    def stop(self: Run, result: dict[str, float]) -> dict[str, float]:
        raise RunInterrupted

    monkeypatch.setattr(Run, "finish", stop)
    assert dispatch(["run", EXPERIMENT, *flags]) == 130
    monkeypatch.setattr(Run, "finish", finish)
    assert dispatch(["resume", "last", "--folder", str(tmp_path)]) == 0
    resumed, uninterrupted = (
        json.loads((path / "result.json").read_text())["result"] for path in (tmp_path / "again", runs / "seed-0")
    )
    assert resumed == uninterrupted


def test_value_errors_of_an_experiment_are_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The parts of an experiment check their arguments, which come from flags."""
    flags = ["--width", "30", "--num-heads", "4", "--profile", "smoke", "--device", "cpu", "--quiet"]
    monkeypatch.setattr(sys, "argv", ["parnassus", "run", "gpt", *flags, "--folder", str(tmp_path)])
    with pytest.raises(SystemExit) as exit_info:
        main()
    assert exit_info.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("parnassus: ")
    assert "width must be" in line
    assert list(tmp_path.iterdir()) == []


def test_value_errors_of_the_library_are_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError("an internal error")

    monkeypatch.setattr("parnassus.cli.run.print_results", fail)
    flags = ["--profile", "smoke", "--device", "cpu", "--quiet", "--folder", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["parnassus", "run", "activation_functions", *flags])
    with pytest.raises(ValueError, match="an internal error"):
        main()


@pytest.mark.parametrize(
    ("name", "data", "title"),
    [
        ("pca_on_digits", "digits", "PCA of handwritten digits: explained variance and reconstruction errors"),
        ("pca_on_digits", "my/people.csv", "pca on people.csv"),
        ("shap_breast_cancer", "people.csv", "shap on people.csv"),
        ("vae", "photos", "vae on photos"),
    ],
)
def test_title_of_a_run_names_its_own_data(name: str, data: str, title: str) -> None:
    entry = ATLAS.experiment(name)
    experiment = replace(with_profile(entry, "smoke"), data=data)
    assert find_recipe(ATLAS, entry, experiment, "smoke").title.startswith(title)


def test_sizes_of_another_network_are_not_shown_as_a_formula() -> None:
    formulas = find_recipe(ATLAS, ENTRY, with_profile(ENTRY, "smoke"), "smoke").formulas
    assert formulas
    assert not any("784" in formula.text for formula in formulas)
