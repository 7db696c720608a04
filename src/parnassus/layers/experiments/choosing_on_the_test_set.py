"""Choose among many settings by test error, and pure noise looks learnable (Diehl sec. 1.3)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from parnassus.layers import relu
from parnassus.report import curves, histograms
from parnassus.train import Run, at_least, at_most, between, reported

covers = ("D1.3.5",)
expected = {
    "leaked_accuracy": at_least(0.57, "accuracy of the chosen setting on the test set it was chosen by"),
    "sealed_accuracy": between(0.47, 0.53, "accuracy of the same setting on a set never looked at"),
    "validated_accuracy": between(0.47, 0.53, "test accuracy of a setting chosen on validation rows: honest"),
    "predicted_leak": reported("mean of the best of as many coins thrown for each test row"),
    "leak_over_prediction": between(0.9, 1.05, "leaked accuracy over that prediction"),
    "spread_of_sealed": at_most(0.02, "standard error of the sealed accuracy over the repetitions"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"trials": 50, "repetitions": 10},
    "gpu": {"trials": 5_000, "repetitions": 200},
}


@dataclass(frozen=True)
class Experiment:
    trials: int = 500  # settings tried
    repetitions: int = 40  # worlds of noise to average over
    train: int = 100  # training rows
    test: int = 200  # rows of each of the three other sets
    features: int = 20  # inputs, which have nothing to do with the labels
    hidden: int = 30  # random features of each model

    def __call__(self, run: Run) -> dict[str, float]:
        accuracies = torch.stack([self.world(run.device) for _ in range(self.repetitions)]).cpu()
        validation, test, sealed = accuracies.unbind(1)  # each repetitions × trials
        by_test = test.cummax(1)
        honest = validation.cummax(1).indices
        tried = range(1, self.trials + 1)
        lines = {
            "best on the test set so far": by_test.values,
            "the same setting on a sealed set": sealed.gather(1, by_test.indices),
            "chosen on validation, tested once": test.gather(1, honest),
        }
        run.figure(
            "what the winner seems to know",
            curves(
                {name: (tried, values.mean(0)) for name, values in lines.items()},
                x_label="settings tried",
                y_label="accuracy",
                log_x=True,
            ),
            f"Labels are coin throws: no setting can be better than ½. Means over {self.repetitions} repetitions. Each "
            "setting tried and compared on the test set makes it a little less of a test set.",
        )
        run.figure(
            "the winners",
            histograms({name: values[:, -1] for name, values in lines.items()}, x_label="accuracy", bins=24),
            f"Accuracy of the winner of {self.trials} settings, over the repetitions.",
        )
        leaked, unseen, validated = (float(values[:, -1].mean()) for values in lines.values())
        coins = best_of_coins(self.trials, self.test)
        run.note(
            "what to see",
            f"After {self.trials} settings the winner names {100 * leaked:.1f} % of the test rows rightly, where "
            f"there is nothing to know; the best of {self.trials} coins would reach {100 * coins:.1f} %. On rows that "
            f"nobody looked at it names {100 * unseen:.1f} %.\n\nThe cure is a third set: choose on validation rows as "
            f"often as you like, then look at the test set once. That gives {100 * validated:.1f} %.",
        )
        return {
            "leaked_accuracy": leaked,
            "sealed_accuracy": unseen,
            "validated_accuracy": validated,
            "predicted_leak": coins,
            "leak_over_prediction": leaked / coins,
            "spread_of_sealed": float(lines["the same setting on a sealed set"][:, -1].std() / self.repetitions**0.5),
        }

    def world(self, device: torch.device) -> Tensor:
        """Accuracies of all trials on the validation, the test and the sealed rows, in a fresh world of noise.

        A trial has random features relu(x W) of random size and a random penalty, fitted by ridge regression to ±1.
        """
        rows = self.train + 3 * self.test
        x = torch.randn(rows, self.features, device=device)
        y = torch.randint(2, (rows,), device=device) * 2.0 - 1
        scale = 10 ** (2 * torch.rand(self.trials, 1, 1, device=device) - 1)
        penalty = 10 ** (3 * torch.rand(self.trials, 1, 1, device=device) - 1)
        hidden = relu(x @ (scale * torch.randn(self.trials, self.features, self.hidden, device=device)))
        hidden = hidden / hidden.std((1, 2), keepdim=True)
        seen = hidden[:, : self.train]
        gram = seen.mT @ seen + penalty * torch.eye(self.hidden, device=device)
        w = torch.linalg.solve(gram, (seen.mT @ y[: self.train])[..., None])
        right = ((hidden @ w)[..., 0].sign() == y)[:, self.train :].float()
        scores: Tensor = right.reshape(self.trials, 3, self.test).mean(-1)
        return scores.T


def best_of_coins(trials: int, throws: int) -> float:
    """E max of `trials` independent shares of heads in `throws` throws: Σ_k P(max > k/n)/n."""
    heads = torch.arange(throws + 1, dtype=torch.float64)
    n = torch.tensor(float(throws), dtype=torch.float64)
    log_chance = (
        torch.lgamma(n + 1) - torch.lgamma(heads + 1) - torch.lgamma(n - heads + 1) - n * torch.log(n.new_tensor(2.0))
    )
    below = log_chance.exp().cumsum(0).clamp(max=1.0)
    return float((1 - below**trials).sum() / n)
