"""The command line: start-up imports, error messages, exit codes, closed pipes."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cli.conftest import Command, clean_environment
from parnassus import __version__
from parnassus.atlas.index import UnknownError
from parnassus.cli.error_messages import user_error_message
from parnassus.cli.main import dispatch, limit_thread_spinning, main
from parnassus.data import DataError
from parnassus.runs import NotFiniteError, RunError

PROGRAM = """
import sys
from parnassus.cli.main import main
sys.argv = ["parnassus", *sys.argv[1:]]
try:
    main()
finally:
    assert not {"torch", "matplotlib", "sklearn"} & set(sys.modules)
"""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--help"], 0),
        (["--version"], 0),
        (["list"], 0),
        (["show", "B1.1-1"], 0),
        (["atlas"], 0),
        (["check", "--help"], 0),
        (["run", "no_such_experiment"], 2),
        (["check", "NOPE"], 2),
        (["show", "nope"], 2),
    ],
)
def test_simple_commands_do_not_import_heavy_packages(arguments: list[str], code: int) -> None:
    completed = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=False)
    assert completed.returncode == code, completed.stderr
    assert "Traceback" not in completed.stderr


def test_no_verb_prints_help(parnassus: Command) -> None:
    completed = parnassus()
    assert completed.returncode == 0
    for verb in ("list", "show", "run", "check", "atlas", "runs", "resume", "sample", "explain", "doctor"):
        assert f"• {verb} " in completed.stdout
    assert max(len(line) for line in completed.stdout.splitlines()) <= 80


def test_version_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["--version"]) == 0
    assert capsys.readouterr().out == f"{__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["chek"], "unknown verb: 'chek' (did you mean check?); see: parnassus --help"),
        (["run", "pca_on_digit5x"], "unknown experiment: 'pca_on_digit5x' (did you mean pca_on_digits"),
        (
            ["run", "classifier"],
            "'classifier' is ambiguous; it matches classifier_guidance_on_digits, classifier_on_digits, ",
        ),
        (
            ["show", "latemt"],
            "'latemt' is not an id, an experiment, a subject, a data set or a symbol (did you mean latent",
        ),
        (["check", "NOPE"], "'NOPE' is not an id, a part of one, a subject or a claim"),
        (["atlas", "B99"], "no row matches 'B99'"),
        (["list", "nowhere"], "no subject 'nowhere' has experiments; those that have: "),
        (["runs", "compare"], "compare needs at least two runs; got 0"),
        (["resume", "nothing"], "'nothing' is not a run in runs; the latest are: none"),
        (["sample", "last"], "'last' is not a run in runs; the latest are: none"),
    ],
)
def test_invalid_input_exits_with_one_line_and_code_2(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["parnassus", *arguments])
    with pytest.raises(SystemExit) as exit_info:
        main()
    assert exit_info.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    assert line.startswith(f"parnassus: {message}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments", [["list", "--nope"], ["atlas", "--jsom"], ["resume"], ["doctor", "extra"], ["runs", "burn"]]
)
def test_unknown_flags_exit_with_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        dispatch(arguments)
    assert exit_info.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "--help" in printed.err


@pytest.mark.parametrize("verb", ["run", "sample"])
def test_verb_without_name_prints_usage(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch([verb]) == 2
    assert capsys.readouterr().err.startswith(f"usage: parnassus {verb} ")
    assert dispatch([verb, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"usage: parnassus {verb} ")


@pytest.mark.parametrize("arguments", [("list",), ("atlas", "--json"), ("atlas", "Z1", "--json"), ("show", "B1")])
def test_closed_pipe_causes_no_error_output(arguments: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "parnassus", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_environment()) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()  # before anything is written
        assert process.stderr.read() == b""
        assert process.wait() in (0, 1)


def test_pipe_can_be_closed_after_one_line() -> None:
    command = [sys.executable, "-m", "parnassus", "atlas", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_environment()) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"[\n"
        process.stdout.close()
        assert process.stderr.read() == b""


def disk_full_error() -> OSError:
    return OSError(28, "No space left on device", "runs/x/metrics.csv")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (UnknownError("no such thing"), "no such thing"),
        (RunError("in use"), "in use"),
        (NotFiniteError("loss is nan"), "loss is nan"),
        (DataError("too short"), "too short"),
        (ValueError("an internal error"), None),
        (disk_full_error(), "the disk is full: runs/x/metrics.csv; free some space, then resume the run"),
        (PermissionError(13, "Permission denied", "/runs"), "/runs: Permission denied"),
        (MemoryError("no room"), "out of memory: no room; try a smaller batch or another --device"),
        (KeyError("an internal error"), None),
        (AssertionError("an internal error"), None),
    ],
)
def test_expected_errors_have_a_one_line_message(error: Exception, message: str | None) -> None:
    assert user_error_message(error) == message


def test_device_out_of_memory_has_a_one_line_message() -> None:
    import torch

    assert str(user_error_message(torch.cuda.OutOfMemoryError("tried to allocate\nmore"))).startswith(
        "out of memory: tried"
    )


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (
            ["sample", "last", "--num-samples", "4000000", "--seed", "9000000"],
            r"reduce --num-samples 4000000, for .* to \d+",
        ),
        (["run", "gpt", "--batch-size=100000", "--width", "64"], r"reduce --batch-size 100000, for example to \d+"),
        (["run", "gpt"], "try a smaller --batch-size or smaller data"),
    ],
)
def test_memory_refused_by_the_allocator_states_what_fits(arguments: list[str], advice: str) -> None:
    import torch

    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**42, dtype=torch.float32)
    message = user_error_message(caught.value, arguments)
    assert re.fullmatch(
        rf"out of memory: 17\.6 TB were requested and [\d.]+ [MGT]B are available; {advice}", str(message)
    )
    assert user_error_message(RuntimeError("shapes do not match"), arguments) is None


def test_a_tensor_file_that_cannot_be_written_has_a_one_line_message(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, limits[1]))  # writing fails like on a full disk
    try:
        with pytest.raises(SafetensorError) as caught:
            save_file({"x": torch.zeros(100_000)}, tmp_path / "x.safetensors")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    message = str(user_error_message(caught.value))
    assert message.startswith("a file of tensors cannot be read or written: ")
    assert message.endswith("; check the file and the free space")
    assert "\n" not in message


def test_too_many_nested_values_have_a_one_line_message() -> None:
    with pytest.raises(RecursionError) as caught:
        json.loads("[" * 100_000)
    assert str(user_error_message(caught.value)).startswith("a file or an argument is nested too deeply")


def test_debug_variable_shows_the_traceback(parnassus: Command) -> None:
    assert "Traceback" in parnassus("show", "nope", PARNASSUS_DEBUG="1").stderr


def test_keyboard_interrupt_exits_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("parnassus.cli.main.dispatch", interrupt)
    with pytest.raises(SystemExit) as exit_info:
        main()
    assert exit_info.value.code == 130


def test_limit_spinning_respects_existing_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
        monkeypatch.delenv(name, raising=False)
    limit_thread_spinning()
    assert int(os.environ.pop("GOMP_SPINCOUNT")) <= 1_000
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    limit_thread_spinning()
    assert "GOMP_SPINCOUNT" not in os.environ
