"""Claims about batch normalisation (book sec. 2.2, Diehl sec. 1.6, Zhao sec. 8)."""

from math import sqrt

import torch
from torch import Tensor, nn
from torch.nn import functional

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal, raises, rate
from parnassus.data import load_digits
from parnassus.layers.activations import relu
from parnassus.layers.classifier import batch_norm_classifier, dense_classifier
from parnassus.layers.dense import count_parameters, layer_outputs
from parnassus.layers.normalisation import BatchNorm, moments, norm_before_activation, standardise
from parnassus.probability import standard_normal


@claim("B2.2-1", "D1.6.7", "Z8.1")
def batch_norm_equals_torch() -> Evidence:
    """Outputs, gradients and running averages equal nn.BatchNorm1d; evaluation uses the averages (book eq. 2.8)."""
    batch_norm, torch_batch_norm = BatchNorm(6).double(), nn.BatchNorm1d(6).double()
    batch_norm.scale.data = torch_batch_norm.weight.data = standard_normal(6, seed=1)
    batch_norm.shift.data = torch_batch_norm.bias.data = standard_normal(6, seed=2)
    x = (2 * standard_normal(32, 6) + 3).requires_grad_()
    y, z = batch_norm(x), torch_batch_norm(x)
    new = standard_normal(5, 6, seed=3)
    training_output = batch_norm(new).detach()
    torch_batch_norm(new)
    return all_of(
        forward=close(y, z, atol=1e-13),
        backward=close(*(torch.autograd.grad(out.pow(3).sum(), x)[0] for out in (y, z)), atol=1e-12),
        running_mean=close(batch_norm.running_mean, torch_batch_norm.get_buffer("running_mean"), rtol=1e-12),
        running_variance=close(batch_norm.running_variance, torch_batch_norm.get_buffer("running_var"), rtol=1e-12),
        evaluation=close(batch_norm.eval()(new), torch_batch_norm.eval()(new), atol=1e-13),
        modes_differ=greater_equal((training_output - batch_norm(new)).abs().max(), 0.1),
        batch_of_one_raises=raises(ValueError, lambda: BatchNorm(6)(torch.ones(1, 6))),
        torch_raises_too=raises(ValueError, lambda: nn.BatchNorm1d(6)(torch.ones(1, 6))),
    )


@claim("B2.2-1", "D1.6.7", "Z8.1")
def batch_norm_removes_mean_and_scale() -> Evidence:
    """x̂ has mean 0, variance σ²/(σ² + ε), is invariant to a x + c; γ = √(σ² + ε), β = μ invert it (book eq. 2.7)."""
    x = torch.tensor([1e-3, 1.0, 30.0], dtype=torch.float64) * standard_normal(64, 3) + 5
    standardised, stats = standardise(x, (0,)), moments(x, (0,))
    scaled = standardise(3 * x + 7, (0,), epsilon=0.0)
    flat = standardise(torch.full((8, 1), 4.0), (0,))
    return all_of(
        mean=close(standardised.mean(0), 0.0, atol=1e-12),
        variance=close(standardised.var(0, correction=0), (stats.variance / (stats.variance + 1e-5))[0], rtol=1e-12),
        invariance=close(scaled, standardise(x, (0,), epsilon=0.0), atol=1e-11),
        inverse=close((stats.variance + 1e-5).sqrt() * standardised + stats.mean, x, rtol=1e-12),
        constant_feature_gives_zero=close(flat, 0.0),
        one_example_gives_zero=close(standardise(standard_normal(1, 3), (0,)), 0.0),
    )


@erratum(
    "Z8.1", printed="the standardised batch has unit variance", right="variance v/(v + ε), close to 1 only for v ≫ ε"
)
def small_variances_do_not_become_one() -> Correction:
    """A feature of variance 1.27·10⁻⁶ has variance 0.11 after normalisation with ε = 10⁻⁵ (Zhao sec. 8)."""
    x = standardise(standard_normal(1_000, 1), (0,), epsilon=0.0) * sqrt(1.27e-6)
    variance = functional.batch_norm(x, None, None, training=True).var(0, correction=0)
    return Correction(
        printed=close(variance, 1.0, rtol=0.01), corrected=close(variance, 1.27e-6 / (1.27e-6 + 1e-5), rtol=1e-9)
    )


@erratum("Z8.1", printed="γ and β have the shape of x", right="for images, one γ and β per channel")
def images_share_scale_and_shift_within_a_channel() -> Correction:
    """True for dense layers; the 3×8×8 outputs of a convolution have 3 scales, not 192 (Zhao sec. 8)."""
    scales = nn.BatchNorm2d(3).weight.numel()
    return Correction(
        printed=close(scales, 3 * 8 * 8),
        corrected=all_of(
            channels=close(scales, 3),
            batch_norm=close(BatchNorm(3, 1, 1).scale.numel(), 3),
            dense=close(nn.BatchNorm1d(6).weight.numel(), 6),
        ),
    )


@erratum("B2.2-1", printed="activations are whitened", right="standardised separately; correlations remain")
def standardising_does_not_decorrelate() -> Correction:
    """Whitened activations would have the identity matrix as covariance (book sec. 2.2)."""
    x = standard_normal(2_000, 3) @ torch.tensor(
        [[1.0, 0.9, 0.0], [0.0, 0.5, 0.3], [0.0, 0.0, 2.0]], dtype=torch.float64
    )
    covariance = torch.cov(standardise(x, (0,), epsilon=0.0).mT, correction=0)
    centred = x - x.mean(0)
    whitened = centred @ torch.linalg.inv(torch.linalg.cholesky(torch.cov(x.mT, correction=0))).mT
    return Correction(
        printed=close(covariance, torch.eye(3), atol=0.01),
        corrected=all_of(
            correlations_remain=close(covariance, torch.corrcoef(x.mT), atol=1e-12),
            whitening_gives_identity=close(torch.cov(whitened.mT, correction=0), torch.eye(3), atol=1e-12),
        ),
    )


@claim("B2.2-2")
def the_classifier_with_batch_norm_has_671754_parameters() -> Evidence:
    """Two normalised layers of 512 units add 2 · 1,024 parameters to 669,706, in either order (book sec. 2.2)."""
    torch.manual_seed(0)
    x = torch.randn(64, 784)
    after, before = batch_norm_classifier(784, 10), batch_norm_classifier(784, 10, layer=norm_before_activation)
    hidden = [model.get_submodule("network.1")(x) for model in (after, before)]
    return all_of(
        normalised_last=close(count_parameters(after), 671_754),
        normalised_first=close(count_parameters(before), 671_754),
        centred_when_last=close(hidden[0].mean(0), 0.0, atol=1e-5),
        non_negative_when_first=greater_equal(hidden[1], 0.0),
    )


@erratum("B2.2-2", printed="a ReLU after the logits", right="no ReLU: logits may be negative")
def a_final_relu_blocks_gradients_with_batch_norm() -> Correction:
    """If all logits are negative, the printed network has gradient zero everywhere (book sec. 2.2)."""

    def largest_gradient(model: nn.Module) -> Tensor:
        model.get_parameter("network.3.bias").data.fill_(-100.0)
        gradients = torch.autograd.grad(functional.cross_entropy(model(x), y), list(model.parameters()))
        return torch.stack([each.abs().max() for each in gradients]).max()

    torch.manual_seed(0)
    x, y = torch.randn(32, 20), torch.arange(32) % 10
    printed = batch_norm_classifier(20, 10, hidden=(16, 16), output=relu)
    return Correction(
        printed=greater_equal(largest_gradient(printed), 1e-6),
        corrected=greater_equal(largest_gradient(batch_norm_classifier(20, 10, hidden=(16, 16))), 1e-3),
    )


@claim("B2.2-3", "Z8.4")
def images_are_normalised_per_channel() -> Evidence:
    """Mean and variance per channel, over batch, height and width, equal nn.BatchNorm2d (book sec. 2.2)."""
    x = standard_normal(4, 3, 5, 6) * torch.tensor([0.5, 2.0, 3.0]).view(3, 1, 1) + 1
    batch_norm, torch_batch_norm = BatchNorm(3, 1, 1).double(), nn.BatchNorm2d(3).double()
    means = torch.tensor([float(x[:, c].mean()) for c in range(3)], dtype=torch.float64)
    variances = torch.tensor([float((x[:, c] - means[c]).square().mean()) for c in range(3)], dtype=torch.float64)
    channels = [(x[:, c] - means[c]) / (variances[c] + 1e-5).sqrt() for c in range(3)]
    new = standard_normal(2, 3, 5, 6, seed=1)
    training_output, torch_output = batch_norm(x), torch_batch_norm(x)
    mean, variance = 0.1 * means, 0.9 + 0.1 * variances * 120 / 119
    predicted = (new - mean.view(3, 1, 1)) / (variance.view(3, 1, 1) + 1e-5).sqrt()
    return all_of(
        by_hand=close(training_output, torch.stack(channels, 1), atol=1e-12),
        torch_layer=close(training_output, torch_output, atol=1e-12),
        running_mean=close(batch_norm.running_mean.flatten(), mean, atol=1e-14),
        unbiased_running_variance=close(batch_norm.running_variance.flatten(), variance, atol=1e-14),
        evaluation=close(batch_norm.eval()(new), predicted, atol=1e-12),
        one_parameter_per_channel=close(count_parameters(batch_norm), 2 * 3),
    )


@claim("D1.6.7")
def every_position_and_channel_has_its_own_mean() -> Evidence:
    """Over the batch alone, BN(T) is BatchNorm1d on the flattened tensor: mean 0, variance near 1 (Diehl sec. 1.6)."""
    x = 2 * standard_normal(7, 4, 3) + 5
    normalised = standardise(x, (0,))
    flat = nn.BatchNorm1d(12, affine=False).double()(x.flatten(1)).unflatten(1, (4, 3))
    return all_of(
        torch_on_flattened=close(normalised, flat, atol=1e-12),
        mean=close(normalised.mean(0), 0.0, atol=1e-12),
        variance=close(normalised.var(0, correction=0), 1.0, atol=1e-4),
        module=close(BatchNorm(4, 3).double()(x), normalised, atol=1e-12),
        trainable=close(count_parameters(BatchNorm(4, 3)), 24),
    )


@erratum(
    "D1.6.7", printed="one mean per position and channel", right="libraries: one per channel, over batch and positions"
)
def libraries_average_over_positions() -> Correction:
    """On batch × position × channel Keras and torch average over positions, as the exercise does (Diehl sec. 1.6)."""
    x = 2 * standard_normal(3, 2, 4) + torch.arange(2, dtype=torch.float64)[:, None]
    library = nn.BatchNorm1d(4).double()(x.mT).mT  # torch expects batch × channel × position
    return Correction(
        printed=close(standardise(x, (0,)), library, atol=1e-3),
        corrected=all_of(
            over_batch_and_positions=close(standardise(x, (0, 1)), library, atol=1e-12),
            equal_without_positions=close(
                standardise(standard_normal(3, 2), (0,)), nn.BatchNorm1d(2).double()(standard_normal(3, 2)), atol=1e-12
            ),
        ),
    )


@claim("Z8.2")
def batch_norm_cancels_the_bias() -> Evidence:
    """φ(BN(Wx + b)) = φ(BN(Wx)), so b has no effect and zero gradient (Zhao sec. 8)."""
    layer = norm_before_activation(5, 4).double()
    x = standard_normal(20, 5)
    y = layer(x)
    (gradient,) = torch.autograd.grad(y.pow(3).sum(), layer.bias)
    return all_of(
        no_effect=close(y, relu(standardise(x @ layer.weight, (0,))), atol=1e-12),
        no_gradient=close(gradient, 0.0, atol=1e-12),
    )


@claim("Z8.1")
def batch_statistics_have_noise_of_order_one_over_root_size() -> Evidence:
    """The standard errors of batch means and batch standard deviations decrease as |B|^(−½) (Zhao sec. 8)."""
    sizes = torch.tensor([2, 4, 8, 16, 32, 64, 128, 256])
    x = standard_normal(2_000 * 256)
    stats_by_size = [moments(x.unflatten(0, (-1, int(size))), (1,)) for size in sizes]
    large = sizes[2:]  # for 2 or 4 examples the standard deviation is far from its asymptotic distribution
    return all_of(
        mean=rate(sizes, torch.stack([stats.mean.std() for stats in stats_by_size]), -0.5, atol=0.02),
        deviation=rate(
            large, torch.stack([stats.variance.sqrt().std() for stats in stats_by_size[2:]]), -0.5, atol=0.02
        ),
        one_standard_error=close(stats_by_size[5].mean.std(), 1 / 8, rtol=0.05),
    )


@claim("B2.2-4")
def batch_norm_reduces_covariate_shift() -> Evidence:
    """Batch normalisation reduces changes of a layer's mean and standard deviation in training (book ex. 2.2)."""
    digits = load_digits()
    x, y = digits.train.x, digits.train.y
    assert y is not None
    drift = {}
    for name, build in (("plain", dense_classifier), ("normalised", batch_norm_classifier)):
        torch.manual_seed(0)
        model = build(64, 10, hidden=(64, 64))
        assert isinstance(model.network, nn.Sequential)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
        history = []
        for rows in torch.randint(len(x), (50, 64), generator=torch.Generator().manual_seed(0)):
            before = layer_outputs(model.network, x[rows])[2]
            history.append(torch.stack([before.mean(), before.std()]).detach())
            optimizer.zero_grad()
            functional.cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()
        drift[name] = (torch.stack(history) - history[0]).abs().amax(0)
    return all_of(
        mean=less_equal(drift["normalised"][0] / drift["plain"][0], 0.3),
        spread=less_equal(drift["normalised"][1] / drift["plain"][1], 0.3),
    )
