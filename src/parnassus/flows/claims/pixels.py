"""Claims about models that draw pictures pixel by pixel (book sec. 13.1, Diehl sec. 5.2)."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from parnassus.atlas import Evidence, all_of, at_least, claim, close
from parnassus.flows.gated_pixelcnn import gated_pixelcnn
from parnassus.flows.pixel_model import PixelModel
from parnassus.flows.pixel_rnn import PixelLSTM, pixel_rnn
from parnassus.flows.pixelcnn import pixelcnn


def small_models(shape: tuple[int, int], *, levels: int = 2) -> Mapping[str, PixelModel]:
    """A PixelCNN, a gated one and a PixelRNN with weights far enough from zero to matter."""
    torch.manual_seed(0)
    return {
        "pixelcnn": pixelcnn(shape, levels=levels, channels=8, blocks=2, first=5).double(),
        "gated": gated_pixelcnn(shape, levels=levels, channels=8, layers=3, size=3).double(),
        "pixel_rnn": pixel_rnn(shape, levels=levels, width=16).double(),
    }


def seen_by(model: PixelModel) -> Tensor:
    """Which pixels each pixel's law depends on, by the Jacobian of the logits: (height · width) in both directions."""
    source = torch.Generator().manual_seed(1)
    weight = next(model.parameters())
    grey = torch.randn(1, 1, *model.shape, generator=source, dtype=weight.dtype, requires_grad=True)
    logits = model.network(grey)[0].flatten(1)
    direction = torch.randn(logits.shape, generator=source, dtype=logits.dtype)
    heights = (direction * logits).sum(0)
    slopes = [torch.autograd.grad(height, grey, retain_graph=True)[0].flatten() for height in heights]
    return torch.stack(slopes) != 0


def all_pictures(shape: tuple[int, int], levels: int) -> Tensor:
    pixels = shape[0] * shape[1]
    return torch.cartesian_prod(*[torch.arange(levels)] * pixels).reshape(-1, *shape)


@claim("B13.1-2", "B13.1-3", "D5.2.4")
def no_pixel_sees_what_comes_later() -> Evidence:
    """A pixel's law has slope 0 in itself and in all later pixels, but not in its neighbours (book sec. 13.1)."""
    found: dict[str, Evidence] = {}
    for name, model in small_models((5, 5)).items():
        seen = seen_by(model)
        found[f"{name}_later"] = close(seen.triu().sum(), 0)
        found[f"{name}_left"] = close(seen.diagonal(-1)[torch.arange(1, 25) % 5 > 0], 1)
        found[f"{name}_above"] = close(seen.diagonal(-5), 1)
    return all_of(**found)


@claim("B13.1-3", "D5.2.4")
def small_filters_have_a_blind_spot() -> Evidence:
    """Stacked 3 × 3 masked filters never see some earlier pixels to the upper right; two stacks do (book sec. 13.1)."""
    torch.manual_seed(0)
    shape = (9, 9)
    earlier = torch.ones(81, 81, dtype=torch.bool).tril(-1)
    missed = {
        "masked": earlier & ~seen_by(pixelcnn(shape, channels=16, blocks=9, first=3).double()),
        "first_over_all": earlier & ~seen_by(pixelcnn(shape, channels=16, blocks=1, first=17).double()),
        "gated": earlier & ~seen_by(gated_pixelcnn(shape, channels=8, layers=9, size=3).double()),
        "recurrent": earlier & ~seen_by(pixel_rnn(shape, width=16).double()),
    }
    blind = missed["masked"][6 * 9 + 3].reshape(9, 9)  # of the pixel in row 6, column 3
    return all_of(
        blind_of_a_masked_stack=at_least(int(blind.sum()), 5),
        all_of_it_to_the_upper_right=close(blind[:, :5].sum() + blind[6:].sum(), 0),
        blind_with_a_first_filter_over_all=close(missed["first_over_all"].sum(), 0),
        blind_of_two_gated_stacks=close(missed["gated"].sum(), 0),
        blind_of_a_recurrent_network=close(missed["recurrent"].sum(), 0),
    )


@claim("B13.1-2", "B13.1-3", "D5.2.4")
def probabilities_of_all_pictures_sum_to_one() -> Evidence:
    """Over all 2⁹ pictures of 3 × 3 bits the probabilities sum to one, over all 3⁴ of 2 × 2 too (book sec. 13.1)."""
    found: dict[str, Evidence] = {}
    bits, thirds = all_pictures((3, 3), 2), all_pictures((2, 2), 3)
    with torch.no_grad():
        for name, model in small_models((3, 3)).items():
            law = model.log_prob(bits).exp()
            found[f"{name}_bits"] = close(law.sum(), 1.0, atol=1e-12)
            found[f"{name}_is_not_uniform"] = at_least(law.std() * len(bits), 0.01)
        for name, model in small_models((2, 2), levels=3).items():
            found[f"{name}_thirds"] = close(model.log_prob(thirds).exp().sum(), 1.0, atol=1e-12)
    return all_of(**found)


@claim("B13.1-2", "B13.1-3")
def scoring_is_one_pass_and_drawing_a_step_a_pixel() -> Evidence:
    """The likelihood of an n × n picture takes one pass, a drawing n² of them one after the other (book sec. 13.1)."""
    found: dict[str, Evidence] = {}
    for side in (3, 6):
        for name, model in small_models((side, side)).items():
            calls = CallCounter(worker(model))
            model.log_prob(torch.zeros(2, side, side, dtype=torch.int64))
            scoring = calls.count
            model.sample(2)
            found[f"{name}_scores_{side}"] = close(scoring, 1)
            found[f"{name}_draws_{side}"] = close(calls.count - scoring, side * side)
    return all_of(**found)


@claim("B13.1-2", "B13.1-3")
def the_laws_of_drawing_are_those_of_scoring() -> Evidence:
    """One pass over a picture and one step a pixel give the same laws, wherever drawing begins (book sec. 13.1)."""
    found: dict[str, Evidence] = {}
    pictures = torch.randint(3, (2, 4, 4), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        for name, model in small_models((4, 4), levels=3).items():
            at_once = model(pictures).flatten(2).mT
            for rows in (0, 2):
                steps = torch.stack(list(model.network.laws(model.grey(pictures), rows)), 1)
                found[f"{name}_from_row_{rows}"] = close(steps, at_once[:, 4 * rows :], atol=1e-12)
    return all_of(**found)


class CallCounter:
    """How often a module has been called."""

    def __init__(self, module: nn.Module) -> None:
        self.count = 0
        module.register_forward_hook(self._called)

    def _called(self, _module: nn.Module, _inputs: object, _output: object) -> None:
        self.count += 1


def worker(model: PixelModel) -> nn.Module:
    """The part of a pixel model that is called once a pass: of an LSTM the recurrence, else the whole network."""
    if isinstance(model.network, PixelLSTM):
        return model.network.lstm
    assert isinstance(model.network, nn.Module)
    return model.network
