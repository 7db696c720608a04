"""Hinge loss and linear SVM against torch and scikit-learn, random features against the Gaussian kernel."""

import pytest
import torch
from sklearn.svm import LinearSVC
from torch.nn.functional import multi_margin_loss

from parnassus.layers import RandomFourierFeatures, gaussian_svm, linear_svm, multiclass_hinge


def test_multiclass_hinge_has_known_values() -> None:
    scores = torch.tensor([[3.0, 1.0, 2.0], [0.0, 0.5, 2.0], [1.0, 1.0, -5.0]])
    torch.testing.assert_close(multiclass_hinge(scores, torch.tensor([0, 0, 1])), torch.tensor([0.0, 3.0, 1.0]))


def test_hinge_of_two_classes_matches_torch() -> None:
    torch.manual_seed(0)
    scores, labels = torch.randn(30, 2, dtype=torch.float64), torch.randint(2, (30,))
    expected = 2 * multi_margin_loss(scores, labels, reduction="none")  # torch divides by the number of classes
    torch.testing.assert_close(multiclass_hinge(scores, labels), expected)


def test_random_features_approximate_the_gaussian_kernel() -> None:
    torch.manual_seed(0)
    x = torch.randn(20, 3)
    kernel = (-0.3 * torch.cdist(x, x).square()).exp()
    few, many = (RandomFourierFeatures(3, num_features, gamma=0.3)(x) for num_features in (100, 40_000))
    assert float((many @ many.T - kernel).abs().max()) < 0.03
    assert float((few @ few.T - kernel).abs().max()) > 0.03


def test_random_features_are_not_trained() -> None:
    assert list(RandomFourierFeatures(3, 5, gamma=1.0).parameters()) == []


def test_linear_svm_matches_scikit_learn() -> None:
    """The SVM of Crammer and Singer: gradient descent on the primal against scikit-learn's solver."""
    torch.manual_seed(0)
    labels = torch.arange(150) % 3
    x = torch.randn(150, 2) + 2 * torch.tensor([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])[labels]
    model = linear_svm(2, 3, penalty=0.01)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(300):
        optimizer.zero_grad()
        model.loss(x, labels).backward()
        optimizer.step()
    reference = LinearSVC(multi_class="crammer_singer", C=1 / (0.01 * 150), max_iter=20_000).fit(
        x.numpy(), labels.numpy()
    )
    assert float((model.predict(x).numpy() == reference.predict(x.numpy())).mean()) > 0.97


def test_gaussian_svm_separates_nonlinear_classes() -> None:
    torch.manual_seed(0)
    x = torch.randn(300, 2)
    labels = (x.norm(dim=1) > 1.2).long()
    accuracies = []
    for model in (linear_svm(2, 2), gaussian_svm(2, 2, num_features=300, gamma=1.0)):
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
        for _ in range(200):
            optimizer.zero_grad()
            model.loss(x, labels).backward()
            optimizer.step()
        accuracies.append(float((model.predict(x) == labels).float().mean()))
    assert accuracies[0] < 0.75
    assert accuracies[1] > 0.97


def test_invalid_input_raises_value_error() -> None:
    with pytest.raises(ValueError, match="gamma must be positive; got inputs=3, num_features=5, gamma=0"):
        RandomFourierFeatures(3, 5, gamma=0.0)
    with pytest.raises(ValueError, match="penalty must not be negative; got penalty=-1"):
        linear_svm(3, 2, penalty=-1.0)
