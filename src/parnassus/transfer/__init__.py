"""Transfer learning: freezing, fine-tuning and reprogramming."""

from parnassus.transfer.freezing import TransferClassifier, freeze, unfreeze
from parnassus.transfer.reprogramming import Reprogrammed, learned_frame

__all__ = ["Reprogrammed", "TransferClassifier", "freeze", "learned_frame", "unfreeze"]
