"""Recurrent networks: an LSTM language model and a bidirectional LSTM encoder."""

from parnassus.recurrent.encoder import RecurrentEncoder
from parnassus.recurrent.language_model import RecurrentLanguageModel, RecurrentState

__all__ = ["RecurrentEncoder", "RecurrentLanguageModel", "RecurrentState"]
