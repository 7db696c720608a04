"""Training of estimators: no effect on the caller's random numbers and files, and progress in notebooks."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console

from parnassus.estimators import Classifier, InlineFigure
from parnassus.runs.progress import Progress
from parnassus.train import progress as module
from parnassus.train.progress import ConsoleProgress, NotebookProgress, user_progress

X = np.random.default_rng(0).normal(size=(40, 3))
Y = (X[:, 0] > 0).astype(int)


def fitted(**settings: Any) -> Classifier:
    return Classifier(hidden=(4,), steps=20, device="cpu", **settings).fit(X, Y)


def test_a_fit_restores_random_numbers_threads_and_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    threads = torch.get_num_threads()
    fitted(verbose=False)
    assert torch.equal(torch.rand(3), expected)
    assert torch.get_num_threads() == threads
    assert not list(tmp_path.iterdir())


def test_equal_seeds_give_equal_fits_and_others_do_not() -> None:
    first, again, other = (fitted(verbose=False, random_state=seed).predict_proba(X) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.allclose(first, other)


def test_progress_is_shown_unless_not_verbose(capsys: pytest.CaptureFixture[str]) -> None:
    fitted()
    assert "20/20" in capsys.readouterr().err
    fitted(verbose=False)
    assert capsys.readouterr().err == ""


def test_losses_are_plotted_inline(tmp_path: Path) -> None:
    model = fitted(verbose=False)
    assert len(model.loss_curve_) == len(model.loss_steps_) == 20
    figure = model.plot_loss()
    assert isinstance(figure, InlineFigure)
    assert figure._repr_html_().lstrip().startswith("<svg")
    figure.save(tmp_path / "loss")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["loss.png", "loss.svg"]


class DisplayedLine:
    """Stands for IPython's handle of an output."""

    def __init__(self, shown: list[str], html: str) -> None:
        self.shown = shown
        shown.append(html)

    def update(self, html: str) -> None:
        self.shown[-1] = html


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The outputs of a cell."""
    shown: list[str] = []
    display: Any = ModuleType("IPython.display")
    display.HTML = str
    display.display = lambda html, display_id: DisplayedLine(shown, html)
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(module, "terminal", lambda: Console(force_jupyter=True))
    return shown


def test_notebooks_show_one_line_per_loop_that_is_updated(notebook: list[str]) -> None:
    listener = user_progress()
    assert isinstance(listener, NotebookProgress)
    for done in (5, 10):
        listener.show(Progress("training", done, 10, metrics={"loss": 0.25}), last=done == 10)
    assert len(notebook) == 1
    assert '<progress value="10" max="10"></progress> training 10/10' in notebook[0]
    assert "loss 0.25" in notebook[0]
    listener.show(Progress("loop <2>", 1, 4), last=False)
    assert len(notebook) == 2
    assert "loop &lt;2&gt; 1/4" in notebook[1]


def test_fits_show_their_progress_in_notebooks(notebook: list[str]) -> None:
    fitted()
    assert len(notebook) == 1
    assert "20/20" in notebook[0]


def test_terminals_show_a_line() -> None:
    assert isinstance(user_progress(), ConsoleProgress)
