"""Softmax, one-hot labels and cross-entropy from logits (book sec. 1.4). Classes are numbered from 0, not from 1."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.errors import check_indices, check_same_shape


def softmax(z: Float[Tensor, "*batch classes"]) -> Float[Tensor, "*batch classes"]:
    """softmax_i(z) = exp(z_i) / Σ_j exp(z_j), over the last axis (book eq. 1.19).

    The maximum is subtracted first, which leaves the quotient unchanged and prevents overflow.
    """
    exponentials = torch.exp(z - z.amax(-1, keepdim=True))
    return exponentials / exponentials.sum(-1, keepdim=True)


def softmax_jacobian(z: Float[Tensor, "*batch classes"]) -> Float[Tensor, "*batch classes classes"]:
    """∂p_i/∂z_j = p_i (δ_ij − p_j), that is diag(p) − p pᵀ with p = softmax(z)."""
    p = softmax(z)
    return torch.diag_embed(p) - p[..., :, None] * p[..., None, :]


def log_softmax(z: Float[Tensor, "*batch classes"]) -> Float[Tensor, "*batch classes"]:
    """z_i − log Σ_j exp(z_j), finite also where softmax underflows to 0.

    The maximum is subtracted first: the difference of two large numbers would lose the digits of the result.
    """
    z = z - z.detach().amax(-1, keepdim=True)
    return z - z.logsumexp(-1, keepdim=True)


def one_hot(labels: Int[Tensor, "*batch"], classes: int) -> Float[Tensor, "*batch classes"]:
    """y_i = 1 where i is the label, else 0 (book sec. 1.4)."""
    check_indices(classes, labels=labels)
    return (labels[..., None] == torch.arange(classes, device=labels.device)).to(torch.get_default_dtype())


def cross_entropy(logits: Float[Tensor, "*batch classes"], labels: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """−log softmax_k(z) of each example, k its label (book eq. 1.20 with a one-hot y)."""
    _check_one_label_per_row(logits, labels)
    try:
        return -log_softmax(logits).gather(-1, labels[..., None])[..., 0]
    except RuntimeError:  # checked only on failure: reading the labels would synchronise with the device at every step
        check_indices(logits.shape[-1], labels=labels)
        raise


def soft_cross_entropy(
    logits: Float[Tensor, "*batch classes"], probabilities: Float[Tensor, "*batch classes"]
) -> Float[Tensor, "*batch"]:
    """−Σ_i y_i log softmax_i(z) of each example, for any distribution y over the classes (book eq. 1.20)."""
    check_same_shape(logits=logits, probabilities=probabilities)
    return -(probabilities * log_softmax(logits)).sum(-1)


def accuracy(logits: Float[Tensor, "batch classes"], labels: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
    """Fraction of examples whose largest logit is that of their label (book sec. 1.4)."""
    _check_one_label_per_row(logits, labels)
    return (logits.argmax(-1) == labels).to(logits.dtype).mean()


def accuracy_per_class(
    logits: Float[Tensor, "batch classes"], labels: Int[Tensor, " batch"]
) -> Float[Tensor, " classes"]:
    """Accuracy within each class; NaN for a class without examples."""
    _check_one_label_per_row(logits, labels)
    members = one_hot(labels, logits.shape[-1])
    correct = (logits.argmax(-1) == labels).to(members.dtype)
    return (correct @ members) / members.sum(0)


def _check_one_label_per_row(logits: Tensor, labels: Tensor) -> None:
    if labels.shape != logits.shape[:-1]:
        raise ValueError(
            f"labels must have the shape of logits without the last axis; got {(*labels.shape,)} and {(*logits.shape,)}"
        )
