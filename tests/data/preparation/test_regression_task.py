"""Any data as a regression task: scaled inputs, centred targets, and scores."""

from dataclasses import replace

import pytest
import torch

from parnassus.data import DataError, RegressionTask, diabetes, load_digits

CPU = torch.device("cpu")


def test_images_are_normalised_and_one_hot_targets_are_centred() -> None:
    task = RegressionTask.from_dataset(load_digits(), 50, 20, dtype=torch.float64, device=CPU)
    assert (task.x.shape, task.t.shape, task.x_test.shape) == ((50, 64), (50, 10), (20, 64))
    torch.testing.assert_close(task.x.mean(1), torch.zeros(50, dtype=torch.float64))
    torch.testing.assert_close(task.x.norm(dim=1), torch.ones(50, dtype=torch.float64))
    torch.testing.assert_close(task.t.mean(0), torch.zeros(10, dtype=torch.float64))
    torch.testing.assert_close((task.t + task.offset).sum(1), torch.ones(50, dtype=torch.float64))
    correct = torch.nn.functional.one_hot(task.y_test, 10).double() - task.offset
    assert task.score(correct) == 1.0
    assert task.score(correct.roll(1, 1)) == 0.0
    assert task.score_name == "accuracy"


def test_columns_and_targets_are_standardised_with_training_statistics() -> None:
    task = RegressionTask.from_dataset(diabetes(), 10_000, 10_000, dtype=torch.float32, device=CPU)
    torch.testing.assert_close(task.x.square().sum(1).mean(), torch.tensor(1.0), rtol=0.01, atol=0)
    torch.testing.assert_close(task.t.std(0, correction=0), torch.ones(1))
    assert task.score(task.y_test) == 1.0
    assert task.score(task.y_test.mean(0).expand_as(task.y_test)) == pytest.approx(0.0, abs=1e-6)
    assert task.score_name == "R²"


def test_data_without_targets_raise_data_error() -> None:
    data = load_digits()
    unlabelled = replace(data, train=replace(data.train, y=None))
    with pytest.raises(DataError, match="must have targets and a test split"):
        RegressionTask.from_dataset(unlabelled, 10, 10, dtype=torch.float32, device=CPU)
