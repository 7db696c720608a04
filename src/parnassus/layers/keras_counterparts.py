"""Keras calls and their counterparts in torch, with the defaults in which they differ (Diehl sec. 0).

The notes use Keras 2.12. Statements about Keras are from its documentation; those about torch are checked by a claim.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Counterpart:
    """A Keras call of the notes, its counterparts in torch and in parnassus, and differences of their defaults."""

    keras: str
    torch: str
    parnassus: str = ""
    differences: str = ""


COUNTERPARTS = (
    Counterpart("tf.einsum(equation, …)", "torch.einsum(equation, …)"),
    Counterpart(
        "Dense(n, activation)",
        "nn.Linear(m, n), then the activation",
        parnassus="parnassus.layers.dense.Dense",
        differences="the kernel is (inputs, outputs) as in parnassus, torch's weight its transpose; Keras initialises "
        "it uniformly on ±√(6/(m + n)) with bias 0 (Glorot), torch and parnassus weight and bias uniformly on ±1/√m",
    ),
    Counterpart("Activation('relu')", "nn.ReLU()", parnassus="parnassus.layers.activations.relu"),
    Counterpart(
        "Dropout(rate)",
        "nn.Dropout(p)",
        differences="none: both drop with this probability and scale the rest by 1/(1 − p) in training",
    ),
    Counterpart(
        "Conv2D(filters, 1, strides)",
        "nn.Conv2d(channels, filters, 1, stride)",
        differences="channels are the last axis in Keras, the second in torch",
    ),
    Counterpart(
        "BatchNormalization(axis, epsilon=1.001e-5)",
        "nn.BatchNorm1d(c, eps=1.001e-5), BatchNorm2d",
        differences="ε is 1e-3 in Keras, 1e-5 in torch; momentum 0.99 is the weight of the old mean in Keras, 0.1 that "
        "of the new one in torch; on (batch, n, c) Keras pools over batch and n, torch needs (batch, c, n) for that",
    ),
    Counterpart("Add()([x, y])", "x + y"),
    Counterpart("Sequential([…])", "nn.Sequential(…)", parnassus="parnassus.layers.dense.mlp"),
)
"""Every Keras call of the notes, in order of first use."""
