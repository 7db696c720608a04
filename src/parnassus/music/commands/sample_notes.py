"""Flags of `parnassus sample` that all models of music share. Pieces are written as names of notes, with bar lines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from parnassus.text.sampling import TokenSampler, skip_special_tokens, token_sampler
from parnassus.train import NonNegative, Positive, UnitInterval


@dataclass(frozen=True)
class NoteSample:
    num_samples: Positive[int] = 4  # number of pieces
    temperature: NonNegative[float] = 1.0  # softmax temperature; 0 is greedy decoding
    top_k: Positive[int] | None = None  # sample from the k most probable notes
    top_p: UnitInterval | None = None  # nucleus sampling: smallest set of notes with this total probability

    def sampler(self, special: int = 0) -> TokenSampler:
        """The sampler of these flags; it never selects the first `special` tokens."""
        chosen = token_sampler(temperature=self.temperature, top_k=self.top_k, top_p=self.top_p)
        return skip_special_tokens(chosen, special)


def format_pieces(pieces: Sequence[Sequence[str]]) -> Iterator[str]:
    """Numbered pieces, each given as its lines, with an empty line between them."""
    for number, lines in enumerate(pieces, 1):
        separator = "\n" if number > 1 else ""
        yield f"{separator}piece {number}\n" + "".join(f"{line}\n" for line in lines)
