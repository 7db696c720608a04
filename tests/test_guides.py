"""The examples of the guides in docs/ run as they are printed."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


def examples(guide: str) -> list[str]:
    """The Python blocks of a guide."""
    found: list[str] = re.findall(r"```python\n(.*?)```", (DOCS / guide).read_text(encoding="utf-8"), re.DOTALL)
    return found


@pytest.mark.parametrize("code", examples("estimators.md"), ids=lambda code: re.findall(r"import (\w+)", code)[-1])
def test_examples_of_the_estimators_run(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "estimators.md", "exec"), {"__name__": "example"})


def test_examples_of_the_estimators_have_at_most_ten_lines_of_code() -> None:
    for code in examples("estimators.md"):
        lines = [line for line in code.splitlines() if line and not line.startswith(("import ", "from "))]
        assert len(lines) <= 10, code


def start_script(folder: Path, steps: int) -> "subprocess.Popen[str]":
    """The script of the guide, started in `folder`."""
    (script,) = examples("training_scripts.md")
    (folder / "my_digits.py").write_text(script, encoding="utf-8")
    command = [sys.executable, "my_digits.py", str(steps)]
    environment = {**os.environ, "PYTHONPATH": str(DOCS.parent / "src")}
    return subprocess.Popen(
        command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def test_a_script_is_resumed_with_the_results_of_an_uninterrupted_run(tmp_path: Path) -> None:
    results = []
    for name in ("whole", "interrupted"):
        (folder := tmp_path / name).mkdir()
        process = start_script(folder, 3_000)
        if name == "interrupted":
            while not (folder / "runs/my_digits/progress.json").exists():
                assert process.poll() is None, process.communicate()
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
            assert process.returncode != 0
            assert not (folder / "runs/my_digits/result.json").exists()
            process = start_script(folder, 3_000)
        output, error = process.communicate(timeout=120)
        assert process.returncode == 0, error
        results.append(json.loads((folder / "runs/my_digits/result.json").read_text())["result"])
        assert "test_accuracy" in output
        assert (folder / "runs/my_digits/report.html").exists()
    assert results[0] == results[1]
    assert results[0]["test_accuracy"] > 0.9
