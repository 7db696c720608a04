"""Interactive views: predictions and hidden activations of a drawing, activation functions, training of a network."""

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor, nn

from parnassus.data import load_digits
from parnassus.layers import Classifier, Dense, dense_classifier, sigmoid
from parnassus.layers.experiments import classifier_on_digits
from parnassus.layers.probes.activation_functions import plot_activation
from parnassus.layers.probes.classifier_training import CHECKPOINTS, DATASETS, train_classifier
from parnassus.layers.probes.digit_drawing import draw_a_digit
from parnassus.train.trained import TrainedRun
from parnassus.widgets import (
    Animation,
    Answer,
    Bars,
    Control,
    Curves,
    DrawingPad,
    Images,
    IntSlider,
    Numbers,
    evaluate_probe,
    read_controls,
)

DIGITS = load_digits()


@pytest.fixture(scope="module")
def trained(trained_run: Callable[..., TrainedRun]) -> TrainedRun:
    return trained_run("classifier_on_digits")


@pytest.fixture(scope="module")
def controls(trained: TrainedRun) -> dict[str, Control]:
    return read_controls(draw_a_digit, trained)


def unpack_answers(answers: Sequence[Answer]) -> tuple[Bars, Images, Images]:
    probabilities, hidden, unit = answers
    assert isinstance(probabilities, Bars)
    assert isinstance(hidden, Images)
    assert isinstance(unit, Images)
    return probabilities, hidden, unit


def test_examples_contain_one_test_image_per_class(controls: dict[str, Control]) -> None:
    drawing, unit = controls["drawing"], controls["unit"]
    assert isinstance(drawing, DrawingPad)
    assert isinstance(unit, IntSlider)
    assert drawing.shape == (8, 8)
    assert unit.high == 128
    assert not callable(drawing.examples)
    assert [name for name, _ in drawing.examples] == list("0123456789")
    for label, (_, image) in enumerate(drawing.examples):
        (row,) = (DIGITS.test.x[:, 0] == image).all(2).all(1).nonzero()[:, 0]
        assert DIGITS.test.y is not None
        assert int(DIGITS.test.y[row]) == label


def test_most_test_digits_are_classified_correctly_at_any_position(
    trained: TrainedRun, controls: dict[str, Control]
) -> None:
    """Also when shifted by one pixel, where the network without alignment misclassifies about half of them."""
    assert DIGITS.test.y is not None
    correct, unaligned = torch.zeros(2), 0
    for image, label in zip(DIGITS.test.x[:100, 0], DIGITS.test.y[:100].tolist(), strict=True):
        shifted = image.roll(1, 1)
        shifted[:, 0] = 0
        for shift, drawing in enumerate((image, shifted)):
            probabilities, _, _ = unpack_answers(
                evaluate_probe(draw_a_digit, trained, controls, {"drawing": drawing.flatten().tolist()})
            )
            assert float(probabilities.values.sum()) == pytest.approx(1, abs=1e-5)
            assert probabilities.marked == int(probabilities.values.argmax())
            correct[shift] += probabilities.marked == label
        unaligned += int(trained.model(shifted[None, None]).argmax()) == label
    assert correct[0] >= 80
    assert correct[1] >= 75
    assert unaligned <= correct[1] - 10


def test_units_show_the_training_images_of_largest_activation(
    trained: TrainedRun, controls: dict[str, Control]
) -> None:
    model = trained.model
    assert isinstance(model, Classifier)
    assert isinstance(model.network, nn.Sequential)
    first = model.network[1]
    assert isinstance(first, Dense)
    hidden = first(DIGITS.train.x.flatten(1))
    for unit in (1, 77, 128):
        _, _, selected = unpack_answers(evaluate_probe(draw_a_digit, trained, controls, {"unit": unit}))
        assert selected.images.shape == (7, 1, 8, 8)
        top = hidden[:, unit - 1].topk(5)
        assert [float(caption.split(": ")[1]) for caption in selected.captions[2:]] == pytest.approx(
            top.values.tolist(), abs=0.006
        )
        torch.testing.assert_close(selected.images[2:], DIGITS.train.x[top.indices])
        weights = first.weight[:, unit - 1].view(8, 8)
        torch.testing.assert_close((selected.images[1, 0] - 0.5).sign(), weights.sign())  # grey is zero
        assert float((selected.images[1] - 0.5).abs().max()) == pytest.approx(0.5)


def test_unit_0_selects_the_most_active_unit(trained: TrainedRun, controls: dict[str, Control]) -> None:
    _, hidden, selected = unpack_answers(evaluate_probe(draw_a_digit, trained, controls, {}))
    assert hidden.images.shape == (1, 1, 8, 16)
    assert f"Unit {int(hidden.images.argmax()) + 1} of 128" in selected.about


def test_empty_drawing_has_class_probabilities(trained: TrainedRun, controls: dict[str, Control]) -> None:
    probabilities, _, selected = unpack_answers(
        evaluate_probe(draw_a_digit, trained, controls, {"drawing": [0.0] * 64})
    )
    assert float(probabilities.values.sum()) == pytest.approx(1, abs=1e-5)
    assert float(selected.images[0].abs().max()) == 0


def test_deeper_network_has_one_image_per_hidden_layer(trained: TrainedRun) -> None:
    torch.manual_seed(0)
    deep_run = TrainedRun(trained.folder, trained.experiment)
    deep_run.__dict__["model"] = dense_classifier(64, 10, hidden=(30, 20))
    controls = read_controls(draw_a_digit, deep_run)
    assert isinstance(controls["unit"], IntSlider)
    assert controls["unit"].high == 50
    _, first, second, selected = evaluate_probe(draw_a_digit, deep_run, controls, {"unit": 31})
    assert isinstance(first, Images)
    assert isinstance(second, Images)
    assert isinstance(selected, Images)
    assert (first.title, second.title) == ("Activations of hidden layer 1", "Activations of hidden layer 2")
    assert (first.images.numel(), second.images.numel()) == (32, 21)  # 4 × 8 and 3 × 7
    assert selected.images.shape == (6, 1, 8, 8)  # a unit of the second layer has no weights on pixels
    assert "largest output weight" in selected.about
    first_layer_unit = evaluate_probe(draw_a_digit, deep_run, controls, {"unit": 30})[-1]
    assert isinstance(first_layer_unit, Images)
    assert first_layer_unit.images.shape == (7, 1, 8, 8)
    assert "output weight" not in first_layer_unit.about


def test_run_on_unsupported_data_raises_value_error(trained: TrainedRun) -> None:
    other = TrainedRun(trained.folder, classifier_on_digits.Experiment(data="iris"))
    with pytest.raises(ValueError, match=r"the run must use greyscale images; got examples of shape \(4,\) in iris"):
        read_controls(draw_a_digit, other)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"drawing": [0.0] * 63}, "drawing must be 8 × 8 grey values, row by row"),
        ({"drawing": [2.0] * 64}, "drawing must have grey values between 0 and 1"),
        ({"unit": 129}, "hidden unit .* must be between 0 and 128; got 129"),
        ({"unit": 0.5}, "hidden unit .* must be an integer"),
    ],
)
def test_invalid_values_raise_value_error(
    values: dict[str, object], message: str, trained: TrainedRun, controls: dict[str, Control]
) -> None:
    with pytest.raises(ValueError, match=message):
        evaluate_probe(draw_a_digit, trained, controls, values)


def test_derivative_of_stacked_layers_is_the_product() -> None:
    """The derivative of the sigmoid is ¼ at 0: ten layers give 4⁻¹⁰."""
    controls = read_controls(plot_activation, None)
    plot, numbers = evaluate_probe(plot_activation, None, controls, {"activation": 5, "x": 0, "layers": 10})
    assert isinstance(plot, Curves)
    assert isinstance(numbers, Numbers)
    assert plot.title == "sigmoid and its derivative"
    assert list(numbers.values.values()) == pytest.approx([0.5, 0.25, 4.0**-10])
    x, y = plot.lines["σ(x)"]
    expected: Tensor = sigmoid(torch.tensor(x))
    assert list(y) == pytest.approx(expected.tolist())


def train(**values: object) -> tuple[Animation, Curves, Curves, Numbers, list[Images]]:
    controls = read_controls(train_classifier, None)
    animation, loss, accuracy, numbers, *images = evaluate_probe(train_classifier, None, controls, values)
    assert isinstance(animation, Animation)
    assert isinstance(loss, Curves)
    assert isinstance(accuracy, Curves)
    assert isinstance(numbers, Numbers)
    return animation, loss, accuracy, numbers, [each for each in images if isinstance(each, Images)]


def test_training_separates_the_moons() -> None:
    animation, loss, accuracy, numbers, (units,) = train()
    assert animation.frames.shape[1:] == (2, 3, 160, 160)
    assert len(animation.captions) == len(animation.frames)
    assert animation.captions[0] == "after 0 steps"
    assert animation.captions[-1] == "after 500 steps"
    assert 0 <= float(animation.frames.min()) <= float(animation.frames.max()) <= 1
    assert float((animation.frames[0] - animation.frames[-1]).abs().max()) > 0.2
    steps, losses = loss.lines["training"]
    assert list(steps) == CHECKPOINTS
    assert losses[-1] < 0.1 * losses[0]
    assert accuracy.lines["test"][1][-1] >= 0.9
    assert numbers.values["training accuracy"] == "100 %"
    assert len(units.images) == 8


@pytest.mark.parametrize("data", range(len(DATASETS)))
def test_hidden_units_outperform_a_linear_classifier_on_all_data(data: int) -> None:
    _, _, linear, _, no_units = train(data=data, layers=0, noise=0.1)
    _, _, nonlinear, _, _ = train(data=data, layers=2, units=12, noise=0.1)
    assert not no_units
    assert nonlinear.lines["test"][1][-1] >= linear.lines["test"][1][-1] + 0.05


def test_regularisation_reduces_overfitting() -> None:
    _, plain, _, _, _ = train(noise=0.4, units=16, layers=3)
    _, regularised, _, _, _ = train(noise=0.4, units=16, layers=3, regulariser=2, strength=0.03)
    assert plain.lines["test"][1][-1] > 2 * min(plain.lines["test"][1])
    assert regularised.lines["test"][1][-1] < plain.lines["test"][1][-1] / 2


def test_animation_is_deterministic_for_a_seed() -> None:
    first, repeated, other = train(seed=3)[0], train(seed=3)[0], train(seed=4)[0]
    assert torch.equal(first.frames, repeated.frames)
    assert not torch.equal(first.frames, other.frames)


def test_extreme_settings_stay_finite() -> None:
    for activation in range(9):
        animation, loss, _, _, _ = train(activation=activation, learning_rate=0.3, layers=4, units=16, noise=0.5)
        assert bool(animation.frames.isfinite().all())
        assert bool(torch.tensor(loss.lines["training"][1]).isfinite().all())


def test_out_of_range_settings_raise_value_error() -> None:
    controls = read_controls(train_classifier, None)
    with pytest.raises(ValueError, match="hidden layers must be between 0 and 4; got 5"):
        evaluate_probe(train_classifier, None, controls, {"layers": 5})
