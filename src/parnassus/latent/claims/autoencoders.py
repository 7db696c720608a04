"""Claims about autoencoders: codes, bottlenecks and the book's network for images (book secs. 4.1, 4.2, 4.5)."""

from functools import partial

import torch
from torch import Tensor, nn

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal, raises, runs
from parnassus.data import load_digits
from parnassus.latent.autoencoders.autoencoder import Autoencoder, shallow_autoencoder
from parnassus.latent.autoencoders.dense_networks import dense_decoder, dense_encoder
from parnassus.latent.claims.training import adam
from parnassus.latent.latent_space.latent_grid import latent_grid, latent_range, tile_images
from parnassus.latent.linear.pca import PCA
from parnassus.latent.textbook import coffee_drinks
from parnassus.layers import count_parameters
from parnassus.optim.training.learning_rate_schedules import step_decay


@claim("B4.1-1")
def a_drink_is_determined_by_its_code() -> Evidence:
    """Encoding a drink as eight ingredients is lossless, and Mocha − Latte is hot chocolate (book sec. 4.1)."""
    codes = {drink: coffee_drinks.encode(drink) for drink in coffee_drinks.DRINKS}
    round_trips = [coffee_drinks.decode(code) == drink for drink, code in codes.items()]
    printed = torch.tensor([[1, 1, 0, 0, 0, 0, 0, 0], [1, 0, 1, 1, 0, 0, 0, 0], [1, 0, 1, 1, 1, 0, 0, 0]])
    difference = codes["Mocha"] - codes["Latte"]
    return all_of(
        codes=close(torch.stack(list(codes.values())), printed),
        round_trip=close(sum(round_trips), 3),
        difference=close(difference, torch.eye(8)[coffee_drinks.INGREDIENTS.index("hot chocolate")]),
    )


@claim("B4.2-1")
def reconstruction_error_decreases_with_the_width_of_the_bottleneck() -> Evidence:
    """The N-K-N network has 2NK + N + K parameters, and its error decreases with K (book eqs. 4.1-4.2)."""
    x = load_digits().train.x[:300].flatten(1)
    sizes = (1, 4, 16)
    torch.manual_seed(0)
    models = [shallow_autoencoder(64, latent) for latent in sizes]
    z = models[1].encode(x)
    for model in models:
        adam(model, partial(model.loss, x), steps=150, lr=1e-2)
    errors = torch.stack([model.loss(x).detach() for model in models])
    return all_of(
        parameters=close(
            torch.tensor([count_parameters(model) for model in models]),
            torch.tensor([2 * 64 * latent + 64 + latent for latent in sizes]),
        ),
        code=close(torch.tensor(z.shape), torch.tensor([300, 4])),
        reconstruction=close(torch.tensor(models[1](x).shape), torch.tensor(x.shape)),
        error_ratios=less_equal(errors[1:] / errors[:-1], 0.8),
    )


def book_autoencoder(latent: int = 2) -> Autoencoder:
    """The book's network for 28 × 28 images (book sec. 4.5)."""
    torch.manual_seed(0)
    return Autoencoder(dense_encoder((1, 28, 28), latent), dense_decoder(latent, (1, 28, 28)))


@claim("B4.5-1", "B4.5-2", "B4.5-3")
def the_image_autoencoder_has_808722_parameters() -> Evidence:
    """784-512-2-512-784 with two batch normalisations maps images to images in (0, 1) (book sec. 4.5)."""
    model = book_autoencoder()
    x = torch.rand(5, 1, 28, 28)
    reconstruction = model(10 * x)
    return all_of(
        parameters=close(count_parameters(model), 808_722),
        code=close(torch.tensor(model.encode(x).shape), torch.tensor([5, 2])),
        image=close(torch.tensor(reconstruction.shape), torch.tensor([5, 1, 28, 28])),
        above_0=greater_equal(reconstruction, 1e-6),
        below_1=less_equal(reconstruction, 1 - 1e-6),
    )


@erratum("B4.5-2", printed="layers made in the class body", right="layers made in __init__")
def layers_belong_in_the_initialiser() -> Correction:
    """A page break moves the decoder's layers out of __init__, where their size is undefined (book sec. 4.5)."""
    head = "class Decoder(nn.Module):\n    def __init__(self, latent):\n        super().__init__()\n"
    layers = "self.layers = dense_decoder(latent, (1, 28, 28))\n"
    printed, corrected = (f"{head}{indent}{layers}Decoder(2)" for indent in (4 * " ", 8 * " "))

    def execute(listing: str) -> None:
        exec(listing, {"nn": nn, "dense_decoder": dense_decoder})  # noqa: S102 - the listing stands above

    return Correction(
        printed=runs(partial(execute, printed), unless=NameError),
        corrected=runs(partial(execute, corrected), unless=NameError),
    )


def rate_of_listing(expression: str) -> float:
    """The learning rate that a line of the listing assigns."""
    names: dict[str, float] = {}
    exec(f"rate = {expression}", {"step_decay": step_decay}, names)  # noqa: S102 - the listing stands below
    return names["rate"]


@erratum("B4.5-5", printed="a comment continued on the next line", right="one comment line")
def a_broken_comment_is_code() -> Correction:
    """The second half of the comment on the schedule is on a separate line, a syntax error (book sec. 4.5)."""
    return Correction(
        printed=runs(lambda: rate_of_listing("step_decay(12)  # not treated,\nlook it up!"), unless=SyntaxError),
        corrected=close(rate_of_listing("step_decay(12)  # not treated, look it up!"), 1e-4, rtol=1e-12),
    )


@erratum("B4.5-4", printed="a loop that never calls train()", right="autoencoder.train() before the loop")
def training_in_evaluation_mode_freezes_the_batch_statistics() -> Correction:
    """After a plot has called eval(), a training loop without train() never updates running means (book sec. 4.5)."""
    x = torch.rand(32, 1, 28, 28)

    def drift(*, training: bool) -> Tensor:
        model = book_autoencoder().train(training)
        running_mean = model.encoder.get_buffer("2.running_mean")
        initial = running_mean.clone()
        adam(model, partial(model.loss, x), steps=3, lr=1e-3)
        return (running_mean - initial).abs().max()

    return Correction(
        printed=greater_equal(drift(training=False), 1e-2), corrected=greater_equal(drift(training=True), 1e-2)
    )


@claim("B4.5-5")
def the_step_schedule_matches_torch() -> Evidence:
    """lr₀ · γ^⌊epoch / step⌋ agrees with torch's StepLR over 35 epochs (book sec. 4.5)."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=10, gamma=0.1)
    rates = []
    for _ in range(35):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    schedule = torch.tensor([step_decay(epoch) for epoch in range(35)], dtype=torch.float64)
    return close(torch.tensor(rates, dtype=torch.float64), schedule, rtol=1e-12)


@claim("B4.5-5")
def the_schedule_does_not_change_the_rate_within_five_epochs() -> Evidence:
    """With step 10 the learning rate of epochs 0 to 4 is constant; it first decreases at epoch 10 (book sec. 4.5)."""
    return all_of(
        first_five_epochs=close(torch.tensor([step_decay(epoch) for epoch in range(5)]), torch.full((5,), 1e-3)),
        epoch_9=close(step_decay(9), 1e-3),
        epoch_10=close(step_decay(10), 1e-4, rtol=1e-12),
    )


@claim("B4.5-6")
def a_nonlinear_code_of_dimension_two_outperforms_two_components() -> Evidence:
    """The errors decrease: mean image, two components of PCA, two coordinates of the network, sixteen components."""
    x = load_digits().train.x
    flat = x.flatten(1)
    torch.manual_seed(0)
    model = Autoencoder(dense_encoder((1, 8, 8), 2, width=128), dense_decoder(2, (1, 8, 8), width=128))
    adam(model, partial(model.loss, x), steps=150, lr=1e-2)
    linear = (flat - PCA.fit(flat, 2).reconstruct(flat)).square().mean()
    return all_of(
        network_over_pca=less_equal(model.eval().loss(x) / linear, 0.85),
        pca_over_mean_image=less_equal(linear / flat.var(0, correction=0).mean(), 0.75),
        sixteen_components_over_network=less_equal(
            (flat - PCA.fit(flat, 16).reconstruct(flat)).square().mean() / model.loss(x), 0.6
        ),
    )


@claim("B4.5-7")
def decoding_one_image_requires_evaluation_mode() -> Evidence:
    """Batch normalisation raises an error for a batch of one while training: plotting needs eval() (book sec. 4.5)."""
    z = torch.zeros(1, 2)
    return all_of(
        training=raises(ValueError, lambda: book_autoencoder().train().decode(z)),
        evaluation=close(torch.tensor(book_autoencoder().eval().decode(z).shape), torch.tensor([1, 1, 28, 28])),
    )


@claim("B4.5-7")
def the_latent_grid_increases_to_the_right_and_upwards() -> Evidence:
    """In the 12 × 12 grid z₁ increases from left to right and z₂ from bottom to top (book fig. 4.3)."""
    grid = latent_grid((-5.0, 10.0), (-10.0, 5.0), count=12)
    codes = torch.tensor([[100.0, -90.0], [3.0, -2.0], [9.0, 4.0], [4.0, 70.0], [-80.0, 0.0]])  # with outliers
    low, high = torch.tensor(latent_range(codes, tail=0.25)).T
    first, second = (tile_images(grid[:, axis, None, None].expand(-1, 28, 28), columns=12) for axis in (0, 1))
    return all_of(
        size=close(torch.tensor(first.shape), torch.tensor([336, 336])),
        left_to_right=close(first[0, ::28], torch.linspace(-5, 10, 12), atol=1e-5),
        bottom_to_top=close(second[::28, 0].flip(0), torch.linspace(-10, 5, 12), atol=1e-5),
        range_without_outliers=close(torch.cat([low, high]), torch.tensor([3.0, -2.0, 9.0, 4.0])),
    )
