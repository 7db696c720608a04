"""The programs of exported models of tables and texts."""

from functools import partial
from typing import cast

import torch
from torch import nn

from parnassus.shapley.commands.predictors import PredictingExperiment
from parnassus.train.export import Program, Programs, example_tokens
from parnassus.train.trained import TrainedRun


def row_programs(model: nn.Module, trained: TrainedRun) -> Programs:
    """The predictions of an experiment for rows of its table, which the model standardises itself."""
    facts = trained.folder.read_json("model.json")
    columns, mean, std = (cast("list[float]", facts[key]) for key in ("columns", "mean", "std"))
    rows = torch.tensor(mean) + torch.tensor(std) * torch.linspace(-1, 1, 2 * len(columns)).view(2, -1)
    predict = partial(cast("PredictingExperiment", trained.experiment).predict, model)
    about = "rows with the `columns` of config.json, not standardised → probabilities of its `classes`, or a quantity"
    return {"predict": Program(predict, {"rows": rows}, ("prediction",), about)}


def sentiment_programs(model: nn.Module, _: TrainedRun) -> Programs:
    """The log-odds of texts."""
    vocabulary = next(each for each in model.modules() if isinstance(each, nn.Embedding)).num_embeddings
    about = "tokens, 0 is padding → log-odds of positive sentiment"
    tokens = example_tokens(vocabulary, 8)
    return {"log_odds": Program(model, {"tokens": tokens}, ("log_odds",), about, {"tokens": {1: "time"}})}
