"""A run seeds, logs, saves and goes on: in one process, with a toy experiment."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam

from parnassus.data import Split
from parnassus.data.seeds import mix
from parnassus.runs import Interrupted, NotFiniteError, RunError, RunFolder
from parnassus.runs.metrics import read_metrics
from parnassus.train import Options, Run, at_least, between, descend
from parnassus.train.devices import Precision
from parnassus.train.execute import Recipe, execute, start

QUIET = Options(quiet=True, device="cpu")


class Line(nn.Module):
    """y ≈ a x, with noise added to each batch so that a wrong seed shows."""

    def __init__(self) -> None:
        super().__init__()
        self.slope = nn.Parameter(torch.randn(3))

    def loss(self, x: Tensor) -> Tensor:
        return ((x + 0.1 * torch.randn_like(x)) @ self.slope - x.sum(1)).square().mean()


@dataclass(frozen=True)
class Experiment:
    """Two loops with an evaluation between them, stopped by force where a test says so."""

    steps: int = 40
    die_at: tuple[int, int] = (-1, -1)  # (loop, step)
    diverge: bool = False

    def __call__(self, run: Run) -> Mapping[str, float]:
        data = Split(torch.randn(50, 3, generator=torch.Generator().manual_seed(0)))
        first, first_step = run.prepare(Line(), partial(Adam, lr=0.05))
        self._train(run, 0, first, first_step, data)
        run.record(0, between=torch.randn(()))
        second, second_step = run.prepare(Line(), partial(SGD, lr=1e30 if self.diverge else 0.05, momentum=0.9))
        self._train(run, 1, second, second_step, data)
        return {
            "first": float(first.slope.detach().sum()),
            "second": float(second.slope.detach().sum()),
            "noise": float(torch.randn(())),
        }

    def _train(self, run: Run, loop: int, model: Line, optimizer: torch.optim.Optimizer, data: Split) -> None:
        for step, loss in descend(run, model, optimizer, data.batches(8, self.steps)):
            run.log(step, **{f"{loop}_loss": loss})
            if (loop, step) == self.die_at:
                raise ZeroDivisionError  # as sudden as a kill


def run_to_the_end(experiment: Experiment, root: Path, options: Options = QUIET) -> tuple[dict[str, float], RunFolder]:
    recipe = Recipe("toy", "A toy", experiment, {})
    folder = start(recipe, options, root)
    try:
        return execute(recipe, options, folder), folder
    except ZeroDivisionError:
        healthy = replace(recipe, experiment=replace(experiment, die_at=(-1, -1)))
        return execute(healthy, options, folder), folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, float], RunFolder]:
    """A run that nothing disturbed."""
    return run_to_the_end(Experiment(), tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize("die_at", [(0, 0), (0, 17), (0, 39), (1, 0), (1, 25), (1, 39)])
@pytest.mark.parametrize("save_steps", [1, 7, 0])
def test_a_run_that_dies_anywhere_ends_in_the_same_bits(
    tmp_path: Path, whole: tuple[dict[str, float], RunFolder], die_at: tuple[int, int], save_steps: int
) -> None:
    resumed, folder = run_to_the_end(Experiment(die_at=die_at), tmp_path, replace(QUIET, save_steps=save_steps))
    assert resumed == whole[0]
    for name in ("metrics.csv", "weights.safetensors"):
        assert (folder.path / name).read_bytes() == (whole[1].path / name).read_bytes()


def test_another_seed_gives_another_run(tmp_path: Path) -> None:
    one, _ = run_to_the_end(Experiment(), tmp_path)
    other, _ = run_to_the_end(Experiment(), tmp_path, replace(QUIET, seed=1))
    assert all(one[name] != other[name] for name in one)


def test_seeds_of_neighbours_have_nothing_in_common() -> None:
    seeds = [mix(seed, step) for seed in range(100) for step in range(100)]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**63 for seed in seeds)
    low_bits = torch.tensor([seed & 1 for seed in seeds], dtype=torch.float64)
    assert abs(float(low_bits.mean()) - 0.5) < 0.02


def test_a_run_that_diverges_stops_and_names_the_tensor(tmp_path: Path) -> None:
    with pytest.raises(NotFiniteError, match=r"the weights slope \(step \d+\)|1_loss at step"):
        run_to_the_end(Experiment(diverge=True), tmp_path)
    (folder,) = tmp_path.glob("toy-*")
    curves = read_metrics(folder / "metrics.csv")
    assert all(torch.tensor(values).isfinite().all() for _, values in curves.values())


def test_a_request_to_stop_saves_and_can_be_resumed(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Stopped(Experiment):
        def __call__(self, run: Run) -> Mapping[str, float]:
            model, optimizer = run.prepare(Line(), partial(Adam, lr=0.05))
            data = Split(torch.ones(20, 3))
            for step, loss in descend(run, model, optimizer, data.batches(5, self.steps)):
                run.log(step, loss=loss)
                if step == 5 and self.die_at == (0, 5):
                    assert run.stop_soon()
            assert not run.stop_soon()
            return {"slope": float(model.slope.detach().sum())}

    whole, _ = run_to_the_end(Stopped(), tmp_path)
    recipe = Recipe("toy", "A toy", Stopped(die_at=(0, 5)), {})
    folder = start(recipe, QUIET, tmp_path)
    with pytest.raises(Interrupted):
        execute(recipe, QUIET, folder)
    assert folder.status == "interrupted"
    assert execute(replace(recipe, experiment=Stopped()), QUIET, folder) == whole
    with pytest.raises(RunError, match="finished already"):
        execute(recipe, QUIET, folder)


def test_a_loop_left_early_changes_nothing_that_follows_a_resume(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Early(Experiment):
        def __call__(self, run: Run) -> Mapping[str, float]:
            model, optimizer = run.prepare(Line(), partial(Adam, lr=0.05))
            data = Split(torch.ones(20, 3))
            for step, _ in descend(run, model, optimizer, data.batches(5, self.steps)):
                if step == 9:
                    break
            between_loops = torch.randn(3)
            for step, _ in run.steps(20):
                run.record(step, value=between_loops.sum() + torch.randn(()))
                if (1, step) == self.die_at:
                    raise ZeroDivisionError
            return {"slope": float(model.slope.detach().sum()), "noise": float(between_loops.sum())}

    options = replace(QUIET, save_steps=3)
    whole, first = run_to_the_end(Early(), tmp_path, options)
    resumed, second = run_to_the_end(Early(die_at=(1, 13)), tmp_path, options)
    assert resumed == whole
    assert (first.path / "metrics.csv").read_bytes() == (second.path / "metrics.csv").read_bytes()


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    class Wide(Line):
        def __init__(self) -> None:
            super().__init__()
            self.slope = nn.Parameter(torch.randn(5))

    folder = RunFolder.create(tmp_path, "toy", {})
    run = Run(folder, QUIET)
    run.prepare(Line(), partial(SGD, lr=0.1))
    run.checkpoint()
    other = Run(folder, QUIET)
    with pytest.raises(RunError, match=r"does not fit this model.*slope"):
        other.prepare(Wide(), partial(SGD, lr=0.1))
    run.close()
    other.close()


def test_large_work_without_a_model_may_use_all_cores(tmp_path: Path) -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        run = Run(RunFolder.create(tmp_path, "toy", {}), QUIET)
        assert torch.get_num_threads() == 1
        run.use_all_cores()
        assert torch.get_num_threads() == 2
        told = Run(RunFolder.create(tmp_path, "toy", {}), replace(QUIET, threads=1))
        told.use_all_cores()
        assert torch.get_num_threads() == 1
        run.close()
        told.close()
    finally:
        torch.set_num_threads(before)


def test_a_small_model_runs_on_one_thread_unless_told_otherwise(tmp_path: Path) -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        run = Run(RunFolder.create(tmp_path, "toy", {}), QUIET)
        run.prepare(Line(), partial(SGD, lr=0.1))
        assert torch.get_num_threads() == 1
        run.prepare(nn.Linear(400, 400), partial(SGD, lr=0.1))
        assert torch.get_num_threads() == 2
        told = Run(RunFolder.create(tmp_path, "toy", {}), replace(QUIET, threads=2))
        told.prepare(Line(), partial(SGD, lr=0.1))
        assert torch.get_num_threads() == 2
        run.close()
        told.close()
    finally:
        torch.set_num_threads(before)


def test_autocast_reaches_the_loss(tmp_path: Path) -> None:
    seen: list[torch.dtype] = []

    class Watching(Line):
        def loss(self, x: Tensor) -> Tensor:
            seen.append((x @ torch.ones(3, 3)).dtype)
            return super().loss(x)

    run = Run(RunFolder.create(tmp_path, "toy", {}), replace(QUIET, precision="bf16"))
    model, optimizer = run.prepare(Watching(), partial(SGD, lr=0.1))
    list(descend(run, model, optimizer, Split(torch.ones(4, 3)).batches(2, 3)))
    run.close()
    assert seen == [torch.bfloat16] * 3


@pytest.mark.parametrize(("precision", "products", "rounded"), [("tf32", "high", True), ("float32", "highest", False)])
def test_only_tf32_lets_products_and_convolutions_be_rounded(
    tmp_path: Path, precision: Precision, products: str, rounded: bool
) -> None:
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    try:
        Run(RunFolder.create(tmp_path, "toy", {}), replace(QUIET, precision=precision)).close()
        assert (torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32) == (products, rounded)
    finally:
        torch.set_float32_matmul_precision(before[0])
        torch.backends.cudnn.allow_tf32 = before[1]


def test_an_unknown_device_gets_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="device must be auto, cpu"):
        Run(RunFolder.create(tmp_path, "toy", {}), replace(QUIET, device="toaster"))


def test_bands_judge_and_read_well() -> None:
    assert at_least(0.9).holds(0.9)
    assert not at_least(0.9).holds(float("nan"))
    assert str(between(1, 2)) == "1 … 2"
    with pytest.raises(ValueError, match="low=3, high=2"):
        between(3, 2)


def test_the_folder_shows_the_step_in_hand_between_two_points_of_the_curve(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "toy", {})
    run = Run(folder, QUIET)
    shown = set()
    for step, _ in run.steps(400_000):
        run.log(step, loss=torch.tensor(float(step)))
        if step % 1_000 == 0 and folder.progress is not None:
            shown.add((folder.progress.done, folder.progress.metrics["loss"]))
        if len(shown) == 2:
            break
    assert len(shown) == 2
    assert all(loss == done - 1 for done, loss in shown)
    assert not {done - 1 for done, _ in shown} <= set(read_metrics(folder.path / "metrics.csv")["loss"][0])
    run.close()
