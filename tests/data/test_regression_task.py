"""Any data as a regression: one scale, mean 0, and scores that know the truth."""

from dataclasses import replace

import pytest
import torch

from parnassus.data import DataError, RegressionTask, diabetes, load_digits

CPU = torch.device("cpu")


def test_pictures_get_mean_0_and_length_1_and_classes_columns_of_mean_0() -> None:
    task = RegressionTask.of(load_digits(), 50, 20, kind=torch.float64, device=CPU)
    assert (task.x.shape, task.t.shape, task.unseen.shape) == ((50, 64), (50, 10), (20, 64))
    torch.testing.assert_close(task.x.mean(1), torch.zeros(50, dtype=torch.float64))
    torch.testing.assert_close(task.x.norm(dim=1), torch.ones(50, dtype=torch.float64))
    torch.testing.assert_close(task.t.mean(0), torch.zeros(10, dtype=torch.float64))
    torch.testing.assert_close((task.t + task.offset).sum(1), torch.ones(50, dtype=torch.float64))
    right = torch.nn.functional.one_hot(task.truth, 10).double() - task.offset
    assert task.score(right) == 1.0
    assert task.score(right.roll(1, 1)) == 0.0
    assert task.scored_as == "share named rightly"


def test_columns_and_numbers_are_standardised_by_the_training_part() -> None:
    task = RegressionTask.of(diabetes(), 10_000, 10_000, kind=torch.float32, device=CPU)
    torch.testing.assert_close(task.x.square().sum(1).mean(), torch.tensor(1.0), rtol=0.01, atol=0)
    torch.testing.assert_close(task.t.std(0, correction=0), torch.ones(1))
    assert task.score(task.truth) == 1.0
    assert task.score(task.truth.mean(0).expand_as(task.truth)) == pytest.approx(0.0, abs=1e-6)
    assert task.scored_as == "share of variance explained, R²"


def test_data_without_targets_get_a_sentence() -> None:
    data = load_digits()
    bare = replace(data, train=replace(data.train, y=None))
    with pytest.raises(DataError, match="has no targets or no test part"):
        RegressionTask.of(bare, 10, 10, kind=torch.float32, device=CPU)
