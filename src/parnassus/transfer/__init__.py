"""Transfer: what was learned on one task, used on another."""

from parnassus.transfer.freezing import Tuned, freeze, thaw
from parnassus.transfer.reprogramming import Reprogrammed, picture_frame

__all__ = ["Reprogrammed", "Tuned", "freeze", "picture_frame", "thaw"]
