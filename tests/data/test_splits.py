from pathlib import Path

import pytest
import torch
from torch import Tensor

from parnassus.data import Batches, Dataset, Split
from parnassus.data.splits import permutation
from parnassus.runs import RunFolder
from parnassus.train import Options, Run


def numbered_split(rows: int) -> Split:
    return Split(torch.arange(rows)[:, None].float(), torch.arange(rows))


@pytest.mark.parametrize("shuffle", [True, False])
def test_epoch_visits_every_row_once(shuffle: bool) -> None:
    batches = numbered_split(103).batches(10, 22, shuffle=shuffle, partial=True)
    assert batches.steps_per_epoch == 11
    for epoch in range(2):
        rows = torch.cat([batches.at(11 * epoch + step) for step in range(11)]).flatten()
        assert rows.sort().values.tolist() == list(range(103))
        assert (rows.tolist() == list(range(103))) is (not shuffle)


def test_full_batches_drop_the_remainder_of_an_epoch() -> None:
    batches = numbered_split(103).batches(10, 40)
    assert batches.steps_per_epoch == 10
    assert {len(batch) for batch in batches} == {10}
    rows = torch.cat([batches.at(step) for step in range(10)]).flatten().tolist()
    assert len(set(rows)) == 100


def test_batches_depend_only_on_seed_and_step() -> None:
    split = numbered_split(50)
    forward = [split.batches(8, 30).at(step, seed=3) for step in range(30)]
    batches = split.batches(8, 99)
    for step in (29, 0, 17, 6, 5):  # as in a resumed run and across epochs
        assert batches.at(step, seed=3).equal(forward[step])
    assert not batches.at(0, seed=4).equal(forward[0])
    assert not batches.at(6, seed=3).equal(forward[0])  # the next epoch has another order


def test_batches_do_not_change_the_global_generator() -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    list(numbered_split(50).batches(8, 30))
    assert torch.get_rng_state().equal(before)


@pytest.mark.parametrize(("size", "rows", "world_size"), [(12, 100, 3), (12, 7, 4), (64, 64, 1), (8, 104, 8)])
def test_parts_of_all_ranks_form_the_batch(size: int, rows: int, world_size: int) -> None:
    batches = numbered_split(rows).batches(size, 20, partial=True)
    for step in (0, 1, 8, 12):  # with the first arguments, step 8 is the smaller batch
        parts = [batches.at(step, seed=1, rank=rank, world_size=world_size) for rank in range(world_size)]
        assert torch.cat(parts).equal(batches.at(step, seed=1))
        assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_size_larger_than_the_data_selects_all_rows() -> None:
    batches = numbered_split(5).batches(64, 3)
    assert batches.steps_per_epoch == 1
    assert all(len(batch) == 5 for batch in batches)


def test_pairs_keep_rows_together() -> None:
    for x, y in numbered_split(40).pairs(7, 12):
        assert x[:, 0].long().equal(y)


def test_epochs_and_seeds_have_independent_orders() -> None:
    batches = numbered_split(1_000).batches(1_000, 200)
    first_rows = [int(batches.at(step, seed)[0]) for step in range(100) for seed in range(2)]
    assert len(set(first_rows)) > 150


def test_epoch_is_shuffled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    shuffled = []

    def record_permutation(rows: int, seed: int, epoch: int) -> Tensor:
        shuffled.append((seed, epoch))
        return permutation(rows, seed, epoch)

    monkeypatch.setattr("parnassus.data.splits.permutation", record_permutation)
    batches = numbered_split(100).batches(10, 25)
    for step in range(25):
        batches.at(step, seed=3)
    assert shuffled == [(3, 0), (3, 1), (3, 2)]


def test_splits_and_data_sets_have_sizes_and_shapes() -> None:
    split = numbered_split(10)
    assert len(split) == 10
    assert split.take(3).x.flatten().tolist() == [0, 1, 2]
    assert Split(torch.zeros(4, 1, 8, 8)).take(2).y is None
    data = Dataset("numbers", Split(torch.zeros(4, 1, 8, 8)), Split(torch.zeros(2, 1, 8, 8)))
    assert data.shape == (1, 8, 8)
    assert data.to("cpu").test.x.shape == (2, 1, 8, 8)


def test_mapped_data_sets_keep_their_labels() -> None:
    labels = torch.tensor([1, 0])
    data = Dataset("two", Split(torch.ones(2, 3), labels), Split(torch.zeros(2, 3), labels)).map(lambda x: x[:, :2] + 1)
    assert data.shape == (2,)
    assert data.train.y is labels
    torch.testing.assert_close(data.test.x, torch.ones(2, 2))


def test_mapped_batches_keep_rows_sizes_parts_and_epochs() -> None:
    split = numbered_split(103)
    for plain in (split.batches(12, 30), split.batches(12, 30, partial=True), split.batches(400, 3, shuffle=False)):
        mapped = plain.map(torch.neg)
        assert (mapped.rows, mapped.size, mapped.steps, mapped.steps_per_epoch) == (
            103,
            plain.size,
            plain.steps,
            plain.steps_per_epoch,
        )
        for step in (0, 2, 8, 20):
            assert mapped.at(step, seed=5).equal(-plain.at(step, seed=5))
            parts = [mapped.at(step, 5, rank, 4) for rank in range(4)]
            assert torch.cat(parts).equal(-plain.at(step, seed=5))
    with pytest.raises(ValueError, match="size must be a multiple of world_size; got size=12, world_size=5"):
        split.batches(12, 1).map(torch.neg).at(0, rank=0, world_size=5)


def test_pairs_can_be_mapped_to_other_types() -> None:
    assert [int(total) for total in numbered_split(4).pairs(2, 2, shuffle=False).map(lambda pair: pair[1].sum())] == [
        1,
        5,
    ]


def test_random_numbers_of_a_mapping_depend_only_on_seed_and_step(tmp_path: Path) -> None:
    coins = Split(torch.full((40, 3), 0.5)).batches(8, 6).map(torch.bernoulli)

    def batches_of_run(seed: int, name: str) -> list[Tensor]:
        folder = RunFolder.create(tmp_path, name, {})
        run = Run(folder, Options(device="cpu", quiet=True, seed=seed))
        batches = []
        for step, batch in run.steps(coins):
            torch.rand(step + len(name))  # other random numbers in the loop must not matter
            batches.append(batch)
        run.close()
        return batches

    first, repeated, other = batches_of_run(0, "a"), batches_of_run(0, "another"), batches_of_run(1, "b")
    assert all(left.equal(right) for left, right in zip(first, repeated, strict=True))
    assert not all(left.equal(right) for left, right in zip(first, other, strict=True))
    assert not first[0].equal(first[1])


def test_invalid_arguments_raise() -> None:
    split = numbered_split(10)
    with pytest.raises(ValueError, match="size must be a multiple of world_size; got size=10, world_size=3"):
        split.batches(10, 1).at(0, rank=0, world_size=3)
    with pytest.raises(ValueError, match="rank must be from 0"):
        split.batches(10, 1).at(0, rank=2, world_size=2)
    with pytest.raises(ValueError, match="size must be positive"):
        split.batches(0, 1)
    with pytest.raises(ValueError, match="step must not be negative"):
        split.batches(2, 1).at(-1)
    with pytest.raises(ValueError, match="pairs need labels"):
        Split(torch.zeros(3, 1)).pairs(1, 1)
    with pytest.raises(ValueError, match="at least one row"):
        Split(torch.zeros(0, 1)).batches(1, 1)
    with pytest.raises(ValueError, match="same number of rows; got 3 and 2"):
        Split(torch.zeros(3, 1), torch.zeros(2))
    assert isinstance(split.batches(2, 5), Batches)
