"""Claims about classes as vectors, softmax, cross-entropy and the linear classifier made of them (Zhao sec. 4)."""

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn
from torch.func import grad, jacrev, vmap
from torch.nn import functional

from parnassus.atlas import Evidence, all_of, at_least, at_most, claim, close
from parnassus.data.toy import TINY_CLASSES, TINY_PROTOTYPES, tiny_images
from parnassus.layers.classifier import dense_classifier, evaluate
from parnassus.layers.dense import affine, parameter_count
from parnassus.layers.linear_regression import LinearRegression
from parnassus.layers.softmax_regression import SoftmaxRegression, cross_entropy_gradient, softmax_regression_hessian
from parnassus.losses.classification import accuracy, cross_entropy, one_hot, soft_cross_entropy, softmax
from parnassus.optim.minibatches import reshuffle
from parnassus.probability.divergences import cross_entropy_between, entropy


def tiny_rows(count: int = 600, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Tiny images as rows of four pixels, in double precision, and their labels."""
    drawn = tiny_images(count, seed=seed)
    assert drawn.y is not None
    return drawn.x.flatten(1).double(), drawn.y


def random_scores(count: int = 40, classes: int = 5) -> tuple[Tensor, Tensor]:
    """Scores, and soft labels that sum to 1."""
    source = torch.Generator().manual_seed(0)
    scores = 3 * torch.randn(count, classes, generator=source, dtype=torch.float64)
    return scores, softmax(torch.randn(count, classes, generator=source, dtype=torch.float64))


@claim("Z4.1")
def tiny_images_have_three_classes_of_four_pixels() -> Evidence:
    """Every class has a third of the images, and their mean is its prototype (Zhao sec. 4)."""
    x, labels = tiny_rows(6_000)
    means = torch.stack([x[labels == kind].mean(0) for kind in range(3)])
    return all_of(
        pixels=close(x.shape[1], 4),
        shares=close(torch.bincount(labels), torch.full((len(TINY_CLASSES),), 2_000)),
        prototypes=close(means, torch.tensor(TINY_PROTOTYPES), atol=4 * 0.3 / 2_000**0.5),
    )


@claim("Z4.2")
def one_hot_labels_have_no_order() -> Evidence:
    """Rows are torch's one-hot, sum to 1, argmax undoes them, and all classes lie √2 apart (Zhao sec. 4)."""
    labels = torch.randint(3, (50,), generator=torch.Generator().manual_seed(0))
    encoded, corners = one_hot(labels, 3), one_hot(torch.arange(3), 3)
    apart = torch.cdist(corners, corners)[~torch.eye(3, dtype=torch.bool)]
    return all_of(
        torch_agrees=close(encoded, functional.one_hot(labels, 3)),
        sums_to_one=close(encoded.sum(-1), 1.0),
        undone=close(encoded.argmax(-1), labels),
        cat_chicken_dog=close(corners, torch.eye(3)),
        equally_far=close(apart, 2**0.5, rtol=1e-6),
    )


@claim("Z4.3")
def least_squares_on_labels_leaves_the_simplex_in_one_way_only() -> Evidence:
    """Fitted to one-hot labels by least squares, outputs leave [0, 1], yet with a bias they sum to 1 (Zhao sec. 4)."""
    x, labels = tiny_rows()
    y = one_hot(labels, 3).double()
    torch.manual_seed(0)
    layer = nn.Linear(4, 3).double()
    fits = [LinearRegression.fit(x, y[:, kind]) for kind in range(3)]
    outputs = torch.stack([fit.predict(x) for fit in fits], 1)
    weight, bias = torch.stack([fit.w for fit in fits], 1), torch.stack([fit.b for fit in fits])
    during_training = affine(x, weight + 0.01, bias)
    return all_of(
        one_layer=close(affine(x, layer.weight.T, layer.bias), layer(x), atol=1e-14),
        parameters=close(parameter_count(dense_classifier(4, 3, hidden=())), 15),
        below_zero=at_most(outputs.min(), -0.1),
        above_one=at_least(outputs.max(), 1.05),
        sums_to_one=close(outputs.sum(1), 1.0, atol=1e-12),
        other_weights_do_not=at_least((during_training.sum(1) - 1).abs().max(), 0.01),
        works_surprisingly_well=at_least(accuracy(outputs, labels), 0.8),
    )


@claim("Z4.4")
def softmax_keeps_the_order_and_needs_the_shift() -> Evidence:
    """Softmax sorts as its scores do; without the shift exp overflows past 709, in single past 88 (Zhao sec. 4)."""
    scores, _ = random_scores()

    def naive(z: Tensor) -> Tensor:
        return z.exp() / z.exp().sum(-1, keepdim=True)

    pairs = torch.tensor([[709.0, 0.0], [710.0, 0.0]], dtype=torch.float64)
    single = torch.tensor([[88.0, 0.0], [89.0, 0.0]])
    return all_of(
        order=close(softmax(scores).argsort(-1), scores.argsort(-1)),
        positive=at_least(softmax(scores), 1e-12),
        sums_to_one=close(softmax(scores).sum(-1), 1.0, atol=1e-14),
        shift=close(softmax(scores + 7), softmax(scores), atol=1e-14),
        naive_at_709_and_710=close(naive(pairs)[:, 0].isnan().double(), torch.tensor([0.0, 1.0])),
        naive_at_88_and_89=close(naive(single)[:, 0].isnan().double(), torch.tensor([0.0, 1.0])),
        ours_at_710=close(softmax(pairs), torch.tensor([[1.0, 0.0], [1.0, 0.0]]), atol=1e-300),
        ours_at_89=close(softmax(single), torch.tensor([[1.0, 0.0], [1.0, 0.0]]), atol=1e-37),
    )


@claim("Z4.5")
def cross_entropy_is_minus_the_log_likelihood_of_labels() -> Evidence:
    """−log Π P(y|x) = Σ l(y, ŷ); l is −log ŷ of the label, 0 only when sure, least at H(y) when soft (Zhao sec. 4)."""
    scores, soft = random_scores()
    labels = soft.argmax(-1)
    chances = softmax(scores)
    likelihood = torch.stack([row[label] for row, label in zip(chances, labels, strict=True)]).prod()
    hard = one_hot(labels, 5).double()
    sure = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)
    nudges = softmax(soft.log() + 0.1 * scores)
    return all_of(
        product=close(cross_entropy(scores, labels).sum(), -likelihood.log(), rtol=1e-12),
        of_the_label=close(
            cross_entropy_between(hard, chances), -chances.gather(1, labels[:, None])[:, 0].log(), rtol=1e-12
        ),
        not_negative=at_least(cross_entropy(scores, labels), 0.0),
        zero_when_sure=close(cross_entropy_between(sure, sure), 0.0),
        positive_when_not=at_least(cross_entropy_between(sure, torch.tensor([0.999, 0.001, 0.0]).double()), 1e-3),
        entropy_at_the_label=close(cross_entropy_between(soft, soft), entropy(soft), rtol=1e-14),
        more_elsewhere=at_least(cross_entropy_between(soft, nudges) - entropy(soft), 0.0),
    )


@claim("Z4.6")
def the_gradient_from_the_scores_is_prediction_minus_label() -> Evidence:
    """The loss log Σ exp(o_k) − Σ y_j o_j has ∂l/∂o = softmax(o) − y, sum 0, and is convex (Zhao sec. 4)."""
    scores, soft = random_scores()
    three_forms = [
        -(soft * softmax(scores).log()).sum(-1),
        (soft * scores.exp().sum(-1, keepdim=True).log()).sum(-1) - (soft * scores).sum(-1),
        scores.logsumexp(-1) - (soft * scores).sum(-1),
    ]
    slope = cross_entropy_gradient(scores, soft)
    step = 1e-5 * torch.eye(5, dtype=torch.float64)
    differences = torch.stack(
        [(soft_cross_entropy(scores + h, soft) - soft_cross_entropy(scores - h, soft)) / 2e-5 for h in step], -1
    )
    too_heavy = 2 * soft
    true_slope = vmap(grad(lambda o, y: -(y * torch.log_softmax(o, -1)).sum()))(scores, too_heavy)
    curvature = vmap(jacrev(jacrev(lambda o, y: torch.logsumexp(o, -1) - (o * y).sum())))(scores, soft)
    x, _ = tiny_rows(50)
    hessian = softmax_regression_hessian(torch.randn(4, 3, generator=torch.Generator().manual_seed(0)).double(), x)
    return all_of(
        two_forms=close(three_forms[0], three_forms[1], atol=1e-12),
        three_forms=close(three_forms[1], three_forms[2], atol=1e-12),
        torch_loss=close(
            soft_cross_entropy(scores, soft), functional.cross_entropy(scores, soft, reduction="none"), atol=1e-12
        ),
        autograd=close(vmap(grad(soft_cross_entropy))(scores, soft), slope, atol=1e-14),
        finite_differences=close(differences, slope, atol=1e-9),
        sums_to_zero=close(slope.sum(-1), 0.0, atol=1e-14),
        labels_must_sum_to_one=at_least((true_slope - cross_entropy_gradient(scores, too_heavy)).abs().max(), 0.1),
        else_their_sum_stays=close(true_slope, 2 * softmax(scores) - too_heavy, atol=1e-13),
        convex_in_the_scores=at_least(torch.linalg.eigvalsh(curvature), -1e-15),
        convex_in_the_weights=at_least(torch.linalg.eigvalsh(hessian.reshape(12, 12)), -1e-15),
    )


@claim("Z4.7")
def softmax_regression_by_three_ways_is_one_classifier() -> Evidence:
    """Newton's method, minibatches and scikit-learn find one set of probabilities on tiny images (Zhao sec. 4)."""
    x, labels = tiny_rows()
    fresh, fresh_labels = tiny_rows(seed=1)
    newton = SoftmaxRegression.fit(x, labels, classes=3)
    library = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(x.numpy(), labels.numpy())
    torch.manual_seed(0)
    network = dense_classifier(4, 3, hidden=()).double()
    optimizer = torch.optim.SGD(network.parameters(), lr=1.0, momentum=0.9)
    falling = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step / 100))
    for rows in reshuffle(len(x), 100, epochs=150, generator=torch.Generator().manual_seed(0)):
        optimizer.zero_grad()
        network.loss(x[rows], labels[rows]).backward()
        optimizer.step()
        falling.step()
    with torch.no_grad():
        trained = softmax(network(fresh))
    nearest = torch.cdist(fresh, torch.tensor(TINY_PROTOTYPES, dtype=torch.float64)).argmin(1)  # Bayes' rule here
    best = float((nearest == fresh_labels).double().mean())
    return all_of(
        scikit_learn=close(
            newton.probabilities(fresh), torch.from_numpy(library.predict_proba(fresh.numpy())), atol=1e-5
        ),
        minibatches=close(trained, newton.probabilities(fresh), atol=0.03),
        the_same_accuracy=close(
            evaluate(network, fresh, fresh_labels).accuracy, accuracy(newton.logits(fresh), fresh_labels), atol=0.01
        ),
        near_the_best_possible=at_least(accuracy(newton.logits(fresh), fresh_labels), best - 0.01),
    )
