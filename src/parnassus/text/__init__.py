"""Text as tokens, and choosing the next one: tokenisers, and one way to decode for every model of sequences."""

from parnassus.text.reading import Reader, State

__all__ = ["Reader", "State"]
