"""Claims about binary and multi-class cross-entropy (book sec. 2.1)."""

import torch
from torch import Tensor, nn
from torch.autograd import grad

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal
from parnassus.losses.binary import binary_cross_entropy, binary_cross_entropy_gradient
from parnassus.losses.classification import cross_entropy, one_hot, soft_cross_entropy, softmax
from parnassus.probability.divergences.entropy import cross_entropy_between


def sample_logits_and_targets(count: int = 200) -> tuple[Tensor, Tensor]:
    """Logits in [−50, 50] and targets 0 or 1."""
    generator = torch.Generator().manual_seed(0)
    logits = 100 * torch.rand(count, generator=generator, dtype=torch.float64) - 50
    logits[:2] = torch.tensor([-50.0, 50.0])
    return logits.requires_grad_(), torch.randint(2, (count,), generator=generator).double()


@claim("B2.1-7")
def binary_cross_entropy_gradient_is_output_minus_label() -> Evidence:
    """∂ℰ/∂a_i = sigmoid(a_i) − t_i, also in the numerically stable form, for small and large logits (book eq. 2.6)."""
    a, t = sample_logits_and_targets()
    (gradient,) = grad(binary_cross_entropy(a, t).sum(), a)
    small = a[a.abs() < 10]
    labels = t[a.abs() < 10]
    y = torch.sigmoid(small)
    naive = -(labels * y.log() + (1 - labels) * (1 - y).log())
    large = torch.tensor([-1e4, 1e4], dtype=torch.float64)
    return all_of(
        autograd=close(gradient, torch.sigmoid(a) - t, atol=1e-6),
        closed_form=close(binary_cross_entropy_gradient(a, t), gradient, atol=1e-14),
        as_printed_for_small_logits=close(binary_cross_entropy(small, labels), naive, rtol=1e-9),
        torch_loss=close(binary_cross_entropy(a, t).sum(), nn.BCEWithLogitsLoss(reduction="sum")(a, t), rtol=1e-13),
        large_logit_wrong=close(binary_cross_entropy(large, torch.tensor([1.0, 0.0]).double()), 1e4),
        large_logit_right=close(binary_cross_entropy(large, torch.tensor([0.0, 1.0]).double()), 0.0),
    )


@claim("B2.1-7")
def the_printed_binary_cross_entropy_overflows() -> Evidence:
    """−t log y − (1 − t) log(1 − y) with y = sigmoid(a) overflows to ∞ at a = 50, t = 0 (book eq. 2.4)."""
    a, t = torch.tensor(50.0, dtype=torch.float64), torch.tensor(0.0, dtype=torch.float64)
    through_y = -(1 - t) * (1 - torch.sigmoid(a)).log()
    return all_of(
        through_y=close(through_y, torch.inf), from_the_logit=close(binary_cross_entropy(a, t), 50.0, atol=1e-12)
    )


@claim("B2.1-8")
def two_class_softmax_is_a_sigmoid() -> Evidence:
    """Softmax over (a, 0) is (sigmoid(a), 1 − sigmoid(a)), with the same loss and the same gradient (book ex. 2.1)."""
    a, t = sample_logits_and_targets()
    z = torch.stack([a, torch.zeros_like(a)], -1)
    both = torch.stack([t, 1 - t], -1)
    (gradient,) = grad(soft_cross_entropy(z, both).sum(), a)
    return all_of(
        probabilities=close(softmax(z)[:, 0], torch.sigmoid(a), atol=1e-15),
        loss=close(soft_cross_entropy(z, both), binary_cross_entropy(a, t), atol=1e-13),
        gradient=close(gradient, binary_cross_entropy_gradient(a, t), atol=1e-14),
    )


@claim("B2.1-8", "D1.4.6")
def cross_entropy_gradient_is_prediction_minus_target() -> Evidence:
    """For a label or a distribution over classes, the gradient is ∂ℰ/∂z = softmax(z) − target (book ex. 2.1)."""
    generator = torch.Generator().manual_seed(1)
    z = torch.randn(60, 7, generator=generator, dtype=torch.float64, requires_grad=True)
    labels = torch.randint(7, (60,), generator=generator)
    distributions = torch.randn(60, 7, generator=generator, dtype=torch.float64).softmax(-1)
    (by_labels,) = grad(cross_entropy(z, labels).sum(), z)
    (by_distributions,) = grad(soft_cross_entropy(z, distributions).sum(), z)
    return all_of(
        labels=close(by_labels, softmax(z) - one_hot(labels, 7), atol=1e-14),
        distributions=close(by_distributions, softmax(z) - distributions, atol=1e-14),
        from_probabilities=close(
            soft_cross_entropy(z, distributions), cross_entropy_between(distributions, softmax(z)), rtol=1e-12
        ),
    )


@claim("D1.4.1")
def one_hot_vectors_are_point_masses() -> Evidence:
    """onehot(i) = e_i: all mass on class i, argmax recovers i, and indices start at 0 (Diehl sec. 1.4)."""
    labels = torch.tensor([0, 2, 4, 2])
    rows = one_hot(labels, 5)
    return all_of(
        basis_vectors=close(rows, torch.eye(5)[labels]),
        mass=close(rows.sum(-1), 1.0),
        argmax=close(rows.argmax(-1), labels),
        corner_distance=greater_equal((rows[0] - rows[1]).norm(), 2**0.5 - 1e-6),
    )
