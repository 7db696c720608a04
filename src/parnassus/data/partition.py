"""Deterministic splits of examples into train and test."""

from dataclasses import replace

import torch
from jaxtyping import Int
from torch import Tensor

from parnassus.data.splits import Dataset, Split, permutation


def stratified_split(labels: Int[Tensor, " rows"], test: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Row numbers of train and test, stratified by class, in file order.

    Shares are rounded by largest remainder, so exactly `test` rows are drawn.
    """
    if not 0 <= test <= len(labels):
        raise ValueError(f"test must be from 0 to the number of rows; got test={test}, rows={len(labels)}")
    groups = labels.unique(return_inverse=True)[1]
    counts = torch.bincount(groups)
    exact = counts.double() * test / len(labels)
    shares = exact.floor().long()
    missing = test - int(shares.sum())
    shares[(exact - shares).argsort(descending=True, stable=True)[:missing]] += 1
    chosen = torch.zeros(len(labels), dtype=torch.bool)
    for group, share in enumerate(shares.tolist()):
        rows = (groups == group).nonzero()[:, 0]
        chosen[rows[permutation(len(rows), seed, group)[:share]]] = True
    return (~chosen).nonzero()[:, 0], chosen.nonzero()[:, 0]


def hold_out(
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
    """A dataset with `test` rows held out: stratified where y holds class labels, at random otherwise."""
    labelled = y is not None and not y.is_floating_point() and y.ndim == 1
    groups = y if y is not None and labelled else torch.zeros(len(x), dtype=torch.long)
    train_rows, test_rows = stratified_split(groups, test, seed)
    train, held_out = (Split(x[rows], None if y is None else y[rows]) for rows in (train_rows, test_rows))
    return Dataset(name, train, held_out, classes, about, columns, target)


def standardise_features(dataset: Dataset) -> Dataset:
    """Scale every feature to mean 0 and variance 1 over the training rows; constant features become 0."""
    mean, std = dataset.train.x.mean(0), dataset.train.x.std(0, correction=0)
    std = torch.where(std > 0, std, 1.0)
    train, test = (replace(split, x=(split.x - mean) / std) for split in (dataset.train, dataset.test))
    return replace(dataset, train=train, test=test)
