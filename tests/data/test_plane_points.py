from pathlib import Path

import pytest
import torch

from parnassus.data import DataError, SampledPoints, open_points
from parnassus.data.built_in.densities import moons_log_prob
from parnassus.data.built_in.toy import moons
from parnassus.data.plane_points import points_and_log_density


def test_open_points_reads_two_columns(tmp_path: Path) -> None:
    table = tmp_path / "points.csv"
    table.write_text("".join(f"{k / 7},{k / 3}\n" for k in range(50)))
    data = open_points(str(table))
    assert data.shape == (2,)
    assert data.train.y is None
    torch.testing.assert_close(data.train.x[:, 1], 7 / 3 * data.train.x[:, 0])


def test_column_names_are_kept(tmp_path: Path) -> None:
    table = tmp_path / "points.csv"
    table.write_text("east,north\n" + "".join(f"{k / 7},{k / 3}\n" for k in range(50)))
    data = open_points(str(table))
    assert (data.columns, data.target) == (("east", "north"), "")


def test_data_that_are_not_points_raise_data_error() -> None:
    assert open_points("moons").shape == (2,)
    with pytest.raises(DataError, match=r"digits must be points in the plane; its examples have shape \(1, 8, 8\)"):
        open_points("digits")


def test_sampled_points_depend_only_on_seed_step_and_rank() -> None:
    batches = SampledPoints(moons, 64, 10, torch.device("cpu"))
    assert len(batches) == 10
    first = batches.at(3, 0, 0, 1)
    assert first.shape == (64, 2)
    assert torch.equal(first, batches.at(3, 0, 0, 1))
    for other in (batches.at(4, 0, 0, 1), batches.at(3, 1, 0, 1)):
        assert not torch.equal(first, other)
    assert not torch.equal(batches.at(3, 0, 0, 2), batches.at(3, 0, 1, 2))
    assert len(batches.at(3, 0, 1, 2)) == 32


def test_moons_have_their_own_units_and_a_known_density() -> None:
    data, log_density = points_and_log_density("moons")
    assert len(data.train) == 50_000
    assert log_density is moons_log_prob


def test_points_without_a_known_density_are_standardised() -> None:
    data, log_density = points_and_log_density("rings")
    torch.testing.assert_close(data.train.x.std(0, correction=0), torch.ones(2))
    assert log_density is None
