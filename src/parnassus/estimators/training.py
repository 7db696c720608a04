"""Training of the networks of estimators: a run in a temporary folder, with its progress, seeds and checks."""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn
from torch.optim import Adam

from parnassus.data.splits import Split
from parnassus.estimators.inline_figure import InlineFigure
from parnassus.report.plots import curves
from parnassus.runs.folder import RunFolder
from parnassus.train import Options, Run, descend

Model = TypeVar("Model", bound=nn.Module)


@contextmanager
def training_run(random_state: int, device: str, *, verbose: bool) -> Iterator[Run]:
    """A run whose files are deleted; the state of torch's random numbers and its threads are restored afterwards."""
    options = Options(seed=random_state, device=device, quiet=not verbose, save_seconds=inf)
    with TemporaryDirectory() as root, temporary_seed(random_state):
        threads = torch.get_num_threads()
        run = Run(RunFolder.create(Path(root), "fit", {}), options)
        try:
            yield run
        finally:
            run.close()
            torch.set_num_threads(threads)


@contextmanager
def temporary_seed(random_state: int | None) -> Iterator[None]:
    """Random numbers from this seed, without an effect on later ones; None uses torch's current state."""
    if random_state is None:
        yield
        return
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(random_state)
        yield


class Trained:
    """An estimator whose network is trained by Adam on mini-batches; `loss_curve_` holds the recorded losses."""

    steps: int
    batch_size: int
    learning_rate: float
    random_state: int
    device: str
    verbose: bool

    def plot_loss(self) -> InlineFigure:
        """The training loss of the last fit."""
        check_is_fitted(self, "loss_curve_")
        line = {"training loss": (self.loss_steps_, self.loss_curve_)}
        return InlineFigure(curves(line, x_label="gradient step", y_label="loss", smooth=True))

    def _train(self, build: Callable[[], Model], x: Tensor, y: Tensor | None = None) -> Model:
        """A trained network, on the CPU in double precision: its outputs do not depend on the rows beside them."""
        with training_run(self.random_state, self.device, verbose=self.verbose) as run:
            split = Split(x, y).to(run.device)
            model, optimizer = run.prepare(build(), partial(Adam, lr=self.learning_rate))
            batches = (split.batches if y is None else split.pairs)(self.batch_size, self.steps)
            for step, loss in descend(run, model, optimizer, batches):  # type: ignore[arg-type]  # either kind of batch
                run.log(step, loss=loss)
            self.loss_steps_, self.loss_curve_ = run.curve("loss")
        return copy.deepcopy(model).to(device="cpu", dtype=torch.float64).eval()
