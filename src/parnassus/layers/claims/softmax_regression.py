"""Claims about one-hot labels, softmax, cross-entropy and softmax regression (Zhao sec. 4)."""

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn
from torch.func import grad, jacrev, vmap
from torch.nn import functional

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal
from parnassus.data.built_in.toy import TINY_CLASSES, TINY_PROTOTYPES, tiny_images
from parnassus.layers.classifier import dense_classifier, evaluate
from parnassus.layers.dense import affine, count_parameters
from parnassus.layers.linear_models.linear_regression import LinearRegression
from parnassus.layers.linear_models.softmax_regression import (
    SoftmaxRegression,
    cross_entropy_gradient,
    softmax_regression_hessian,
)
from parnassus.losses.classification import accuracy, cross_entropy, one_hot, soft_cross_entropy, softmax
from parnassus.optim.training.minibatches import shuffled_batches
from parnassus.probability.divergences.entropy import cross_entropy_between, entropy


def load_tiny_images(count: int = 600, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Tiny images as rows of four pixels, in double precision, and their labels."""
    images = tiny_images(count, seed=seed)
    assert images.y is not None
    return images.x.flatten(1).double(), images.y


def random_scores(count: int = 40, classes: int = 5) -> tuple[Tensor, Tensor]:
    """Random scores, and soft labels that sum to 1."""
    generator = torch.Generator().manual_seed(0)
    scores = 3 * torch.randn(count, classes, generator=generator, dtype=torch.float64)
    return scores, softmax(torch.randn(count, classes, generator=generator, dtype=torch.float64))


@claim("Z4.1")
def tiny_images_have_three_classes_of_four_pixels() -> Evidence:
    """Each class has a third of the images; their mean is the class prototype (Zhao sec. 4)."""
    x, labels = load_tiny_images(6_000)
    means = torch.stack([x[labels == k].mean(0) for k in range(3)])
    return all_of(
        pixels=close(x.shape[1], 4),
        class_counts=close(torch.bincount(labels), torch.full((len(TINY_CLASSES),), 2_000)),
        prototypes=close(means, torch.tensor(TINY_PROTOTYPES), atol=4 * 0.3 / 2_000**0.5),
    )


@claim("Z4.2")
def one_hot_labels_have_no_order() -> Evidence:
    """One-hot rows equal torch's, sum to 1, are inverted by argmax and have distance √2 (Zhao sec. 4)."""
    labels = torch.randint(3, (50,), generator=torch.Generator().manual_seed(0))
    encoded, corners = one_hot(labels, 3), one_hot(torch.arange(3), 3)
    distances = torch.cdist(corners, corners)[~torch.eye(3, dtype=torch.bool)]
    return all_of(
        torch_agrees=close(encoded, functional.one_hot(labels, 3)),
        sums_to_one=close(encoded.sum(-1), 1.0),
        inverse=close(encoded.argmax(-1), labels),
        basis_vectors=close(corners, torch.eye(3)),
        equal_distances=close(distances, 2**0.5, rtol=1e-6),
    )


@claim("Z4.3")
def least_squares_on_one_hot_labels_sums_to_one() -> Evidence:
    """Least squares on one-hot labels has outputs outside [0, 1]; with a bias they sum to 1 (Zhao sec. 4)."""
    x, labels = load_tiny_images()
    y = one_hot(labels, 3).double()
    torch.manual_seed(0)
    layer = nn.Linear(4, 3).double()
    fits = [LinearRegression.fit(x, y[:, k]) for k in range(3)]
    outputs = torch.stack([fit.predict(x) for fit in fits], 1)
    weight, bias = torch.stack([fit.w for fit in fits], 1), torch.stack([fit.b for fit in fits])
    other_outputs = affine(x, weight + 0.01, bias)
    return all_of(
        one_layer=close(affine(x, layer.weight.T, layer.bias), layer(x), atol=1e-14),
        parameters=close(count_parameters(dense_classifier(4, 3, hidden=())), 15),
        below_zero=less_equal(outputs.min(), -0.1),
        above_one=greater_equal(outputs.max(), 1.05),
        sums_to_one=close(outputs.sum(1), 1.0, atol=1e-12),
        other_weights_do_not=greater_equal((other_outputs.sum(1) - 1).abs().max(), 0.01),
        accuracy=greater_equal(accuracy(outputs, labels), 0.8),
    )


@claim("Z4.4")
def softmax_preserves_order_and_needs_the_shift() -> Evidence:
    """Softmax preserves order; without the shift exp overflows above 709 (above 88 in float32) (Zhao sec. 4)."""
    scores, _ = random_scores()

    def naive(z: Tensor) -> Tensor:
        return z.exp() / z.exp().sum(-1, keepdim=True)

    pairs = torch.tensor([[709.0, 0.0], [710.0, 0.0]], dtype=torch.float64)
    single = torch.tensor([[88.0, 0.0], [89.0, 0.0]])
    return all_of(
        order=close(softmax(scores).argsort(-1), scores.argsort(-1)),
        positive=greater_equal(softmax(scores), 1e-12),
        sums_to_one=close(softmax(scores).sum(-1), 1.0, atol=1e-14),
        shift=close(softmax(scores + 7), softmax(scores), atol=1e-14),
        naive_at_709_and_710=close(naive(pairs)[:, 0].isnan().double(), torch.tensor([0.0, 1.0])),
        naive_at_88_and_89=close(naive(single)[:, 0].isnan().double(), torch.tensor([0.0, 1.0])),
        shifted_at_710=close(softmax(pairs), torch.tensor([[1.0, 0.0], [1.0, 0.0]]), atol=1e-300),
        shifted_at_89=close(softmax(single), torch.tensor([[1.0, 0.0], [1.0, 0.0]]), atol=1e-37),
    )


@claim("Z4.5")
def cross_entropy_is_the_negative_log_likelihood() -> Evidence:
    """−log Π P(y|x) = Σ l(y, ŷ); l = −log ŷ of the label; for soft labels the minimum is H(y) (Zhao sec. 4)."""
    scores, soft = random_scores()
    labels = soft.argmax(-1)
    probabilities = softmax(scores)
    likelihood = torch.stack([row[label] for row, label in zip(probabilities, labels, strict=True)]).prod()
    hard = one_hot(labels, 5).double()
    certain = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)
    perturbed = softmax(soft.log() + 0.1 * scores)
    return all_of(
        product=close(cross_entropy(scores, labels).sum(), -likelihood.log(), rtol=1e-12),
        minus_log_of_label=close(
            cross_entropy_between(hard, probabilities),
            -probabilities.gather(1, labels[:, None])[:, 0].log(),
            rtol=1e-12,
        ),
        soft_labels=close(
            soft_cross_entropy(scores, soft),
            -(soft * (scores - scores.logsumexp(-1, keepdim=True))).sum(-1),
            rtol=1e-12,
        ),
        not_negative=greater_equal(cross_entropy(scores, labels), 0.0),
        zero_when_certain=close(cross_entropy_between(certain, certain), 0.0),
        positive_when_not=greater_equal(
            cross_entropy_between(certain, torch.tensor([0.999, 0.001, 0.0]).double()), 1e-3
        ),
        entropy_at_the_label=close(cross_entropy_between(soft, soft), entropy(soft), rtol=1e-14),
        more_elsewhere=greater_equal(cross_entropy_between(soft, perturbed) - entropy(soft), 0.0),
    )


@claim("Z4.6")
def the_cross_entropy_gradient_is_prediction_minus_label() -> Evidence:
    """L = log Σ exp(o_k) − Σ y_j o_j is convex, with ∂l/∂o = softmax(o) − y, which sums to 0 (Zhao sec. 4)."""
    scores, soft = random_scores()
    three_forms = [
        -(soft * softmax(scores).log()).sum(-1),
        (soft * scores.exp().sum(-1, keepdim=True).log()).sum(-1) - (soft * scores).sum(-1),
        scores.logsumexp(-1) - (soft * scores).sum(-1),
    ]
    gradient = cross_entropy_gradient(scores, soft)
    step = 1e-5 * torch.eye(5, dtype=torch.float64)
    differences = torch.stack(
        [(soft_cross_entropy(scores + h, soft) - soft_cross_entropy(scores - h, soft)) / 2e-5 for h in step], -1
    )
    unnormalised = 2 * soft
    true_gradient = vmap(grad(lambda o, y: -(y * torch.log_softmax(o, -1)).sum()))(scores, unnormalised)
    curvature = vmap(jacrev(jacrev(lambda o, y: torch.logsumexp(o, -1) - (o * y).sum())))(scores, soft)
    x, _ = load_tiny_images(50)
    hessian = softmax_regression_hessian(torch.randn(4, 3, generator=torch.Generator().manual_seed(0)).double(), x)
    return all_of(
        two_forms=close(three_forms[0], three_forms[1], atol=1e-12),
        three_forms=close(three_forms[1], three_forms[2], atol=1e-12),
        torch_loss=close(
            soft_cross_entropy(scores, soft), functional.cross_entropy(scores, soft, reduction="none"), atol=1e-12
        ),
        autograd=close(vmap(grad(soft_cross_entropy))(scores, soft), gradient, atol=1e-14),
        finite_differences=close(differences, gradient, atol=1e-9),
        sums_to_zero=close(gradient.sum(-1), 0.0, atol=1e-14),
        labels_must_sum_to_one=greater_equal(
            (true_gradient - cross_entropy_gradient(scores, unnormalised)).abs().max(), 0.1
        ),
        unnormalised_gradient=close(true_gradient, 2 * softmax(scores) - unnormalised, atol=1e-13),
        convex_in_the_scores=greater_equal(torch.linalg.eigvalsh(curvature), -1e-15),
        convex_in_the_weights=greater_equal(torch.linalg.eigvalsh(hessian.reshape(12, 12)), -1e-15),
    )


@claim("Z4.7")
def three_fits_of_softmax_regression_agree() -> Evidence:
    """Newton's method, mini-batch SGD and scikit-learn give the same probabilities on tiny images (Zhao sec. 4)."""
    x, labels = load_tiny_images()
    test, test_labels = load_tiny_images(seed=1)
    newton = SoftmaxRegression.fit(x, labels, classes=3)
    library = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(x.numpy(), labels.numpy())
    torch.manual_seed(0)
    network = dense_classifier(4, 3, hidden=()).double()
    optimizer = torch.optim.SGD(network.parameters(), lr=1.0, momentum=0.9)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step / 100))
    for rows in shuffled_batches(len(x), 100, epochs=150, generator=torch.Generator().manual_seed(0)):
        optimizer.zero_grad()
        network.loss(x[rows], labels[rows]).backward()
        optimizer.step()
        schedule.step()
    with torch.no_grad():
        trained = softmax(network(test))
    nearest = torch.cdist(test, torch.tensor(TINY_PROTOTYPES, dtype=torch.float64)).argmin(1)  # Bayes' rule here
    best = float((nearest == test_labels).double().mean())
    return all_of(
        scikit_learn=close(
            newton.probabilities(test), torch.from_numpy(library.predict_proba(test.numpy())), atol=1e-5
        ),
        minibatches=close(trained, newton.probabilities(test), atol=0.03),
        same_accuracy=close(
            evaluate(network, test, test_labels).accuracy, accuracy(newton.logits(test), test_labels), atol=0.01
        ),
        near_bayes_accuracy=greater_equal(accuracy(newton.logits(test), test_labels), best - 0.01),
    )
