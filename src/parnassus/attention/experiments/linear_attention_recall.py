"""Softmax, linear and local attention on associative recall; linear attention runs as an RNN (Diehl sec. 4.1)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from parnassus.attention import (
    Block,
    KeyValueCache,
    LayerCache,
    LinearSelfAttention,
    LocalSelfAttention,
    RunningSumsCache,
    SelfAttention,
    feed_forward,
)
from parnassus.data.seeds import derive_seed
from parnassus.optim import Adam
from parnassus.report import curves
from parnassus.train import ModelCollection, Positive, Run, at_least, at_most, between, descend, no_band

covers = ("D4.1.2", "C-22")
expected = {
    "softmax": at_least(0.98, "recall accuracy with as many pairs as in training, softmax attention"),
    "linear": at_least(0.75, "recall accuracy with as many pairs as in training, linear attention"),
    "local": between(
        0.4, 0.75, "recall accuracy with as many pairs as in training, local attention (window: half of the distances)"
    ),
    "softmax_all_keys": at_least(
        0.95, "recall accuracy with a pair for every key, more than in training, softmax attention"
    ),
    "linear_all_keys": at_most(
        0.95, "recall accuracy with a pair for every key, linear attention, whose state has a fixed size"
    ),
    "recurrent_difference": at_most(1e-3, "maximum difference of logits, linear attention recurrent and parallel"),
    "state_linear": no_band("state size (elements) of linear attention after the longest sequence"),
    "state_softmax": no_band("size of the key-value cache (elements) of softmax attention after the longest sequence"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"steps": 20, "num_test": 64, "max_length": 64},
    "gpu": {"steps": 4_000, "batch_size": 256, "num_test": 4_096},
}


class RecallTask(NamedTuple):
    """Keys with values, then the same keys in another order as queries for their values."""

    keys: Tensor
    values: Tensor
    targets: Tensor
    distances: Tensor  # positions between a query and its pair


@dataclass(frozen=True)
class Experiment:
    steps: Positive[int] = 400  # gradient steps
    batch_size: Positive[int] = 32  # sequences per gradient step
    num_pairs: Positive[int] = 24  # key-value pairs of a training sequence
    num_keys: Positive[int] = 64  # distinct keys
    num_values: Positive[int] = 8  # distinct values
    width: Positive[int] = 32  # width of the models
    learning_rate: Positive[float] = 3e-3  # learning rate of Adam
    num_test: Positive[int] = 512  # test sequences for each number of pairs
    max_length: Positive[int] = 512  # tokens that are processed recurrently

    def __call__(self, run: Run) -> dict[str, float]:
        models = ModelCollection[AssociativeRecallModel](
            {
                "softmax": self.model(SelfAttention(self.width, 1, causal=True)),
                "linear": self.model(LinearSelfAttention(self.width, 1, causal=True)),
                "local": self.model(LocalSelfAttention(self.width, 1, reach=self.num_pairs, causal=True)),
            }
        )
        models, optimizer = run.prepare(models, partial(Adam, lr=self.learning_rate))
        for step, loss in descend(run, models, optimizer, RecallBatches(self, run.device)):
            run.log(step, loss=loss)
        models.eval()
        counts = sorted({4, 8, 16, self.num_pairs, 32, 48, self.num_keys})
        with torch.no_grad():
            accuracy = {
                name: [self.accuracy(model, count, run) for count in counts] for name, model in models.named_models()
            }
            self.plot_capacity(run, counts, accuracy)
            self.plot_distance(run, models)
            difference, states = self.run_recurrently(run, models)
        trained, full = counts.index(self.num_pairs), counts.index(self.num_keys)
        return {
            "softmax": accuracy["softmax"][trained],
            "linear": accuracy["linear"][trained],
            "local": accuracy["local"][trained],
            "softmax_all_keys": accuracy["softmax"][full],
            "linear_all_keys": accuracy["linear"][full],
            "recurrent_difference": difference,
            "state_linear": float(states["linear"]),
            "state_softmax": float(states["softmax"]),
        }

    def model(self, attention: SelfAttention) -> "AssociativeRecallModel":
        return AssociativeRecallModel(attention, keys=self.num_keys, values=self.num_values, width=self.width)

    def sample_task(self, count: int, pairs: int, generator: torch.Generator, device: torch.device) -> RecallTask:
        """`pairs` distinct keys with random values, then the same keys as queries in random order."""
        keys = torch.rand(count, self.num_keys, generator=generator).argsort(1)[:, :pairs]
        values = torch.randint(self.num_values, (count, pairs), generator=generator)
        order = torch.rand(count, pairs, generator=generator).argsort(1)
        unknown = torch.full_like(values, self.num_values)
        all_keys, all_values = torch.cat([keys, keys.gather(1, order)], 1), torch.cat([values, unknown], 1)
        distances = pairs + torch.arange(pairs) - order
        return RecallTask(*(part.to(device) for part in (all_keys, all_values, values.gather(1, order), distances)))

    def accuracy(self, model: "AssociativeRecallModel", pairs: int, run: Run) -> float:
        """The recall accuracy on sequences with this number of pairs."""
        task = self.sample_task(self.num_test, pairs, torch.Generator().manual_seed(1), run.device)
        return float(is_correct(model, task).float().mean())

    def plot_capacity(self, run: Run, counts: list[int], accuracy: dict[str, list[float]]) -> None:
        figure = curves(
            {name: (counts, values) for name, values in accuracy.items()},
            x_label="number of pairs",
            y_label="recall accuracy",
            marks={"training": self.num_pairs},
        )
        run.figure(
            "capacity",
            figure,
            f"Softmax attention stores every pair. Linear attention stores one {self.width} × {self.width} matrix, so "
            "that pairs interfere beyond its capacity. Local attention has no access to pairs outside its window, for "
            f"which it is at chance level, 1/{self.num_values}.",
        )

    def plot_distance(self, run: Run, models: ModelCollection["AssociativeRecallModel"]) -> None:
        task = self.sample_task(4 * self.num_test, self.num_pairs, torch.Generator().manual_seed(2), run.device)
        distances = torch.arange(1, 2 * self.num_pairs, device=run.device)
        lines = {}
        for name, model in models.named_models():
            hits = is_correct(model, task)
            means = [hits[task.distances == distance].float().mean() for distance in distances]
            lines[name] = (distances, torch.stack(means))
        figure = curves(
            lines,
            x_label="distance from query to pair",
            y_label="recall accuracy",
            marks={"local window": self.num_pairs},
        )
        run.figure(
            "recall by distance",
            figure,
            "Local attention is as accurate as softmax attention within its window and at chance level beyond it.",
        )

    def run_recurrently(
        self, run: Run, models: ModelCollection["AssociativeRecallModel"]
    ) -> tuple[float, dict[str, int]]:
        """The difference of recurrent and parallel logits of linear attention, and the state sizes of two models."""
        generator = torch.Generator().manual_seed(3)
        keys = torch.randint(self.num_keys, (8, self.max_length), generator=generator).to(run.device)
        values = torch.randint(self.num_values + 1, (8, self.max_length), generator=generator).to(run.device)
        logits: dict[str, Tensor] = {}
        sizes: dict[str, list[int]] = {"softmax": [], "linear": []}
        for name, size in sizes.items():
            model = models.model(name)
            cache, outputs = model.attention.empty_cache(8, self.max_length), []
            for position in range(self.max_length):
                token = slice(position, position + 1)
                outputs.append(model(keys[:, token], values[:, token], cache))
                size.append(state_size(cache))
            logits[name] = torch.cat(outputs, 1)
        difference = float((logits["linear"] - models.model("linear")(keys, values)).abs().max())
        lengths = range(1, self.max_length + 1)
        run.figure(
            "state size",
            curves(
                {name: (lengths, size) for name, size in sizes.items()},
                x_label="processed tokens",
                y_label="state size (elements)",
            ),
            "The key-value cache of softmax attention grows with every token; the sums of linear attention do not.",
        )
        run.note(
            "recurrent and parallel form",
            f"Run token by token, the linear transformer has the logits of the parallel pass up to {difference:.1e}. "
            f"Its state has {sizes['linear'][-1]:,} elements at any length; the cache of softmax attention has "
            f"{sizes['softmax'][-1]:,} after {self.max_length} tokens.",
        )
        return difference, {name: size[-1] for name, size in sizes.items()}


class AssociativeRecallModel(nn.Module):
    """One block of causal attention that receives keys with values and predicts the value of each query key."""

    def __init__(self, attention: SelfAttention, *, keys: int, values: int, width: int) -> None:
        super().__init__()
        self.keys, self.values = nn.Embedding(keys, width), nn.Embedding(values + 1, width)
        self.block = Block(attention, feed_forward(width, 2 * width), norm=lambda: nn.LayerNorm(width))
        self.output = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, values))

    @property
    def attention(self) -> SelfAttention:
        return self.block.attention

    def forward(self, keys: Tensor, values: Tensor, cache: LayerCache | None = None) -> Tensor:
        """Logits of the value at each position."""
        logits: Tensor = self.output(self.block(self.keys(keys) + self.values(values), None, cache))
        return logits

    def loss(self, keys: Tensor, values: Tensor, targets: Tensor) -> Tensor:
        """The mean of −log p of the target values at the queries."""
        logits = self(keys, values)[:, -targets.shape[1] :]
        return cross_entropy(logits.flatten(0, 1), targets.flatten())


@dataclass(frozen=True)
class RecallBatches:
    """Random tasks, new at every step."""

    experiment: Experiment
    device: torch.device

    def __len__(self) -> int:
        return self.experiment.steps

    def at(self, step: int, seed: int, rank: int, world_size: int) -> tuple[Tensor, Tensor, Tensor]:
        generator = torch.Generator().manual_seed(derive_seed(seed, step, rank))
        size = max(1, self.experiment.batch_size // world_size)
        return self.experiment.sample_task(size, self.experiment.num_pairs, generator, self.device)[:3]


def is_correct(model: Callable[[Tensor, Tensor], Tensor], task: RecallTask) -> Tensor:
    """Whether each query is answered with its target value."""
    logits = model(task.keys, task.values)[:, -task.targets.shape[1] :]
    return logits.argmax(-1) == task.targets


def state_size(cache: LayerCache) -> int:
    """Number of tensor elements stored per sequence."""
    if isinstance(cache, KeyValueCache):
        return 2 * cache.keys[0, :, : cache.count].numel()
    assert isinstance(cache, RunningSumsCache)
    assert cache.sums is not None
    return cache.sums.values[0].numel() + cache.sums.normaliser[0].numel()
