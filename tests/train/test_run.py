"""Runs of a toy experiment: seeding, logging, checkpoints and resuming."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam
from torch.optim.lr_scheduler import OneCycleLR
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from parnassus.data import Split
from parnassus.data.seeds import derive_seed, derive_seeds
from parnassus.runs import NotFiniteError, RunError, RunFolder, RunInterrupted
from parnassus.runs.metrics import read_metrics
from parnassus.train import Options, Run, at_least, between, descend
from parnassus.train.devices import Precision
from parnassus.train.execute import Recipe, execute, start

OPTIONS = Options(quiet=True, device="cpu")


class LinearModel(nn.Module):
    """y ≈ a x with random noise added to each batch."""

    def __init__(self) -> None:
        super().__init__()
        self.slope = nn.Parameter(torch.randn(3))

    def loss(self, x: Tensor) -> Tensor:
        return ((x + 0.1 * torch.randn_like(x)) @ self.slope - x.sum(1)).square().mean()


@dataclass(frozen=True)
class Experiment:
    """Two training loops with an evaluation between them and an optional failure at `fail_at`."""

    steps: int = 40
    fail_at: tuple[int, int] = (-1, -1)  # (loop, step)
    diverge: bool = False

    def __call__(self, run: Run) -> Mapping[str, float]:
        data = Split(torch.randn(50, 3, generator=torch.Generator().manual_seed(0)))
        first, first_step = run.prepare(LinearModel(), partial(Adam, lr=0.05))
        self._train(run, 0, first, first_step, data)
        run.record(0, between=torch.randn(()))
        second, second_step = run.prepare(LinearModel(), partial(SGD, lr=1e30 if self.diverge else 0.05, momentum=0.9))
        self._train(run, 1, second, second_step, data)
        return {
            "first": float(first.slope.detach().sum()),
            "second": float(second.slope.detach().sum()),
            "noise": float(torch.randn(())),
        }

    def _train(self, run: Run, loop: int, model: LinearModel, optimizer: torch.optim.Optimizer, data: Split) -> None:
        for step, loss in descend(run, model, optimizer, data.batches(8, self.steps)):
            run.log(step, **{f"{loop}_loss": loss})
            if (loop, step) == self.fail_at:
                raise ZeroDivisionError


def run_to_end(experiment: Experiment, root: Path, options: Options = OPTIONS) -> tuple[dict[str, float], RunFolder]:
    recipe = Recipe("toy", "A toy", experiment, {})
    folder = start(recipe, options, root)
    try:
        return execute(recipe, options, folder), folder
    except ZeroDivisionError:
        without_failure = replace(recipe, experiment=replace(experiment, fail_at=(-1, -1)))
        return execute(without_failure, options, folder), folder


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, float], RunFolder]:
    return run_to_end(Experiment(), tmp_path_factory.mktemp("uninterrupted"))


@pytest.mark.parametrize("fail_at", [(0, 0), (0, 17), (0, 39), (1, 0), (1, 25), (1, 39)])
@pytest.mark.parametrize("save_steps", [1, 7, 0])
def test_resume_is_bit_identical(
    tmp_path: Path, uninterrupted: tuple[dict[str, float], RunFolder], fail_at: tuple[int, int], save_steps: int
) -> None:
    resumed, folder = run_to_end(Experiment(fail_at=fail_at), tmp_path, replace(OPTIONS, save_steps=save_steps))
    assert resumed == uninterrupted[0]
    for name in ("metrics.csv", "weights.safetensors"):
        assert (folder.path / name).read_bytes() == (uninterrupted[1].path / name).read_bytes()


def test_different_seeds_give_different_results(tmp_path: Path) -> None:
    first, _ = run_to_end(Experiment(), tmp_path)
    second, _ = run_to_end(Experiment(), tmp_path, replace(OPTIONS, seed=1))
    assert all(first[name] != second[name] for name in first)


def test_mixed_seeds_are_distinct_and_unbiased() -> None:
    seeds = [derive_seed(seed, step) for seed in range(100) for step in range(100)]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**63 for seed in seeds)
    low_bits = torch.tensor([seed & 1 for seed in seeds], dtype=torch.float64)
    assert abs(float(low_bits.mean()) - 0.5) < 0.02


def test_seeds_of_consecutive_steps_equal_single_seeds() -> None:
    for first in (0, 7, 2**62):  # 2,000 seeds are more than one block
        seeds = list(islice(derive_seeds(9, 2**63 - 1, start=first), 2_000))
        assert seeds == [derive_seed(9, 2**63 - 1, first + step) for step in range(2_000)]


def test_divergence_raises_not_finite_error(tmp_path: Path) -> None:
    with pytest.raises(NotFiniteError, match=r"the weights slope \(step \d+\)|1_loss at step"):
        run_to_end(Experiment(diverge=True), tmp_path)
    (folder,) = tmp_path.glob("toy-*")
    metrics = read_metrics(folder / "metrics.csv")
    assert all(torch.tensor(values).isfinite().all() for _, values in metrics.values())


def test_interrupted_run_can_be_resumed(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Stopped(Experiment):
        def __call__(self, run: Run) -> Mapping[str, float]:
            model, optimizer = run.prepare(LinearModel(), partial(Adam, lr=0.05))
            data = Split(torch.ones(20, 3))
            for step, loss in descend(run, model, optimizer, data.batches(5, self.steps)):
                run.log(step, loss=loss)
                if step == 5 and self.fail_at == (0, 5):
                    assert run.stop_soon()
            assert not run.stop_soon()
            return {"slope": float(model.slope.detach().sum())}

    uninterrupted, _ = run_to_end(Stopped(), tmp_path)
    recipe = Recipe("toy", "A toy", Stopped(fail_at=(0, 5)), {})
    folder = start(recipe, OPTIONS, tmp_path)
    with pytest.raises(RunInterrupted):
        execute(recipe, OPTIONS, folder)
    assert folder.status == "interrupted"
    assert execute(replace(recipe, experiment=Stopped()), OPTIONS, folder) == uninterrupted
    with pytest.raises(RunError, match="is already finished"):
        execute(recipe, OPTIONS, folder)


def test_resume_after_an_early_break_is_bit_identical(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Early(Experiment):
        def __call__(self, run: Run) -> Mapping[str, float]:
            model, optimizer = run.prepare(LinearModel(), partial(Adam, lr=0.05))
            data = Split(torch.ones(20, 3))
            for step, _ in descend(run, model, optimizer, data.batches(5, self.steps)):
                if step == 9:
                    break
            between_loops = torch.randn(3)
            for step, _ in run.steps(20):
                run.record(step, value=between_loops.sum() + torch.randn(()))
                if (1, step) == self.fail_at:
                    raise ZeroDivisionError
            return {"slope": float(model.slope.detach().sum()), "noise": float(between_loops.sum())}

    options = replace(OPTIONS, save_steps=3)
    uninterrupted, first = run_to_end(Early(), tmp_path, options)
    resumed, second = run_to_end(Early(fail_at=(1, 13)), tmp_path, options)
    assert resumed == uninterrupted
    assert (first.path / "metrics.csv").read_bytes() == (second.path / "metrics.csv").read_bytes()


def test_checkpoint_of_another_model_raises_run_error(tmp_path: Path) -> None:
    class Wide(LinearModel):
        def __init__(self) -> None:
            super().__init__()
            self.slope = nn.Parameter(torch.randn(5))

    folder = RunFolder.create(tmp_path, "toy", {})
    run = Run(folder, OPTIONS)
    run.prepare(LinearModel(), partial(SGD, lr=0.1))
    run.checkpoint()
    run.close()
    other = Run(folder, OPTIONS)
    other.prepare(Wide(), partial(SGD, lr=0.1))
    with pytest.raises(RunError, match=r"does not match this model.*slope"):
        next(other.steps(1))
    other.close()


class Accumulator:
    """A kept object: the sum of the values it was given."""

    def __init__(self) -> None:
        self.total = 0.0

    def state_dict(self) -> dict[str, object]:
        return {"total": self.total}

    def load_state_dict(self, state: dict[str, object]) -> None:
        self.total = float(str(state["total"]))


@dataclass(frozen=True)
class Scheduled(Experiment):
    """A loop with a schedule, a moving average and an object that is created inside the loop."""

    def __call__(self, run: Run) -> Mapping[str, float]:
        data = Split(torch.randn(50, 3, generator=torch.Generator().manual_seed(0)))
        model, optimizer, schedule = run.prepare(
            LinearModel(),
            partial(Adam, lr=0.05),
            partial(OneCycleLR, max_lr=0.05, total_steps=self.steps + 1),
        )
        average: AveragedModel = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
        run.keep("average", average)
        at_start, total = float(model.slope.detach().sum()), None
        for step, loss in descend(run, model, optimizer, data.batches(8, self.steps)):
            if total is None:
                total = Accumulator()
                run.keep("total", total)
            total.total += float(loss)
            average.update_parameters(model)
            schedule.step()
            run.log(step, loss=loss, learning_rate=schedule.get_last_lr()[0])
            if (0, step) == self.fail_at:
                raise ZeroDivisionError
        assert total is not None
        averaged = float(average.module.slope.detach().sum())  # type: ignore[operator]  # a LinearModel
        return {"at_start": at_start, "averaged": averaged, "total": total.total}


@pytest.mark.parametrize("fail_at", [1, 4, 20, 39])
def test_schedules_and_objects_of_the_loop_resume_bit_identically(tmp_path: Path, fail_at: int) -> None:
    options = replace(OPTIONS, save_steps=4 if fail_at > 1 else 1)
    uninterrupted, first = run_to_end(Scheduled(), tmp_path, options)
    resumed, second = run_to_end(Scheduled(fail_at=(0, fail_at)), tmp_path, options)
    assert resumed == uninterrupted
    for name in ("metrics.csv", "weights.safetensors"):
        assert (first.path / name).read_bytes() == (second.path / name).read_bytes()


def test_checkpoint_is_renamed_between_the_syncs_of_its_metrics_and_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(RunFolder.create(tmp_path, "toy", {}), OPTIONS)
    names = {path.stat().st_ino: path.name for path in (run.folder, run.folder / "metrics.csv")}
    events: list[str] = []
    fsync, replace_file = os.fsync, Path.replace

    def recorded_fsync(descriptor: int) -> None:
        fsync(descriptor)
        events.append(f"sync {names.get(os.fstat(descriptor).st_ino, 'new file')}")

    def recorded_replace(path: Path, target: Path) -> Path:
        events.append(f"rename to {target.name}")
        return replace_file(path, target)

    monkeypatch.setattr(os, "fsync", recorded_fsync)
    monkeypatch.setattr(Path, "replace", recorded_replace)
    run.checkpoint()
    run.close()
    sync_folder = [] if os.name == "nt" else [f"sync {run.folder.name}"]  # Windows has no such call
    assert events == ["sync metrics.csv", "sync new file", "rename to checkpoint.safetensors", *sync_folder]


WRITTEN_FILES = (
    *("metrics.csv", "log.txt", ".lock", ".pid", "progress.json", "story.json", "model.json", "error.json"),
    *("checkpoint.safetensors", "weights.safetensors", "result.json", "report.html", "figures/metric-loss.svg"),
)


@pytest.mark.parametrize("name", [*WRITTEN_FILES, *(f".{name}.new" for name in WRITTEN_FILES[3:-1]), "figures"])
def test_links_in_a_run_folder_are_not_followed(tmp_path: Path, name: str) -> None:
    """A link is replaced, or the run ends with a RunError; what it points to does not change."""
    victim = tmp_path / "victim"
    if name == "figures":
        victim.mkdir()
    else:
        victim.write_text("valuable")
    recipe = Recipe("toy", "A toy", Experiment(), {})
    folder = start(recipe, OPTIONS, tmp_path)
    path = folder.path / name
    if path.is_dir():
        path.rmdir()
    path.symlink_to(victim)
    with suppress(RunError):
        execute(recipe, OPTIONS, folder)
    assert list(victim.iterdir()) == [] if victim.is_dir() else victim.read_text() == "valuable"


def test_write_through_a_link_raises_run_error(tmp_path: Path) -> None:
    folder = start(Recipe("toy", "A toy", Experiment(), {}), OPTIONS, tmp_path)
    (tmp_path / "victim").write_text("valuable")
    (folder.path / "metrics.csv").symlink_to(tmp_path / "victim")
    with pytest.raises(RunError, match=r"not written through links; remove the link .*metrics\.csv"):
        Run(folder, OPTIONS)
    assert (tmp_path / "victim").read_text() == "valuable"


def test_use_all_cores_respects_the_threads_option(tmp_path: Path) -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        run = Run(RunFolder.create(tmp_path, "toy", {}), OPTIONS)
        assert torch.get_num_threads() == 1
        run.use_all_cores()
        assert torch.get_num_threads() == 2
        run_with_threads = Run(RunFolder.create(tmp_path, "toy", {}), replace(OPTIONS, threads=1))
        run_with_threads.use_all_cores()
        assert torch.get_num_threads() == 1
        run.close()
        run_with_threads.close()
    finally:
        torch.set_num_threads(before)


def test_small_model_uses_one_thread_by_default(tmp_path: Path) -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        run = Run(RunFolder.create(tmp_path, "toy", {}), OPTIONS)
        run.prepare(LinearModel(), partial(SGD, lr=0.1))
        assert torch.get_num_threads() == 1
        run.prepare(nn.Linear(400, 400), partial(SGD, lr=0.1))
        assert torch.get_num_threads() == 2
        run_with_threads = Run(RunFolder.create(tmp_path, "toy", {}), replace(OPTIONS, threads=2))
        run_with_threads.prepare(LinearModel(), partial(SGD, lr=0.1))
        assert torch.get_num_threads() == 2
        run.close()
        run_with_threads.close()
    finally:
        torch.set_num_threads(before)


def test_loss_is_computed_under_autocast(tmp_path: Path) -> None:
    dtypes: list[torch.dtype] = []

    class RecordingModel(LinearModel):
        def loss(self, x: Tensor) -> Tensor:
            dtypes.append((x @ torch.ones(3, 3)).dtype)
            return super().loss(x)

    run = Run(RunFolder.create(tmp_path, "toy", {}), replace(OPTIONS, precision="bf16"))
    model, optimizer = run.prepare(RecordingModel(), partial(SGD, lr=0.1))
    list(descend(run, model, optimizer, Split(torch.ones(4, 3)).batches(2, 3)))
    run.close()
    assert dtypes == [torch.bfloat16] * 3


@pytest.mark.parametrize(
    ("precision", "matmul_precision", "allow_tf32"), [("tf32", "high", True), ("float32", "highest", False)]
)
def test_precision_sets_matmul_and_cudnn_flags(
    tmp_path: Path, precision: Precision, matmul_precision: str, allow_tf32: bool
) -> None:
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    try:
        Run(RunFolder.create(tmp_path, "toy", {}), replace(OPTIONS, precision=precision)).close()
        assert (torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32) == (matmul_precision, allow_tf32)
    finally:
        torch.set_float32_matmul_precision(before[0])
        torch.backends.cudnn.allow_tf32 = before[1]


def test_unknown_device_raises_run_error(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="device must be auto, cpu"):
        Run(RunFolder.create(tmp_path, "toy", {}), replace(OPTIONS, device="toaster"))


def test_bands_hold_and_format() -> None:
    assert at_least(0.9).holds(0.9)
    assert not at_least(0.9).holds(float("nan"))
    assert str(between(1, 2)) == "1 … 2"
    with pytest.raises(ValueError, match="low=3, high=2"):
        between(3, 2)


def test_progress_shows_the_current_step_between_logged_steps(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "toy", {})
    run = Run(folder, OPTIONS)
    states = set()
    for step, _ in run.steps(400_000):
        run.log(step, loss=torch.tensor(float(step)))
        if step % 1_000 == 0 and folder.progress is not None:
            states.add((folder.progress.done, folder.progress.metrics["loss"]))
        if len(states) == 2:
            break
    assert len(states) == 2
    assert all(loss == done - 1 for done, loss in states)
    assert not {done - 1 for done, _ in states} <= set(read_metrics(folder.path / "metrics.csv")["loss"][0])
    run.close()
