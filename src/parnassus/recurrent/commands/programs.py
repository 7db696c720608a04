"""The programs of exported recurrent language models."""

from typing import cast

import torch
from torch import Tensor, nn

from parnassus.recurrent.language_model import RecurrentLanguageModel
from parnassus.train.export import Program, Programs, ProgramsOf, example_tokens
from parnassus.train.trained import TrainedRun


def recurrent_language_model_programs(model: RecurrentLanguageModel, _: TrainedRun) -> Programs:
    """One step: the loop over the tokens is the caller's, so that texts may have any length."""

    def step(token: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, ...]:
        state = (hidden.transpose(0, 1).contiguous(), cell.transpose(0, 1).contiguous())
        output, (hidden, cell) = model.network(model.embedding(token), state)
        return model.output(output[:, -1]), hidden.transpose(0, 1), cell.transpose(0, 1)

    zeros = torch.zeros(2, model.network.num_layers, model.network.hidden_size)
    inputs = {"token": example_tokens(model.embedding.num_embeddings, 1), "hidden": zeros, "cell": zeros}
    about = "a token and the state before it, zeros at first → logits of the next token and the state"
    return {"step": Program(step, inputs, ("logits", "hidden_next", "cell_next"), about)}


PROGRAMS = cast("dict[type[nn.Module], ProgramsOf]", {RecurrentLanguageModel: recurrent_language_model_programs})
