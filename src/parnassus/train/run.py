"""Run: device, seed, progress, log, checkpoints and figures of an experiment; the experiment defines the loop."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from math import isfinite
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar, cast, overload, runtime_checkable

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from parnassus.data.seeds import derive_seed, derive_seeds
from parnassus.runs.errors import NotFiniteError, RunInterrupted
from parnassus.runs.folder import RunFolder
from parnassus.runs.metrics import Mark, Metrics, read_metrics
from parnassus.train import parallel
from parnassus.train.checkpoint import check_finite, load_tree, save_tree, save_weights
from parnassus.train.devices import autocast, choose_device, set_precision, set_threads
from parnassus.train.options import Options
from parnassus.train.progress import FolderProgress, LogProgress, ProgressListener, Ticker, user_progress
from parnassus.train.report_content import ReportContent
from parnassus.train.seeding import generator_seeder
from parnassus.train.training_state import Prepared, TrainingState, check_weights

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Batch = TypeVar("Batch", covariant=True)
Model = TypeVar("Model", bound=nn.Module)
Schedule = TypeVar("Schedule", bound=LRScheduler)
OptimizerFactory: TypeAlias = Callable[[Iterable[nn.Parameter]], Optimizer]
POINTS = 200
"""Approximate number of recorded points of a curve per loop: with 20,000 steps, every hundredth step is recorded."""
SYNC_STEPS = 16
"""Under torchrun, number of steps after which the processes check whether to save."""


@runtime_checkable
class BatchSource(Protocol[Batch]):
    """Batches that are a pure function of (seed, step)."""

    def __len__(self) -> int: ...

    def at(self, step: int, seed: int, rank: int, world_size: int) -> Batch: ...


class Run:
    """One run of an experiment in one folder; an interrupted run continues where it stopped.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from parnassus.runs import RunFolder
    >>> folder = RunFolder.create(Path(tempfile.mkdtemp()), "mine", {"experiment": "mine"})
    >>> run = Run(folder, Options(device="cpu", quiet=True))
    >>> for step, _ in run.steps(3):
    ...     run.log(step, loss=1 / (step + 1))
    >>> run.curve("loss")[0]
    [0, 1, 2]
    >>> run.close()
    """

    def __init__(self, folder: RunFolder, options: Options) -> None:
        self.folder = folder.path
        self.options = options
        self.seed = options.seed
        self.rank, self.world_size, local_rank = parallel.world_from_environment()
        self.device = choose_device(options.device, local_rank)
        self._interrupt = self._looping = False
        self._files = folder
        self._mode = options.parallel if self.world_size > 1 else None
        self._cores = torch.get_num_threads()
        torch.set_num_threads(options.threads or 1)  # increased by `prepare` for a large model
        self._loop = 0  # number of loops started
        self._position = (0, 0)  # next (loop, step)
        self._save_steps = options.save_steps
        self._log_every = 1
        self._latest: dict[str, float] = {}  # last recorded metrics of this loop
        self._seen: dict[str, Tensor | float] = {}  # metrics of the last step, not yet copied from the device
        self._content = ReportContent(folder, silent=self.rank > 0)
        set_precision(options.precision)
        if self._mode is not None:
            parallel.join(self.device)
        checkpoint = folder.file("checkpoint.safetensors")
        self._saved = cast("dict[str, object]", load_tree(checkpoint)) if checkpoint.exists() else {}
        self._state = TrainingState(self._mode, checkpoint, self._saved)
        self._resume = cast("tuple[int, int]", self._saved.get("position", (0, 0)))
        self._seconds = cast("float", self._saved.get("seconds", 0.0))
        self._began = time.perf_counter()
        self._save_at = self._began + options.save_seconds  # time of the next checkpoint
        mark = Mark(*cast("tuple[int, int]", self._saved["metrics"])) if self._saved else None
        self.metrics = Metrics(self.folder, mark) if self.rank == 0 else None
        self._ticker = Ticker(self._listeners())
        self._seed_generators = generator_seeder(self.device)
        self._seed_generators(derive_seed(self.seed))  # same seed on all ranks during model construction

    @property
    def seconds(self) -> float:
        """Total time of all sessions of this run so far."""
        return self._seconds + time.perf_counter() - self._began

    def build(self, factory: Callable[..., Model], **facts: object) -> Model:
        """Build a model by `factory(**facts)` and store `facts`, so that it can be rebuilt from the folder."""
        if self.rank == 0:
            self._files.write_json("model.json", facts)
        return factory(**facts)

    def store(self, name: str, content: Mapping[str, object]) -> None:
        """Write NAME.json to the folder, such as the preparation of a table that the trained model needs."""
        if self.rank == 0:
            self._files.write_json(f"{name}.json", content)

    @overload
    def prepare(self, model: Model, optimizer: OptimizerFactory) -> tuple[Model, Optimizer]: ...

    @overload
    def prepare(
        self, model: Model, optimizer: OptimizerFactory, schedule: Callable[[Optimizer], Schedule]
    ) -> tuple[Model, Optimizer, Schedule]: ...

    def prepare(
        self, model: Model, optimizer: OptimizerFactory, schedule: Callable[[Optimizer], Schedule] | None = None
    ) -> tuple[Model, Optimizer] | tuple[Model, Optimizer, Schedule]:
        """Move the model to the device, wrap it under torchrun, and build its optimiser and learning-rate schedule.

        A resumed run restores them when its next loop starts; before, they are as in a new run.
        """
        set_threads(model, self.device, self.options.threads, self._cores)
        placed: nn.Module = model.to(self.device)
        if self._mode is not None:
            placed = parallel.distribute(placed, self._mode)
        built = optimizer(placed.parameters())
        if schedule is None:
            self._state.add(Prepared(placed, built, None))
            return cast("Model", placed), built
        built_schedule = schedule(built)
        self._state.add(Prepared(placed, built, built_schedule))
        return cast("Model", placed), built, built_schedule

    def use_all_cores(self) -> None:
        """Use all cores for large computations outside a model; --threads takes precedence."""
        torch.set_num_threads(self.options.threads or self._cores)

    def keep(self, name: str, thing: parallel.Stateful) -> None:
        """Save `thing` with the checkpoints (a moving average, a buffer); a resumed run restores it like a model."""
        self._state.keep(name, thing)
        if self._looping:
            self._state.restore()

    def steps(self, batches: BatchSource[Batch] | int) -> Iterator[tuple[int, Batch]]:
        """Yield (step, batch) for each remaining step; seed before each step, save and report after it if due."""
        loop, self._loop = self._loop, self._loop + 1
        count = batches if isinstance(batches, int) else len(batches)
        start = count if loop < self._resume[0] else self._resume[1] if loop == self._resume[0] else 0
        self._state.restore()
        self._log_every = max(1, count // POINTS)
        self._position = (loop, start)
        self._latest, self._seen = {}, {}
        self._ticker.start(f"loop {loop + 1}" if loop else "training", start, count)
        self._looping = True
        seeds = derive_seeds(derive_seed(self.seed, self.rank, loop), start=start)
        try:
            for step, seed in zip(range(start, count), seeds, strict=False):
                self._seed_generators(seed)
                self._position = (loop, step)
                batch = None if isinstance(batches, int) else batches.at(step, self.seed, self.rank, self.world_size)
                yield step, cast("Batch", batch)
                self._position = (loop, step + 1)
                now = time.perf_counter()
                if now >= self._ticker.due:
                    self._ticker.tick(step + 1, now, self._live)
                if self._save_due(step, now):
                    self.checkpoint()
                    if self._interrupt:
                        raise RunInterrupted
        finally:
            self._ticker.stop(self._position[1], self._live)
            self._seed_generators(derive_seed(self.seed, loop, count))  # independent of the step of resumption
            self._looping = False
        self._position = (loop + 1, 0)
        if start < count:
            self.checkpoint()

    def update(self, optimizer: Optimizer, loss: Tensor) -> None:
        """Perform one optimisation step on `loss`."""
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    def autocast(self) -> AbstractContextManager[object]:
        """The context for computing the loss in the requested precision."""
        return autocast(self.device, self.options.precision)

    def log(self, step: int, **metrics: Tensor | float) -> None:
        """Record the metrics of this step if it is one of the recorded steps."""
        self._seen = metrics
        if step % self._log_every == 0:
            self.record(step, **metrics)

    def record(self, step: int, **metrics: Tensor | float) -> None:
        """Write metrics to metrics.csv and TensorBoard; under torchrun, their mean over the processes."""
        if self._position < self._resume:
            return  # already written before the interruption
        values = torch.tensor([_number(value) for value in metrics.values()], dtype=torch.float64)
        if self._mode is not None:
            values = parallel.mean_over_ranks(values.to(self.device)).cpu()
        named = dict(zip(metrics, values.tolist(), strict=True))
        self._check_finite(step, named)
        self._latest.update(named)
        if self.metrics is not None:
            self.metrics.append(step, named)

    def curve(self, name: str) -> tuple[list[int], list[float]]:
        """Recorded steps and values of a metric, including earlier sessions; identical on all processes."""
        found: tuple[list[int], list[float]] = [], []
        if self.metrics is not None:
            self.metrics.flush()
            found = read_metrics(self.metrics.path).get(name, found)
        return found if self._mode is None else parallel.broadcast_from_first(found)

    def figure(self, name: str, figure: "Figure", caption: str = "") -> None:
        """Save a figure as figures/NAME.svg and .png and show it in the report."""
        self._content.figure(name, figure, caption)

    def note(self, name: str, text: str) -> None:
        """Add paragraphs to the report, separated by blank lines."""
        self._content.add("note", name, text=text)

    def text(self, name: str, text: str, caption: str = "") -> None:
        """Add preformatted text to the report, such as text generated by a model."""
        self._content.add("text", name, text=text, caption=caption)

    def table(self, name: str, rows: Sequence[Mapping[str, str | float]], caption: str = "") -> None:
        """Add a table to the report: one mapping per row, with the columns as keys."""
        self._content.add("table", name, rows=[dict(row) for row in rows], caption=caption)

    def publish(self, model: nn.Module) -> None:
        """Save `model` as weights.safetensors, which `parnassus sample` and other programs load."""
        state = parallel.model_state(model, self._mode)
        if self.rank == 0:
            tensors = {name: cast("Tensor", value) for name, value in state.items()}
            check_finite(tensors)
            save_weights(self.folder / "weights.safetensors", tensors)

    def checkpoint(self) -> None:
        """Save the state needed to resume from this step; a collective call under torchrun."""
        state = self._state.collect()
        self._save_at = time.perf_counter() + self.options.save_seconds
        if self.metrics is None:
            return
        check_weights(state)
        position = {"position": self._position, "seconds": self.seconds, "metrics": self.metrics.sync()}
        save_tree(self.folder / "checkpoint.safetensors", {**position, **state})

    def finish(self, result: Mapping[str, float]) -> dict[str, float]:
        """Write the result, which marks the run as finished."""
        numbers = {name: _number(value) for name, value in result.items()}
        if not (self.folder / "weights.safetensors").exists() and self._state.prepared:
            self.publish(self._state.prepared[0].model)
        if self.metrics is not None:
            self.metrics.sync()  # before the result: a finished run must be complete
            self._files.write_json("result.json", {"result": numbers, "seconds": round(self.seconds, 2)})
        if self._mode is not None:
            parallel.barrier()
        return numbers

    def close(self) -> None:
        """Close the open files."""
        if self.metrics is not None:
            self.metrics.close()

    def stop_soon(self) -> bool:
        """Request that the loop saves and stops after the current step; False if no loop is running."""
        self._interrupt = self._looping
        return self._looping

    def _listeners(self) -> list[ProgressListener]:
        """The progress listeners; only the first process has any."""
        if self.metrics is None:
            return []
        listeners: list[ProgressListener] = [FolderProgress(self._files, self.metrics), LogProgress(self._files)]
        return listeners if self.options.quiet else [*listeners, user_progress()]

    def _live(self) -> dict[str, float]:
        """The metrics of the last step; metrics not logged in this step keep their last recorded value."""
        return self._latest | {name: _number(value) for name, value in self._seen.items()}

    def _save_due(self, step: int, now: float) -> bool:
        steps = self._save_steps
        due = self._interrupt or now >= self._save_at or (steps > 0 and (step + 1) % steps == 0)
        if self._mode is None:
            return due
        return (step + 1) % SYNC_STEPS == 0 and parallel.any_rank(due, self.device)

    def _check_finite(self, step: int, metrics: dict[str, float]) -> None:
        bad = [name for name, value in metrics.items() if not isfinite(value)]
        if not bad:
            return
        for each in self._state.prepared:
            for name, parameter in parallel.unwrap(each.model).named_parameters():
                check_finite({f"the weights {name} (step {step})": parameter.detach()})
        raise NotFiniteError(
            f"{', '.join(bad)} at step {step} is not finite: {metrics[bad[0]]}; all weights are finite"
        )


def _number(value: Tensor | float) -> float:
    return float(value.detach()) if isinstance(value, Tensor) else float(value)
