"""Claims about squared error, softmax and cross-entropy (book secs. 1.3 and 1.4)."""

from collections.abc import Callable
from math import log

import torch
from torch import Tensor, nn
from torch.func import jacrev, vmap
from torch.nn import functional

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal, raises, runs
from parnassus.data import load_digits
from parnassus.losses.classification import (
    accuracy,
    accuracy_per_class,
    cross_entropy,
    log_softmax,
    one_hot,
    soft_cross_entropy,
    softmax,
    softmax_jacobian,
)
from parnassus.losses.regression import mean_squared_error, squared_error
from parnassus.probability.divergences.total_variation import lp_distance, total_variation


def sample_logits(count: int = 40, classes: int = 10, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(count, classes, generator=generator, dtype=torch.float64)
    return logits, torch.randint(classes, (count,), generator=generator)


@claim("B1.3-3")
def mean_squared_error_is_summed_over_outputs() -> Evidence:
    """The book's mean squared error is n_out times torch's, which also averages over outputs (book eq. 1.12)."""
    prediction, _ = sample_logits(50, 7)
    target, _ = sample_logits(50, 7, seed=1)
    by_hand = torch.stack([(y - f) @ (y - f) for y, f in zip(target, prediction, strict=True)])
    return all_of(
        each=close(squared_error(prediction, target), by_hand, rtol=1e-12),
        torch_times_outputs=close(
            mean_squared_error(prediction, target), 7 * functional.mse_loss(prediction, target), rtol=1e-12
        ),
        scalar_outputs_agree=close(
            mean_squared_error(prediction[:, 0], target[:, 0]),
            functional.mse_loss(prediction[:, 0], target[:, 0]),
            rtol=1e-12,
        ),
    )


@claim("B1.4-5")
def softmax_is_a_shift_invariant_distribution() -> Evidence:
    """Softmax sums to one, is invariant to a constant added to z, and is stable for |z| = 10⁴ (book eq. 1.19)."""
    z, _ = sample_logits()
    huge = 1e4 * torch.eye(4, dtype=torch.float64) - 1e4 * torch.eye(4, dtype=torch.float64).flip(0)
    naive = huge.exp() / huge.exp().sum(-1, keepdim=True)
    return all_of(
        formula=close(softmax(z), z.exp() / z.exp().sum(-1, keepdim=True), atol=1e-15),
        sums_to_one=close(softmax(z).sum(-1), 1.0, atol=1e-14),
        positive=greater_equal(softmax(z), 1e-12),
        shift=close(softmax(z + 1_000), softmax(z), atol=1e-12),
        stable=close(softmax(huge), torch.eye(4, dtype=torch.float64)),
        printed_form_is_nan=close(naive.diagonal().isnan().double(), 1.0),
    )


@claim("B1.4-5")
def the_softmax_jacobian_is_diag_p_minus_outer_product() -> Evidence:
    """∂softmax/∂z = diag(p) − p pᵀ: symmetric, with constant vectors in its null space (book sec. 1.4)."""
    z, _ = sample_logits()
    jacobian = softmax_jacobian(z)
    return all_of(
        autograd=close(jacobian, vmap(jacrev(softmax))(z), atol=1e-14),
        symmetric=close(jacobian, jacobian.mT),
        null_space=close(jacobian.sum(-1), 0.0, atol=1e-14),
    )


@erratum("B1.4-6", printed="classes 1 … 10", right="classes 0 … 9")
def class_indices_start_at_zero() -> Correction:
    """The text numbers the ten classes from 1; the data and every loss number them from 0 (book sec. 1.4)."""
    labels = load_digits().train.y
    assert labels is not None
    return Correction(
        printed=close(labels.unique(), torch.arange(1, 11)),
        corrected=all_of(
            labels=close(labels.unique(), torch.arange(10)),
            one_hot=close(one_hot(labels, 10).argmax(-1), labels),
            one_entry_is_one=close(one_hot(labels, 10).sum(-1), 1.0),
            label_ten_raises=raises(ValueError, lambda: one_hot(labels + 1, 10)),
        ),
    )


@claim("B1.4-6", "B1.4-7")
def cross_entropy_is_the_negative_log_probability_of_the_label() -> Evidence:
    """−Σ y_i log softmax_i(z) = −log softmax_k(z) ≥ 0 for a one-hot y; ln 10 for ten equal logits (book eq. 1.20)."""
    z, k = sample_logits()
    picked = -softmax(z)[torch.arange(len(k)), k].log()
    return all_of(
        sum_over_classes=close(soft_cross_entropy(z, one_hot(k, 10)), picked, atol=1e-12),
        from_labels=close(cross_entropy(z, k), picked, atol=1e-12),
        torch_loss=close(cross_entropy(z, k).mean(), nn.CrossEntropyLoss()(z, k), rtol=1e-12),
        non_negative=greater_equal(cross_entropy(z, k), 0.0),
        ten_equal_logits=close(
            cross_entropy(torch.full((1, 10), 7.0, dtype=torch.float64), k[:1]), log(10), atol=1e-14
        ),
        finite_where_softmax_is_0=close(cross_entropy(torch.tensor([[0.0, 1e4]]), torch.tensor([0])), 1e4),
    )


@claim("B1.4-7")
def the_gradient_of_cross_entropy_is_softmax_minus_label() -> Evidence:
    """∂ℰ/∂z = softmax(z) − y, the difference between output and one-hot label (book sec. 1.4)."""
    z, k = sample_logits()
    z.requires_grad_()
    (gradient,) = torch.autograd.grad(cross_entropy(z, k).sum(), z)
    return close(gradient, softmax(z) - one_hot(k, 10), atol=1e-14)


@erratum("B1.4-7", printed="logit: what is left of “log it” behind exp", right="logit: the logarithm of odds")
def logits_are_log_odds() -> Correction:
    """Logits are not logarithms of the softmax output; their differences are log-odds (book sec. 1.4)."""
    z, _ = sample_logits()
    p = softmax(z)
    odds = p[:, :, None] / p[:, None, :]
    one = torch.sigmoid(z[:, 0])
    return Correction(
        printed=close(z.exp(), p, rtol=0.1),
        corrected=all_of(
            log_odds_of_two_classes=close(odds.log(), z[:, :, None] - z[:, None, :], atol=1e-11),
            log_odds_of_a_sigmoid=close((one / (1 - one)).log(), z[:, 0], atol=1e-11),
            torch_logit=close(torch.logit(one), z[:, 0], atol=1e-11),
        ),
    )


@erratum("B1.4-7", printed="−Σ y_i z_i: similarity of y and z", right="−Σ y_i log softmax_i(z)")
def cross_entropy_uses_log_probabilities() -> Correction:
    """The text compares y with the logits; the formula uses log-probabilities (book sec. 1.4)."""
    z, k = sample_logits()
    y = one_hot(k, 10)
    loss = cross_entropy(z, k)
    return Correction(
        printed=close(loss, -(y * z).sum(-1), atol=1e-9),
        corrected=all_of(
            log_probabilities=close(loss, -(y * log_softmax(z)).sum(-1), atol=1e-13),
            gap_is_log_sum_exp=close(loss + (y * z).sum(-1), z.logsumexp(-1), atol=1e-13),
        ),
    )


@erratum(
    "B1.4-7", printed="CrossEntropyLoss takes one-hot labels", right="class indices, or floating-point probabilities"
)
def torch_cross_entropy_takes_class_indices() -> Correction:
    """Integer one-hot labels raise an error in torch's CrossEntropyLoss (book sec. 1.4)."""
    z, k = sample_logits()
    onehot = one_hot(k, 10)
    return Correction(
        printed=runs(lambda: nn.CrossEntropyLoss()(z, onehot.long()), unless=RuntimeError),
        corrected=all_of(
            indices=close(nn.CrossEntropyLoss()(z, k), cross_entropy(z, k).mean(), rtol=1e-12),
            probabilities=close(nn.CrossEntropyLoss()(z, onehot.double()), cross_entropy(z, k).mean(), rtol=1e-12),
        ),
    )


@claim("B1.4-12")
def accuracy_is_the_fraction_of_correct_argmax() -> Evidence:
    """Accuracy is the fraction of rows whose argmax is the label, and the class-weighted mean of class accuracies."""
    z, k = sample_logits(400)
    class_fractions = torch.bincount(k, minlength=10) / 400
    by_hand = sum(float(row.argmax()) == float(label) for row, label in zip(z, k, strict=True)) / 400
    return all_of(
        fraction=close(accuracy(z, k), by_hand, atol=1e-12),
        classes=close(class_fractions.double() @ accuracy_per_class(z, k).double(), by_hand, atol=1e-6),
    )


@claim("C-05")
def distances_of_distributions_saturate_and_cross_entropy_does_not() -> Evidence:
    """L¹ is 2(1 − p_y) and total variation half; on a wrong label their gradients vanish (Diehl sec. 1.4)."""
    logits, labels = sample_logits(30, 5)
    target, of_label = one_hot(labels, 5).double(), softmax(logits).gather(1, labels[:, None])[:, 0]
    squares = softmax(logits).square().sum(1) - of_label.square() + (1 - of_label).square()

    def gradient(loss: Callable[[Tensor], Tensor], gap: float) -> Tensor:
        """The gradient's largest entry, where the first class is right and the second leads by `gap`."""
        z = torch.tensor([0.0, gap, 0.0], dtype=torch.float64)
        largest: Tensor = jacrev(loss)(z).abs().max()
        return largest

    right = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)
    losses: dict[str, Callable[[Tensor], Tensor]] = {
        "L1": lambda z: lp_distance(softmax(z), right, order=1.0),
        "L2": lambda z: lp_distance(softmax(z), right, order=2.0),
        "cross_entropy": lambda z: cross_entropy(z, torch.tensor(0)),
    }
    gradients = {name: gradient(loss, 20.0) for name, loss in losses.items()}
    return all_of(
        L1=close(lp_distance(softmax(logits), target, order=1.0), 2 * (1 - of_label), rtol=1e-12),
        L2=close(lp_distance(softmax(logits), target, order=2.0), squares.sqrt(), atol=1e-12),
        total_variation=close(total_variation(softmax(logits), target), 1 - of_label, rtol=1e-12),
        cross_entropy=close(cross_entropy(logits, labels), -of_label.log(), rtol=1e-12),
        vanishing=less_equal(torch.stack([gradients["L1"], gradients["L2"]]), 1e-7),
        not_vanishing=close(gradients["cross_entropy"], 1.0, atol=1e-6),
    )
