"""Deterministic splits of examples into train and test."""

from dataclasses import replace

import torch
from jaxtyping import Int
from torch import Tensor

from parnassus.data.splits import Dataset, Split, permutation


def stratified_split(labels: Int[Tensor, " rows"], test: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Row numbers of train and test, stratified by class, in file order.

    Counts per class are rounded by the largest remainder method, so that exactly `test` rows are held out.
    """
    if not 0 <= test <= len(labels):
        raise ValueError(f"test must be from 0 to the number of rows; got test={test}, rows={len(labels)}")
    groups = labels.unique(return_inverse=True)[1]
    counts = torch.bincount(groups)
    exact = counts.double() * test / len(labels)
    test_counts = exact.floor().long()
    missing = test - int(test_counts.sum())
    test_counts[(exact - test_counts).argsort(descending=True, stable=True)[:missing]] += 1
    is_test = torch.zeros(len(labels), dtype=torch.bool)
    for group, count in enumerate(test_counts.tolist()):
        rows = (groups == group).nonzero()[:, 0]
        is_test[rows[permutation(len(rows), seed, group)[:count]]] = True
    return (~is_test).nonzero()[:, 0], is_test.nonzero()[:, 0]


def train_test_dataset(
    x: Tensor,
    y: Tensor | None,
    *,
    name: str,
    test: int,
    classes: tuple[str, ...] = (),
    about: str = "",
    columns: tuple[str, ...] = (),
    target: str = "",
    seed: int = 0,
) -> Dataset:
    """A data set with `test` rows held out: stratified if y contains class labels, otherwise at random."""
    has_classes = y is not None and not y.is_floating_point() and y.ndim == 1
    groups = y if y is not None and has_classes else torch.zeros(len(x), dtype=torch.long)
    train_rows, test_rows = stratified_split(groups, test, seed)
    train, held_out = (Split(x[rows], None if y is None else y[rows]) for rows in (train_rows, test_rows))
    return Dataset(name, train, held_out, classes, about, columns, target)


def mix_sorted_classes(dataset: Dataset, seed: int = 0) -> Dataset:
    """The data set with its examples in random order, if they are sorted by class, as those of folders are.

    So the first examples, which figures show and subsets consist of, are of mixed classes.
    """
    if len(dataset.classes) < 2:
        return dataset
    train, test = (_mix_sorted(split, seed) for split in (dataset.train, dataset.test))
    return replace(dataset, train=train, test=test)


def _mix_sorted(split: Split, seed: int) -> Split:
    y = split.y
    if y is None or y.ndim != 1 or int((y[1:] != y[:-1]).sum()) >= len(y.unique()) or len(y) <= len(y.unique()):
        return split
    order = permutation(len(y), seed, 0)
    return Split(split.x[order], y[order])


def standardise_features(dataset: Dataset) -> Dataset:
    """Scale every feature to mean 0 and variance 1 over the training rows; constant features become 0."""
    mean, std = dataset.train.x.mean(0), dataset.train.x.std(0, correction=0)
    std = torch.where(std > 0, std, 1.0)
    return dataset.map(lambda x: (x - mean) / std)
