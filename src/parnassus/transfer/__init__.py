"""Transfer learning: freezing, fine-tuning and reprogramming."""

from parnassus.transfer.freezing import TransferClassifier, freeze, unfreeze
from parnassus.transfer.reprogramming import ReprogrammedModel, learned_frame

__all__ = ["ReprogrammedModel", "TransferClassifier", "freeze", "learned_frame", "unfreeze"]
