"""Selection bias: model selection on the test set finds accuracy above chance in pure noise (Diehl sec. 1.3)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from parnassus.layers import relu
from parnassus.report import curves, histograms
from parnassus.train import Positive, Run, at_least, at_most, between, no_band

covers = ("D1.3.5",)
expected = {
    "biased_accuracy": at_least(0.57, "test accuracy of the model selected on the same test set"),
    "independent_accuracy": between(0.47, 0.53, "accuracy on an independent set of the model selected on the test set"),
    "validated_accuracy": between(0.47, 0.53, "test accuracy of the model selected on a validation set"),
    "expected_biased_accuracy": no_band("expected maximum accuracy of as many random classifiers"),
    "biased_accuracy_ratio": between(0.9, 1.05, "ratio of the biased test accuracy to its expectation"),
    "independent_standard_error": at_most(0.02, "standard error of the accuracy on the independent set"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"num_trials": 50, "num_repeats": 10},
    "gpu": {"num_trials": 5_000, "num_repeats": 200},
}


@dataclass(frozen=True)
class Experiment:
    num_trials: Positive[int] = 500  # hyperparameter settings compared
    num_repeats: Positive[int] = 40  # independent data sets
    num_examples: Positive[int] = 100  # training examples
    num_test: Positive[int] = 200  # examples in each of the validation, test and independent sets
    num_features: Positive[int] = 20  # input features, independent of the labels
    num_random_features: Positive[int] = 30  # random features per model

    def __call__(self, run: Run) -> dict[str, float]:
        accuracies = torch.stack([self.trial_accuracies(run.device) for _ in range(self.num_repeats)]).cpu()
        validation, test, sealed = accuracies.unbind(1)  # each (num_repeats, num_trials)
        by_test = test.cummax(1)
        by_validation = validation.cummax(1).indices
        num_compared = range(1, self.num_trials + 1)
        lines = {
            "selected on the test set": by_test.values,
            "same model, independent set": sealed.gather(1, by_test.indices),
            "selected on the validation set": test.gather(1, by_validation),
        }
        run.figure(
            "accuracy of the selected model",
            curves(
                {name: (num_compared, values.mean(0)) for name, values in lines.items()},
                x_label="settings compared",
                y_label="accuracy",
                log_x=True,
            ),
            f"Labels are random: the true accuracy of every setting is ½. Mean over {self.num_repeats} data sets. The "
            "bias grows with the number of settings compared on the test set.",
        )
        run.figure(
            "distribution of accuracies",
            histograms({name: values[:, -1] for name, values in lines.items()}, x_label="accuracy", bins=24),
            f"Accuracy of the best of {self.num_trials} settings, over the data sets.",
        )
        biased, independent, validated = (float(values[:, -1].mean()) for values in lines.values())
        expected_max = expected_max_accuracy(self.num_trials, self.num_test)
        run.note(
            "results",
            f"The best of {self.num_trials} settings has a test accuracy of {100 * biased:.1f} % although the labels "
            f"are random; the expected maximum of {self.num_trials} random classifiers is {100 * expected_max:.1f} %. "
            f"On an independent set its accuracy is {100 * independent:.1f} %.\n\nThe remedy is a third set: model "
            f"selection on a validation set and a single evaluation on the test set give {100 * validated:.1f} %.",
        )
        return {
            "biased_accuracy": biased,
            "independent_accuracy": independent,
            "validated_accuracy": validated,
            "expected_biased_accuracy": expected_max,
            "biased_accuracy_ratio": biased / expected_max,
            "independent_standard_error": float(
                lines["same model, independent set"][:, -1].std() / self.num_repeats**0.5
            ),
        }

    def trial_accuracies(self, device: torch.device) -> Tensor:
        """Accuracies of all settings on the validation, test and independent sets of one random data set.

        A setting is ridge regression to ±1 on features relu(x W), with a random scale of W and a random penalty.
        """
        rows = self.num_examples + 3 * self.num_test
        x = torch.randn(rows, self.num_features, device=device)
        y = torch.randint(2, (rows,), device=device) * 2.0 - 1
        scale = 10 ** (2 * torch.rand(self.num_trials, 1, 1, device=device) - 1)
        penalty = 10 ** (3 * torch.rand(self.num_trials, 1, 1, device=device) - 1)
        hidden = relu(
            x @ (scale * torch.randn(self.num_trials, self.num_features, self.num_random_features, device=device))
        )
        hidden = hidden / hidden.std((1, 2), keepdim=True)
        training = hidden[:, : self.num_examples]
        gram = training.mT @ training + penalty * torch.eye(self.num_random_features, device=device)
        w = torch.linalg.solve(gram, (training.mT @ y[: self.num_examples])[..., None])
        correct = ((hidden @ w)[..., 0].sign() == y)[:, self.num_examples :].float()
        scores: Tensor = correct.reshape(self.num_trials, 3, self.num_test).mean(-1)
        return scores.T


def expected_max_accuracy(trials: int, examples: int) -> float:
    """Expected maximum of `trials` independent Binomial(n, ½)/n variables, n = `examples`: Σ_k P(max > k/n)/n."""
    successes = torch.arange(examples + 1, dtype=torch.float64)
    n = torch.tensor(float(examples), dtype=torch.float64)
    log_probability = (
        torch.lgamma(n + 1)
        - torch.lgamma(successes + 1)
        - torch.lgamma(n - successes + 1)
        - n * torch.log(n.new_tensor(2.0))
    )
    cdf = log_probability.exp().cumsum(0).clamp(max=1.0)
    return float((1 - cdf**trials).sum() / n)
