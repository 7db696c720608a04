"""Value functions of text models whose players are tokens or words, omitted or masked (book sec. 17.0).

    v(S) = f(the tokens of S, in their order)                        omission
    v(S) = f(the tokens of S, mask tokens at the other positions)    masking

Omission makes separate tokens adjacent; masking preserves positions, but the model should have seen mask tokens in
training.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from parnassus.shapley.attributions.batching import batch_size_for
from parnassus.shapley.attributions.model_adapters import ModelError, as_model, as_output_rows, prediction_function
from parnassus.shapley.attributions.value_functions import check_groups, expand_groups

Token = TypeVar("Token", str, int)
TextModel: TypeAlias = Callable[[list[list[Token]]], Float[Tensor, "count outputs"]]
"""Many texts, each a list of tokens of any length, to one row of outputs each."""
WORD_PATTERN = re.compile(r"(?:\w+(?:['’]\w+)*|[^\w\s])\s*")
"""A word or a punctuation mark, with the following space."""


@dataclass(frozen=True)
class MaskedText(Generic[Token]):
    """The value function of one text; its players are its tokens, or `groups` of tokens.

    `replacements` are the mask tokens of the positions; without them missing tokens are omitted. The input to explain
    is `full_input`, z′ = (1, …, 1): all players present. A player with 0 is missing from every coalition.

    >>> text = MaskedText(lambda texts: torch.tensor([[float(len(each))] for each in texts]), ("a", "good", "film"))
    >>> text.keep_tokens([True, False, True])
    ['a', 'film']
    """

    model: TextModel[Token]
    tokens: Sequence[Token]
    replacements: Sequence[Token] | None = None
    groups: Bool[Tensor, "players tokens"] | None = None

    def __post_init__(self) -> None:
        if not len(self.tokens):
            raise ValueError("tokens must not be empty")
        if self.replacements is not None and len(self.replacements) != len(self.tokens):
            raise ValueError(
                "replacements must be one per token, or None; "
                f"got {len(self.replacements)} for {len(self.tokens)} tokens"
            )
        if self.groups is not None:
            check_groups(self.groups, len(self.tokens))

    @property
    def players(self) -> int:
        return len(self.tokens) if self.groups is None else len(self.groups)

    @property
    def full_input(self) -> Float[Tensor, "1 players"]:
        """The input with all players present."""
        return torch.ones(1, self.players, dtype=torch.float64)

    def keep_tokens(self, known: Sequence[bool]) -> list[Token]:
        """The text with all other tokens omitted or replaced."""
        if self.replacements is None:
            return [token for token, is_known in zip(self.tokens, known, strict=True) if is_known]
        triples = zip(self.tokens, self.replacements, known, strict=True)
        return [token if is_known else replacement for token, replacement, is_known in triples]

    def __call__(
        self, x: Float[Tensor, "rows players"], coalitions: Bool[Tensor, "count players"]
    ) -> Float[Tensor, "rows outputs count"]:
        worths, text = [], list(self.tokens)
        input_bytes = sum(len(token) if isinstance(token, str) else 8 for token in text)
        batch_size = batch_size_for(
            lambda n: self.model([text] * n),
            len(x) * len(coalitions),
            input_bytes=input_bytes,
            device=torch.device("cpu"),
        )
        for present in (x > 0).cpu():
            known = expand_groups(coalitions.cpu() & present, self.groups)
            batches = known.split(batch_size)
            outputs = [self.model([self.keep_tokens(row) for row in batch.tolist()]) for batch in batches]
            worths.append(torch.cat(outputs).double().mT)
        return torch.stack(worths).to(x.device)


def masked_words(predictor: object, text: str, mask_token: str | None = None) -> MaskedText[str]:
    """The value function of a text for a model of strings: a function of a list of them, or a scikit-learn estimator.

    Its players are words and punctuation marks. Missing ones are replaced by `mask_token`, or by default omitted.
    """
    words = split_keeping_spaces(text)
    if mask_token is None:
        return MaskedText(string_model(predictor), words)
    before = [" " if ahead.strip() == ahead else "" for ahead in [" ", *words[:-1]]]  # a mark follows without a space
    behind = [word[len(word.rstrip()) :] or " " for word in words]
    replacements = [start + mask_token + end for start, end in zip(before, behind, strict=True)]
    return MaskedText(string_model(predictor), words, replacements)


def masked_ids(
    predictor: object, ids: Int[Tensor, " time"], *, mask_token_id: int | None = None, pad_token_id: int | None = None
) -> MaskedText[int]:
    """The value function of a text for a model of token ids (count, time), such as a network with an embedding.

    Missing tokens are replaced by `mask_token_id`, or omitted by default, see `token_id_model` for lengths.
    """
    replacements = None if mask_token_id is None else [mask_token_id] * len(ids)
    return MaskedText(token_id_model(predictor, pad_token_id), ids.tolist(), replacements)


def split_keeping_spaces(text: str) -> list[str]:
    """Words and punctuation marks, each with the following space; joined they are the stripped text."""
    return WORD_PATTERN.findall(text.strip())


def string_model(predictor: object) -> TextModel[str]:
    """A model of many strings as a model of many lists of words, which are concatenated."""
    function = prediction_function(predictor)

    def evaluate(texts: list[list[str]]) -> Tensor:
        return as_output_rows(function(["".join(words).strip() for words in texts]), len(texts))

    return evaluate


def token_id_model(predictor: object, pad_token_id: int | None = None) -> TextModel[int]:
    """A model of ids (count, time) as a model of many lists of ids.

    Shorter texts are padded with `pad_token_id`, which the model must ignore. Without it, texts of equal length form a
    batch: slower, and correct for any model.
    """
    model = as_model(predictor)

    def evaluate_padded(texts: list[list[int]]) -> Tensor:
        length = max(map(len, texts))
        return model(torch.tensor([ids + [pad_token_id] * (length - len(ids)) for ids in texts]))

    def evaluate_by_length(texts: list[list[int]]) -> Tensor:
        lengths = torch.tensor([len(ids) for ids in texts])
        outputs: dict[int, Tensor] = {}
        for length in lengths.unique().tolist():
            rows = (lengths == length).nonzero()[:, 0].tolist()
            ids = torch.tensor([texts[row] for row in rows], dtype=torch.long).view(len(rows), length)
            outputs |= zip(rows, model(ids) if length else _output_for_empty_text(model, ids), strict=True)
        return torch.stack([outputs[row] for row in range(len(texts))])

    return evaluate_by_length if pad_token_id is None else evaluate_padded


def _output_for_empty_text(
    model: Callable[[Tensor], Tensor], ids: Int[Tensor, "count 0"]
) -> Float[Tensor, "count outputs"]:
    """The model's output for a text without tokens, which many models do not accept."""
    try:
        return model(ids)
    except (RuntimeError, ValueError, IndexError) as error:
        raise ModelError(
            f"the model fails on a text with all tokens omitted ({error}); give mask_token_id or pad_token_id"
        ) from error
