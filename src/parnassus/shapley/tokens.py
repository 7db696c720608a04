"""Texts explained by tokens or words: what is missing is left out, or something stands in for it (book sec. 17.0).

    v(S) = f(the tokens of S, in their order)                        left out
    v(S) = f(the tokens of S, and a stand-in at every other place)   masked, as a model with a mask token has learned

Leaving out moves words together that were apart; a stand-in keeps the places, but the model should have seen it.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from parnassus.shapley.masking import checked_groups, with_groups
from parnassus.shapley.model import ModelError, answer_rows, as_model, function_of
from parnassus.shapley.portions import together

Token = TypeVar("Token", str, int)
Ask: TypeAlias = Callable[[list[list[Token]]], Float[Tensor, "count outputs"]]
"""Many texts, each a list of tokens, not all of one length; a row of outputs for each."""
WORDS = re.compile(r"(?:\w+(?:['’]\w+)*|[^\w\s])\s*")
"""A word, or a single mark, and the space behind it."""


@dataclass(frozen=True)
class MaskedText(Generic[Token]):
    """The game of one text: its players are its tokens, or `groups` of them that come and go together.

    What is explained is `whole`, z′ = (1, …, 1): everybody is there. A player with 0 is missing from every coalition.
    """

    ask: Ask[Token]
    tokens: Sequence[Token]
    stand_ins: Sequence[Token] | None = None
    groups: Bool[Tensor, "players tokens"] | None = None

    def __post_init__(self) -> None:
        if not len(self.tokens):
            raise ValueError("a text without tokens has nothing to explain; got an empty one")
        if self.stand_ins is not None and len(self.stand_ins) != len(self.tokens):
            raise ValueError(
                f"each token needs a stand-in, or none does; got {len(self.stand_ins)} for {len(self.tokens)} tokens"
            )
        if self.groups is not None:
            checked_groups(self.groups, len(self.tokens))

    @property
    def players(self) -> int:
        return len(self.tokens) if self.groups is None else len(self.groups)

    @property
    def whole(self) -> Float[Tensor, "1 players"]:
        """Everybody is there."""
        return torch.ones(1, self.players, dtype=torch.float64)

    def text(self, known: Sequence[bool]) -> list[Token]:
        """What is left of the text when only these tokens are known."""
        if self.stand_ins is None:
            return [token for token, there in zip(self.tokens, known, strict=True) if there]
        both = zip(self.tokens, self.stand_ins, known, strict=True)
        return [token if there else stand_in for token, stand_in, there in both]

    def __call__(
        self, x: Float[Tensor, "rows players"], coalitions: Bool[Tensor, "count players"]
    ) -> Float[Tensor, "rows outputs count"]:
        worths, whole = [], list(self.tokens)
        size = sum(len(token) if isinstance(token, str) else 8 for token in whole)
        most = together(
            lambda n: self.ask([whole] * n), len(x) * len(coalitions), size=size, device=torch.device("cpu")
        )
        for present in (x > 0).cpu():
            known = with_groups(coalitions.cpu() & present, self.groups)
            parts = [self.ask([self.text(row) for row in part.tolist()]) for part in known.split(most)]
            worths.append(torch.cat(parts).double().mT)
        return torch.stack(worths).to(x.device)


def masked_words(predictor: object, text: str, stand_in: str | None = None) -> MaskedText[str]:
    """The game of a text for a model of texts: a function of a list of strings, or an estimator of scikit-learn.

    Its players are words and marks. A missing one is left out, or `stand_in` is written in its place.
    """
    words = words_with_spaces(text)
    if stand_in is None:
        return MaskedText(of_strings(predictor), words)
    before = [" " if ahead.strip() == ahead else "" for ahead in [" ", *words[:-1]]]  # a mark follows without a space
    behind = [word[len(word.rstrip()) :] or " " for word in words]
    stand_ins = [start + stand_in + end for start, end in zip(before, behind, strict=True)]
    return MaskedText(of_strings(predictor), words, stand_ins)


def masked_ids(
    predictor: object, ids: Int[Tensor, " time"], *, stand_in: int | None = None, padding: int | None = None
) -> MaskedText[int]:
    """The game of a text for a model of ids (count, time), such as a network that begins with an embedding.

    A missing token has the id `stand_in`, or is left out: then texts are of unequal length, see `of_ids`.
    """
    return MaskedText(of_ids(predictor, padding), ids.tolist(), None if stand_in is None else [stand_in] * len(ids))


def words_with_spaces(text: str) -> list[str]:
    """The words and marks of a text, each with the space behind it: joined, they are the text without outer space."""
    return WORDS.findall(text.strip())


def of_strings(predictor: object) -> Ask[str]:
    """A model of many strings as one of many lists of pieces, which are joined as they stand."""
    function = function_of(predictor)

    def ask(texts: list[list[str]]) -> Tensor:
        return answer_rows(function(["".join(pieces).strip() for pieces in texts]), len(texts))

    return ask


def of_ids(predictor: object, padding: int | None = None) -> Ask[int]:
    """A model of ids (count, time) as one of many lists of ids.

    Shorter texts are filled up with `padding`, which the model must know to overlook. Without it, texts of one length
    are asked together: slower, and right for any model.
    """
    model = as_model(predictor)

    def filled(texts: list[list[int]]) -> Tensor:
        longest = max(map(len, texts))
        return model(torch.tensor([ids + [padding] * (longest - len(ids)) for ids in texts]))

    def by_length(texts: list[list[int]]) -> Tensor:
        lengths = torch.tensor([len(ids) for ids in texts])
        found: dict[int, Tensor] = {}
        for length in lengths.unique().tolist():
            rows = (lengths == length).nonzero()[:, 0].tolist()
            ids = torch.tensor([texts[row] for row in rows], dtype=torch.long).view(len(rows), length)
            found |= zip(rows, model(ids) if length else _nothing(model, ids), strict=True)
        return torch.stack([found[row] for row in range(len(texts))])

    return by_length if padding is None else filled


def _nothing(model: Callable[[Tensor], Tensor], ids: Int[Tensor, "count 0"]) -> Float[Tensor, "count outputs"]:
    """What the model says when everything is left out, or a sentence: many cannot read nothing."""
    try:
        return model(ids)
    except (RuntimeError, ValueError, IndexError) as error:
        raise ModelError(
            f"the model cannot read a text of which every token is left out ({error}): give a stand-in or a padding"
        ) from error
