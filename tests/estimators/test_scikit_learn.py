"""Estimators obey scikit-learn's contract, and agree with its estimators where both compute the same."""

from typing import Any

import numpy as np
import pytest
from sklearn import decomposition, gaussian_process, kernel_ridge
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from parnassus.estimators import PCA, VAE, Classifier, GPRegressor, KernelRidge, Regressor
from parnassus.kernels import RBFKernel

FAST: dict[str, Any] = {"steps": 60, "batch_size": 50, "learning_rate": 1e-2, "verbose": False, "device": "cpu"}
WINE = load_wine().data.astype(np.float64)


@pytest.mark.filterwarnings("ignore")  # of checks that scikit-learn skips, and of their own input
@pytest.mark.parametrize(
    "estimator",
    [
        PCA(),
        KernelRidge(),
        GPRegressor(steps=2),
        Regressor(hidden=(16,), **FAST),
        Classifier(hidden=(16,), **FAST),
        VAE(hidden=8, **{**FAST, "steps": 5}),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_check_estimator_passes(estimator: Any) -> None:
    check_estimator(estimator)


@pytest.mark.parametrize("count", [2, 13])
def test_pca_matches_scikit_learn(count: int) -> None:
    ours, theirs = PCA(count).fit(WINE), decomposition.PCA(count, svd_solver="full").fit(WINE)
    for name in ("components_", "explained_variance_", "explained_variance_ratio_", "singular_values_", "mean_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-8, atol=1e-8, err_msg=name)
    np.testing.assert_allclose(ours.transform(WINE), theirs.transform(WINE), atol=1e-8)
    codes = theirs.transform(WINE)
    np.testing.assert_allclose(ours.inverse_transform(codes), theirs.inverse_transform(codes), atol=1e-8)
    assert ours.score(WINE) == pytest.approx(theirs.score(WINE), abs=0.1)  # its variances divide by n − 1
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()


def test_integers_have_the_components_of_floats() -> None:
    x = (10 * WINE).astype(np.int64)
    np.testing.assert_allclose(PCA(3).fit(x).components_, PCA(3).fit(x.astype(float)).components_)


def test_kernel_ridge_matches_scikit_learn() -> None:
    x, y = StandardScaler().fit_transform(WINE[:, :5]), WINE[:, 5:7]
    theirs = kernel_ridge.KernelRidge(alpha=len(x) * 1e-2, kernel="rbf", gamma=1 / (2 * 1.5**2))
    theirs.fit(x, y - y.mean(0))
    ours = KernelRidge(RBFKernel(1.5), penalty=1e-2).fit(x, y)
    np.testing.assert_allclose(ours.predict(x[:20] + 0.1), theirs.predict(x[:20] + 0.1) + y.mean(0), rtol=1e-8)


def test_gp_regressor_matches_scikit_learn() -> None:
    x, y = StandardScaler().fit_transform(WINE[:60, :3]), WINE[:60, 5]
    theirs = gaussian_process.GaussianProcessRegressor(
        gaussian_process.kernels.RBF(1.5), alpha=0.2, optimizer=None, normalize_y=True
    )
    ours = GPRegressor(RBFKernel(1.5), noise_variance=0.2, steps=0).fit(x, y)
    mean, std = ours.predict(x + 0.1, return_std=True)
    expected, noise_free = theirs.fit(x, y).predict(x + 0.1, return_std=True)
    np.testing.assert_allclose(mean, expected, rtol=1e-8)
    np.testing.assert_allclose(std, np.sqrt(noise_free**2 + 0.2 * y.var()), rtol=1e-6)


def test_estimators_learn_in_pipelines_and_cross_validation() -> None:
    x, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = make_pipeline(PCA(3), Classifier(hidden=(32,), **{**FAST, "steps": 150}))
    assert cross_val_score(model, x, names, cv=3).mean() > 0.9


def test_probabilities_do_not_depend_on_the_other_rows() -> None:
    x, y = load_iris(return_X_y=True)
    model = Classifier(hidden=(16,), **FAST).fit(x, y)
    single = np.concatenate([model.predict_proba(row[None]) for row in x[:20]])
    np.testing.assert_allclose(single, model.predict_proba(x)[:20], rtol=1e-12)


def test_regressor_keeps_the_columns_of_its_targets() -> None:
    x = np.linspace(-1, 1, 80)[:, None]
    y = np.concatenate([x**2, 100 * x, np.full_like(x, 5.0)], 1)
    model = Regressor(hidden=(32,), **{**FAST, "steps": 300}).fit(x, y)
    assert model.predict(x).shape == (80, 3)
    assert ((model.predict(x) - y) ** 2).mean(0) / np.maximum(y.var(0), 1) == pytest.approx([0, 0, 0], abs=0.05)


def test_vae_score_is_a_log_likelihood_in_the_units_of_the_data() -> None:
    """Scaling the data by 10 shifts the log-density by −log 10 per feature."""
    x = np.random.default_rng(0).normal(size=(200, 2)) @ np.array([[2.0, 0.0], [1.0, 0.5]])
    scores = [VAE(hidden=16, **FAST).fit(scale * x).score(scale * x) for scale in (1.0, 10.0)]
    assert scores[0] - scores[1] == pytest.approx(2 * np.log(10), abs=1e-4)


def test_vae_samples_have_the_moments_of_the_data() -> None:
    x = np.random.default_rng(0).normal(size=(500, 2)) @ np.array([[2.0, 0.0], [1.0, 0.5]]) + 5
    model = VAE(hidden=32, **{**FAST, "steps": 400}).fit(x)
    samples = model.sample(2_000, random_state=0)
    np.testing.assert_allclose(samples.mean(0), x.mean(0), atol=0.4)
    np.testing.assert_allclose(samples.std(0), x.std(0), rtol=0.3)
    assert np.array_equal(samples, model.sample(2_000, random_state=0))
    errors = ((model.inverse_transform(model.transform(x)) - x) ** 2).mean(0) / x.var(0)
    assert errors.max() < 0.7  # of the variance of each feature


def test_unfitted_estimators_raise_not_fitted_error() -> None:
    with pytest.raises(NotFittedError):
        Classifier().plot_loss()
    with pytest.raises(NotFittedError):
        VAE().sample()
