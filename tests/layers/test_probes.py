"""A drawing is named, the units that light up are the network's own, and what they like is what excites them."""

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor, nn

from parnassus.data import load_digits
from parnassus.layers import Classifier, Dense, dense_classifier, sigmoid
from parnassus.layers.experiments import classifier_on_digits
from parnassus.layers.probes.activation import look_at_an_activation
from parnassus.layers.probes.drawing import draw_a_digit
from parnassus.layers.probes.playground import MOMENTS, PLANES, train_a_classifier_under_your_eyes
from parnassus.touch import Answer, Bars, Control, Curves, Drawing, Film, Images, Numbers, Whole, answer, controls_of
from parnassus.train.trained import Trained

DIGITS = load_digits()


@pytest.fixture(scope="module")
def trained(trained_run: Callable[..., Trained]) -> Trained:
    return trained_run("classifier_on_digits")


@pytest.fixture(scope="module")
def controls(trained: Trained) -> dict[str, Control]:
    return controls_of(draw_a_digit, trained)


def parts(answers: Sequence[Answer]) -> tuple[Bars, Images, Images]:
    named, lights, liking = answers
    assert isinstance(named, Bars)
    assert isinstance(lights, Images)
    assert isinstance(liking, Images)
    return named, lights, liking


def test_there_is_an_unseen_example_of_every_class(controls: dict[str, Control]) -> None:
    drawing, unit = controls["drawing"], controls["unit"]
    assert isinstance(drawing, Drawing)
    assert isinstance(unit, Whole)
    assert drawing.shape == (8, 8)
    assert unit.high == 128
    assert not callable(drawing.examples)
    assert [name for name, _ in drawing.examples] == list("0123456789")
    for kind, (_, image) in enumerate(drawing.examples):
        (row,) = (DIGITS.test.x[:, 0] == image).all(2).all(1).nonzero()[:, 0]
        assert DIGITS.test.y is not None
        assert int(DIGITS.test.y[row]) == kind


def test_most_unseen_digits_are_named_rightly_wherever_they_are_drawn(
    trained: Trained, controls: dict[str, Control]
) -> None:
    """Also when they are drawn one pixel further right, where the bare network is wrong about half of them."""
    assert DIGITS.test.y is not None
    right, bare = torch.zeros(2), 0
    for image, label in zip(DIGITS.test.x[:100, 0], DIGITS.test.y[:100].tolist(), strict=True):
        moved = image.roll(1, 1)
        moved[:, 0] = 0
        for shift, drawing in enumerate((image, moved)):
            named, _, _ = parts(answer(draw_a_digit, trained, controls, {"drawing": drawing.flatten().tolist()}))
            assert float(named.values.sum()) == pytest.approx(1, abs=1e-5)
            assert named.marked == int(named.values.argmax())
            right[shift] += named.marked == label
        bare += int(trained.model(moved[None, None]).argmax()) == label
    assert right[0] >= 80
    assert right[1] >= 75
    assert bare <= right[1] - 10


def test_every_unit_shows_the_training_images_that_excite_it_most(
    trained: Trained, controls: dict[str, Control]
) -> None:
    model = trained.model
    assert isinstance(model, Classifier)
    assert isinstance(model.network, nn.Sequential)
    first = model.network[1]
    assert isinstance(first, Dense)
    hidden = first(DIGITS.train.x.flatten(1))
    for unit in (1, 77, 128):
        _, _, liking = parts(answer(draw_a_digit, trained, controls, {"unit": unit}))
        assert liking.images.shape == (7, 1, 8, 8)
        most = hidden[:, unit - 1].topk(5)
        assert [float(caption.split(": ")[1]) for caption in liking.captions[2:]] == pytest.approx(
            most.values.tolist(), abs=0.006
        )
        torch.testing.assert_close(liking.images[2:], DIGITS.train.x[most.indices])
        weights = first.weight[:, unit - 1].view(8, 8)
        torch.testing.assert_close((liking.images[1, 0] - 0.5).sign(), weights.sign())  # grey is zero
        assert float((liking.images[1] - 0.5).abs().max()) == pytest.approx(0.5)


def test_unit_0_is_the_brightest(trained: Trained, controls: dict[str, Control]) -> None:
    _, lights, liking = parts(answer(draw_a_digit, trained, controls, {}))
    assert lights.images.shape == (1, 1, 8, 16)
    assert f"Unit {int(lights.images.argmax()) + 1} of 128" in liking.about


def test_blank_paper_has_an_answer_too(trained: Trained, controls: dict[str, Control]) -> None:
    named, _, liking = parts(answer(draw_a_digit, trained, controls, {"drawing": [0.0] * 64}))
    assert float(named.values.sum()) == pytest.approx(1, abs=1e-5)
    assert float(liking.images[0].abs().max()) == 0


def test_a_deeper_network_has_a_picture_for_each_layer(trained: Trained) -> None:
    torch.manual_seed(0)
    deep = Trained(trained.folder, trained.experiment)
    deep.__dict__["model"] = dense_classifier(64, 10, hidden=(30, 20))
    controls = controls_of(draw_a_digit, deep)
    assert isinstance(controls["unit"], Whole)
    assert controls["unit"].high == 50
    _, first, second, liking = answer(draw_a_digit, deep, controls, {"unit": 31})
    assert isinstance(first, Images)
    assert isinstance(second, Images)
    assert isinstance(liking, Images)
    assert (first.title, second.title) == ("The units of hidden layer 1", "The units of hidden layer 2")
    assert (first.images.numel(), second.images.numel()) == (32, 21)  # 4 × 8 and 3 × 7
    assert liking.images.shape == (6, 1, 8, 8)  # a unit of the second layer has no weights on pixels
    assert "it speaks most for" in liking.about
    of_the_first = answer(draw_a_digit, deep, controls, {"unit": 30})[-1]
    assert isinstance(of_the_first, Images)
    assert of_the_first.images.shape == (7, 1, 8, 8)
    assert "speaks" not in of_the_first.about


def test_a_run_on_other_data_gets_a_sentence(trained: Trained) -> None:
    other = Trained(trained.folder, classifier_on_digits.Experiment(data="iris"))
    with pytest.raises(ValueError, match=r"drawing needs a run on grey pictures; the examples of iris have shape \(4,"):
        controls_of(draw_a_digit, other)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"drawing": [0.0] * 63}, "your drawing must be 8 × 8 grey values, row by row"),
        ({"drawing": [2.0] * 64}, "your drawing must have grey values between 0 and 1"),
        ({"unit": 129}, "hidden unit to look at .* must be between 0 and 128; got 129"),
        ({"unit": 0.5}, "hidden unit to look at .* must be a whole number"),
    ],
)
def test_wrong_values_get_sentences(
    values: dict[str, object], sentence: str, trained: Trained, controls: dict[str, Control]
) -> None:
    with pytest.raises(ValueError, match=sentence):
        answer(draw_a_digit, trained, controls, values)


def test_slopes_multiply_from_layer_to_layer() -> None:
    """The sigmoid's slope is ¼ at 0: ten layers leave 4⁻¹⁰."""
    controls = controls_of(look_at_an_activation, None)
    picture, numbers = answer(look_at_an_activation, None, controls, {"activation": 5, "place": 0, "layers": 10})
    assert isinstance(picture, Curves)
    assert isinstance(numbers, Numbers)
    assert picture.title == "sigmoid and its slope"
    assert list(numbers.values.values()) == pytest.approx([0.5, 0.25, 4.0**-10])
    x, y = picture.lines["σ(x)"]
    expected: Tensor = sigmoid(torch.tensor(x))
    assert list(y) == pytest.approx(expected.tolist())


def playground(**values: object) -> tuple[Film, Curves, Curves, Numbers, list[Images]]:
    controls = controls_of(train_a_classifier_under_your_eyes, None)
    film, loss, right, numbers, *pictures = answer(train_a_classifier_under_your_eyes, None, controls, values)
    assert isinstance(film, Film)
    assert isinstance(loss, Curves)
    assert isinstance(right, Curves)
    assert isinstance(numbers, Numbers)
    return film, loss, right, numbers, [each for each in pictures if isinstance(each, Images)]


def test_the_playground_learns_moons_and_films_it() -> None:
    film, loss, right, numbers, (units,) = playground()
    assert film.frames.shape[1:] == (2, 3, 160, 160)
    assert len(film.captions) == len(film.frames)
    assert film.captions[0] == "after 0 steps"
    assert film.captions[-1] == "after 500 steps"
    assert 0 <= float(film.frames.min()) <= float(film.frames.max()) <= 1
    assert float((film.frames[0] - film.frames[-1]).abs().max()) > 0.2
    steps, losses = loss.lines["training points"]
    assert list(steps) == MOMENTS
    assert losses[-1] < 0.1 * losses[0]
    assert right.lines["unseen points"][1][-1] >= 0.9
    assert numbers.values["right, training points"] == "100 %"
    assert len(units.images) == 8


@pytest.mark.parametrize("data", range(len(PLANES)))
def test_hidden_units_beat_a_straight_cut_on_all_data(data: int) -> None:
    _, _, straight, _, none = playground(data=data, layers=0, noise=0.1)
    _, _, bent, _, _ = playground(data=data, layers=2, units=12, noise=0.1)
    assert not none
    assert bent.lines["unseen points"][1][-1] >= straight.lines["unseen points"][1][-1] + 0.05


def test_noise_and_units_to_spare_overfit_and_a_regulariser_helps() -> None:
    _, free, _, _, _ = playground(noise=0.4, units=16, layers=3)
    _, held, _, _, _ = playground(noise=0.4, units=16, layers=3, regulariser=2, strength=0.03)
    assert free.lines["unseen points"][1][-1] > 2 * min(free.lines["unseen points"][1])
    assert held.lines["unseen points"][1][-1] < free.lines["unseen points"][1][-1] / 2


def test_the_same_settings_give_the_same_film_and_another_seed_another() -> None:
    first, again, other = playground(seed=3)[0], playground(seed=3)[0], playground(seed=4)[0]
    assert torch.equal(first.frames, again.frames)
    assert not torch.equal(first.frames, other.frames)


def test_wild_settings_stay_finite() -> None:
    for activation in range(9):
        film, loss, _, _, _ = playground(activation=activation, rate=0.3, layers=4, units=16, noise=0.5)
        assert bool(film.frames.isfinite().all())
        assert bool(torch.tensor(loss.lines["training points"][1]).isfinite().all())


def test_the_playground_names_its_limits() -> None:
    controls = controls_of(train_a_classifier_under_your_eyes, None)
    with pytest.raises(ValueError, match="hidden layers must be between 0 and 4; got 5"):
        answer(train_a_classifier_under_your_eyes, None, controls, {"layers": 5})
