"""Claims about autoregressive models of pixels (book sec. 13.1, Diehl sec. 5.2)."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal
from parnassus.flows.pixels.gated_pixelcnn import gated_pixelcnn
from parnassus.flows.pixels.pixel_model import PixelModel, bits_per_pixel
from parnassus.flows.pixels.pixel_rnn import PixelLSTM, pixel_rnn
from parnassus.flows.pixels.pixelcnn import pixelcnn


def build_small_models(shape: tuple[int, int], *, levels: int = 2) -> Mapping[str, PixelModel]:
    """A small PixelCNN, gated PixelCNN and PixelRNN in float64."""
    torch.manual_seed(0)
    return {
        "pixelcnn": pixelcnn(shape, levels=levels, channels=8, blocks=2, first_kernel_size=5).double(),
        "gated": gated_pixelcnn(shape, levels=levels, channels=8, num_layers=3, kernel_size=3).double(),
        "pixel_rnn": pixel_rnn(shape, levels=levels, hidden_size=16).double(),
    }


def pixel_dependencies(model: PixelModel) -> Tensor:
    """Entry (i, j): whether the logits of pixel i depend on pixel j, by the Jacobian."""
    generator = torch.Generator().manual_seed(1)
    weight = next(model.parameters())
    grey = torch.randn(1, 1, *model.shape, generator=generator, dtype=weight.dtype, requires_grad=True)
    logits = model.network(grey)[0].flatten(1)
    direction = torch.randn(logits.shape, generator=generator, dtype=logits.dtype)
    outputs = (direction * logits).sum(0)
    gradients = [torch.autograd.grad(output, grey, retain_graph=True)[0].flatten() for output in outputs]
    return torch.stack(gradients) != 0


def enumerate_images(shape: tuple[int, int], levels: int) -> Tensor:
    pixels = shape[0] * shape[1]
    return torch.cartesian_prod(*[torch.arange(levels)] * pixels).reshape(-1, *shape)


@claim("B13.1-2", "B13.1-3", "D5.2.4")
def no_pixel_depends_on_later_pixels() -> Evidence:
    """The logits of a pixel depend on its neighbours before it, not on itself or later pixels (book sec. 13.1)."""
    evidence: dict[str, Evidence] = {}
    for name, model in build_small_models((5, 5)).items():
        dependencies = pixel_dependencies(model)
        evidence[f"{name}_later"] = close(dependencies.triu().sum(), 0)
        evidence[f"{name}_left"] = close(dependencies.diagonal(-1)[torch.arange(1, 25) % 5 > 0], 1)
        evidence[f"{name}_above"] = close(dependencies.diagonal(-5), 1)
    return all_of(**evidence)


@claim("B13.1-3", "D5.2.4")
def stacked_3x3_masked_filters_have_a_blind_spot() -> Evidence:
    """Stacked masked 3 × 3 filters do not reach some pixels to the upper right; two stacks do (book sec. 13.1)."""
    torch.manual_seed(0)
    shape = (9, 9)
    earlier = torch.ones(81, 81, dtype=torch.bool).tril(-1)
    blind_spots = {
        "masked": earlier & ~pixel_dependencies(pixelcnn(shape, channels=16, blocks=9, first_kernel_size=3).double()),
        "large_first_filter": earlier
        & ~pixel_dependencies(pixelcnn(shape, channels=16, blocks=1, first_kernel_size=17).double()),
        "gated": earlier & ~pixel_dependencies(gated_pixelcnn(shape, channels=8, num_layers=9, kernel_size=3).double()),
        "recurrent": earlier & ~pixel_dependencies(pixel_rnn(shape, hidden_size=16).double()),
    }
    blind_spot = blind_spots["masked"][6 * 9 + 3].reshape(9, 9)  # of the pixel in row 6, column 3
    return all_of(
        blind_spot_of_a_masked_stack=greater_equal(int(blind_spot.sum()), 5),
        all_of_it_to_the_upper_right=close(blind_spot[:, :5].sum() + blind_spot[6:].sum(), 0),
        no_blind_spot_with_a_large_first_filter=close(blind_spots["large_first_filter"].sum(), 0),
        no_blind_spot_of_two_gated_stacks=close(blind_spots["gated"].sum(), 0),
        no_blind_spot_of_a_recurrent_network=close(blind_spots["recurrent"].sum(), 0),
    )


@claim("B13.1-2", "B13.1-3", "D5.2.4")
def probabilities_of_all_images_sum_to_one() -> Evidence:
    """The probabilities of all 2⁹ binary 3 × 3 images, and of all 3⁴ 2 × 2 images, sum to one (book sec. 13.1)."""
    evidence: dict[str, Evidence] = {}
    binary, ternary = enumerate_images((3, 3), 2), enumerate_images((2, 2), 3)
    with torch.no_grad():
        for name, model in build_small_models((3, 3)).items():
            probabilities = model.log_prob(binary).exp()
            evidence[f"{name}_binary"] = close(probabilities.sum(), 1.0, atol=1e-12)
            entropy = -(probabilities * probabilities.log2()).sum() / 9
            nats = -(probabilities * probabilities.log()).sum()
            evidence[f"{name}_bits_per_pixel"] = close(bits_per_pixel(float(nats), 9), entropy, rtol=1e-9)
            evidence[f"{name}_is_not_uniform"] = greater_equal(probabilities.std() * len(binary), 0.01)
        for name, model in build_small_models((2, 2), levels=3).items():
            evidence[f"{name}_ternary"] = close(model.log_prob(ternary).exp().sum(), 1.0, atol=1e-12)
    return all_of(**evidence)


@claim("B13.1-2", "B13.1-3")
def scoring_takes_one_pass_and_sampling_one_step_per_pixel() -> Evidence:
    """The likelihood of an n × n image takes one pass, sampling n² sequential steps (book sec. 13.1)."""
    evidence: dict[str, Evidence] = {}
    for side in (3, 6):
        for name, model in build_small_models((side, side)).items():
            calls = CallCounter(counted_module(model))
            model.log_prob(torch.zeros(2, side, side, dtype=torch.int64))
            scoring = calls.count
            model.sample(2)
            evidence[f"{name}_scoring_{side}"] = close(scoring, 1)
            evidence[f"{name}_sampling_{side}"] = close(calls.count - scoring, side * side)
    return all_of(**evidence)


@claim("B13.1-2", "B13.1-3")
def sampling_and_scoring_use_the_same_conditionals() -> Evidence:
    """One pass and pixel-by-pixel steps give the same logits, from any starting row (book sec. 13.1)."""
    evidence: dict[str, Evidence] = {}
    images = torch.randint(3, (2, 4, 4), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        for name, model in build_small_models((4, 4), levels=3).items():
            all_logits = model(images).flatten(2).mT
            for first_row in (0, 2):
                steps = torch.stack(list(model.network.pixel_logits(model.to_grey(images), first_row)), 1)
                evidence[f"{name}_from_row_{first_row}"] = close(steps, all_logits[:, 4 * first_row :], atol=1e-12)
    return all_of(**evidence)


class CallCounter:
    """Counts the calls of a module."""

    def __init__(self, module: nn.Module) -> None:
        self.count = 0
        module.register_forward_hook(self._increment)

    def _increment(self, _module: nn.Module, _inputs: object, _output: object) -> None:
        self.count += 1


def counted_module(model: PixelModel) -> nn.Module:
    """The module that is called once per pass: the LSTM of a PixelRNN, else the network."""
    if isinstance(model.network, PixelLSTM):
        return model.network.lstm
    assert isinstance(model.network, nn.Module)
    return model.network
