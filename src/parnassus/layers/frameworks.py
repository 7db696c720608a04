"""From Keras calls to torch ones: the counterparts, and the defaults in which they differ (Diehl sec. 0).

The notes compute with Keras 2.12. What stands here about Keras is from its documentation; what stands here about
torch is checked by a claim.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Counterpart:
    """A Keras call of the notes, the same in torch, our own where we have one, and what differs by default."""

    keras: str
    torch: str
    ours: str = ""
    differs: str = ""


COUNTERPARTS = (
    Counterpart("tf.einsum(equation, …)", "torch.einsum(equation, …)"),
    Counterpart(
        "Dense(n, activation)",
        "nn.Linear(m, n), then the activation",
        ours="parnassus.layers.dense.Dense",
        differs="the kernel is (inputs, outputs), as ours, and torch's weight its transpose; Keras starts it uniform "
        "on ±√(6/(m + n)) with bias 0 (Glorot), torch and ours uniform on ±1/√m, the bias too",
    ),
    Counterpart("Activation('relu')", "nn.ReLU()", ours="parnassus.layers.activations.relu"),
    Counterpart(
        "Dropout(rate)",
        "nn.Dropout(p)",
        differs="both drop with this probability and scale the rest by 1/(1 − p) while training",
    ),
    Counterpart(
        "Conv2D(filters, 1, strides)",
        "nn.Conv2d(channels, filters, 1, stride)",
        differs="channels are the last axis in Keras, the second in torch",
    ),
    Counterpart(
        "BatchNormalization(axis, epsilon=1.001e-5)",
        "nn.BatchNorm1d(c, eps=1.001e-5), BatchNorm2d",
        differs="ε is 1e-3 in Keras, 1e-5 in torch; momentum 0.99 is the weight of the old mean in Keras, 0.1 that of "
        "the new one in torch; on (batch, n, c) Keras pools over batch and n, torch wants (batch, c, n) for that",
    ),
    Counterpart("Add()([x, y])", "x + y"),
    Counterpart("Sequential([…])", "nn.Sequential(…)", ours="parnassus.layers.dense.mlp"),
)
"""Every Keras call that the notes make, in the order in which they meet it."""
