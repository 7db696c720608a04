"""MLPs fit random labels perfectly, with test accuracy at chance level (Zhao sec. 5)."""

from dataclasses import dataclass
from functools import partial
from math import prod

import torch
from torch import Tensor
from torch.optim import Adam

from parnassus.data import Split, open_data
from parnassus.layers import check_labels, count_parameters, dense_classifier, evaluate
from parnassus.report import curves
from parnassus.setting_types import GreyImageData
from parnassus.train import Positive, Run, at_least, between, no_band

covers = ("Z5.11",)
expected = {
    "train_accuracy_random": at_least(1.0, "training accuracy with random labels"),
    "test_accuracy_random": between(0.04, 0.17, "test accuracy after training on random labels: chance level"),
    "train_accuracy_true": at_least(1.0, "training accuracy with true labels"),
    "test_accuracy_true": at_least(0.78, "test accuracy with true labels"),
    "test_accuracy_noise": no_band("test accuracy after training on shuffled pixels with true labels"),
    "times_slower": at_least(1.5, "ratio of the epochs to fit random labels to the epochs to fit true labels"),
    "weights_per_image": no_band("ratio of the number of parameters to the number of training images"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"num_examples": 100, "epochs": 30, "width": 64},
    "gpu": {"data": "mnist", "num_examples": 20_000, "epochs": 300, "width": 4_096},
}


@dataclass(frozen=True)
class Experiment:
    data: GreyImageData = "mnist_mini"  # images by class: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    num_examples: Positive[int] = 600  # training images
    width: Positive[int] = 512  # hidden units
    epochs: Positive[int] = 60  # passes over the training images
    batch_size: Positive[int] = 100  # images per gradient step

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data, size=self.image_size).to(run.device)
        classes = len(data.classes)
        test_labels = check_labels(data.test.y, classes)
        rows = torch.randperm(len(data.train), device=run.device)[: self.num_examples]
        x, labels = data.train.x[rows], check_labels(data.train.y, classes)[rows]
        random_labels = torch.randint(classes, labels.shape, device=run.device)
        tasks = {
            "true labels": Split(x, labels),
            "random labels": Split(x, random_labels),
            "shuffled pixels": Split(shuffle_pixels(x), labels),
        }
        nets = {
            name: run.prepare(dense_classifier(prod(data.shape), classes, hidden=(self.width,)), partial(Adam, lr=1e-3))
            for name in tasks
        }
        batches = {name: task.pairs(self.batch_size, 0, partial=True) for name, task in tasks.items()}
        steps_per_epoch = batches["true labels"].steps_per_epoch
        for step, _ in run.steps(self.epochs * steps_per_epoch):
            for name, (net, optimizer) in nets.items():
                run.update(optimizer, net.loss(*batches[name].at(step, run.seed)))
            if (step + 1) % steps_per_epoch == 0:
                scores = {
                    name: evaluate(nets[name][0], task.x, task_labels(task)).accuracy for name, task in tasks.items()
                }
                run.record(step, **{f"accuracy/{name}": score for name, score in scores.items()})

        lines = {name: run.curve(f"accuracy/{name}")[1] for name in tasks}
        run.figure(
            "training accuracy",
            curves(
                {name: (range(1, len(line) + 1), line) for name, line in lines.items()},
                x_label="epoch",
                y_label="training accuracy",
            ),
            "Same network, same images, same number of steps. Random labels only take longer to fit; images whose "
            "pixels were permuted, each with its own permutation, are fitted with their true labels as well.",
        )
        on_test = {name: evaluate(net, data.test.x, test_labels).accuracy for name, (net, _) in nets.items()}
        on_train = {name: line[-1] for name, line in lines.items()}
        fitted = {name: first_perfect_epoch(line) for name, line in lines.items()}
        run.table(
            "training and test accuracy",
            [
                {
                    "task": name,
                    "training accuracy": round(on_train[name], 4),
                    "test accuracy": round(on_test[name], 4),
                    "epochs to fit all labels": fitted[name] if fitted[name] <= self.epochs else "not reached",
                }
                for name in tasks
            ],
        )
        num_parameters = count_parameters(nets["true labels"][0])
        run.note(
            "results",
            f"{num_parameters:,} parameters for {self.num_examples:,} images: the network can fit any labelling. "
            f"Trained on random labels it reaches a test accuracy of {100 * on_test['random labels']:.1f} %, which "
            "is chance level. Fitting the training data therefore does not explain generalisation, and no bound "
            "that depends only on the size of the network distinguishes this run from the one with "
            f"{100 * on_test['true labels']:.1f} % test accuracy.",
        )
        return {
            "train_accuracy_random": on_train["random labels"],
            "test_accuracy_random": on_test["random labels"],
            "train_accuracy_true": on_train["true labels"],
            "test_accuracy_true": on_test["true labels"],
            "test_accuracy_noise": on_test["shuffled pixels"],
            "times_slower": fitted["random labels"] / fitted["true labels"],
            "weights_per_image": num_parameters / self.num_examples,
        }


def shuffle_pixels(x: Tensor) -> Tensor:
    """Permute the pixels of every image independently: the grey values are kept, the spatial structure is lost."""
    flat = x.flatten(1)
    return flat.gather(1, torch.rand_like(flat).argsort(1)).reshape(x.shape)


def task_labels(task: Split) -> Tensor:
    assert task.y is not None
    return task.y


def first_perfect_epoch(accuracies: list[float]) -> int:
    """First epoch (from 1) with training accuracy 1, or the number of epochs + 1 if there is none."""
    return next((epoch for epoch, accuracy in enumerate(accuracies, 1) if accuracy >= 1.0), len(accuracies) + 1)
