"""Claims about the book's VAE listing for images, as printed and corrected (book sec. 6.3)."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal, raises, runs
from parnassus.data import mnist_mini
from parnassus.latent.claims.training import adam
from parnassus.latent.variational.decoders import BernoulliDecoder
from parnassus.latent.variational.reparametrisation import reparametrise, standard_normal_kl
from parnassus.latent.variational.vae import VAE
from parnassus.layers import count_parameters, mlp


def book_vae(pixels: int = 784, hidden: int = 256, latent: int = 16) -> VAE:
    """The book's network, with its two heads as the halves of one layer (book sec. 6.3)."""
    torch.manual_seed(0)
    decoder = BernoulliDecoder(mlp((latent, hidden, pixels)))
    return VAE(mlp((pixels, hidden, 2 * latent)), decoder, latent)


class ListedVAE(nn.Module):
    """The book's network with five layers named as printed; `activation` is applied to the output of each layer."""

    def __init__(self, activation: Callable[[Tensor], Tensor | nn.Module], *, pixels: int = 784) -> None:
        super().__init__()
        self.activation = activation
        self.fc1 = nn.Linear(pixels, 256)
        self.fc21, self.fc22 = nn.Linear(256, 16), nn.Linear(256, 16)
        self.fc3, self.fc4 = nn.Linear(16, 256), nn.Linear(256, pixels)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        features = self.activation(self.fc1(x.view(-1, 784)))
        mean, log_variance = self.fc21(features), self.fc22(features)
        z = reparametrise(mean, log_variance)
        return torch.sigmoid(self.fc4(self.activation(self.fc3(z)))), mean, log_variance


def images() -> Tensor:
    return mnist_mini().train.x[:64].flatten(1)


@claim("B6.3-9")
def the_network_of_the_book_has_415024_parameters() -> Evidence:
    """The 784-256-16 VAE has as many parameters as the listing and, with equal weights, the same loss."""
    ours, listing = book_vae(), ListedVAE(torch.relu)
    heads, bias = ours.get_parameter("encoder.1.weight").mT, ours.get_parameter("encoder.1.bias")
    parameters = {
        "fc1": (ours.get_parameter("encoder.0.weight").mT, ours.get_parameter("encoder.0.bias")),
        "fc21": (heads[:16], bias[:16]),
        "fc22": (heads[16:], bias[16:]),
        "fc3": (ours.get_parameter("decoder.network.0.weight").mT, ours.get_parameter("decoder.network.0.bias")),
        "fc4": (ours.get_parameter("decoder.network.1.weight").mT, ours.get_parameter("decoder.network.1.bias")),
    }
    with torch.no_grad():
        for name, (weight, layer_bias) in parameters.items():
            listing.get_parameter(f"{name}.weight").copy_(weight)
            listing.get_parameter(f"{name}.bias").copy_(layer_bias)
        x = images()[:8]
        torch.manual_seed(1)
        terms = ours.terms(x)
        torch.manual_seed(1)
        reconstruction, mean, log_variance = listing(x)
    return all_of(
        ours=close(count_parameters(ours), 415_024),
        listing=close(count_parameters(listing), 415_024),
        distortion=close(terms.distortion, binary_cross_entropy(reconstruction, x, reduction="none").sum(1), rtol=1e-4),
        rate=close(terms.rate, standard_normal_kl(mean, log_variance), rtol=1e-4),
    )


@erratum("B6.3-9", printed="h1 = nn.ReLU(self.fc1(x))", right="h1 = F.relu(self.fc1(x))")
def an_activation_module_is_not_a_function() -> Correction:
    """The listing passes a tensor to a constructor; the next layer receives a module: TypeError (book sec. 6.3)."""
    x = images()[:4]
    # type checkers reject the printed call of nn.ReLU
    return Correction(
        printed=runs(partial(ListedVAE(nn.ReLU), x), unless=TypeError),  # type: ignore[arg-type]
        corrected=all_of(
            corrected_call=runs(partial(ListedVAE(torch.relu), x), unless=TypeError),
            printed_error=raises(TypeError, partial(ListedVAE(nn.ReLU), x)),  # type: ignore[arg-type]
        ),
    )


@erratum("B6.3-9", printed="a method whose body is not indented", right="the body one level deeper than its def")
def a_body_must_be_indented() -> Correction:
    """At the page break a method body lost its indentation, and the class does not compile (book sec. 6.3)."""
    head, body = "class Model:\n    def draw(self, mean):\n", "return reparametrise(mean, 0 * mean)\n"
    call = "z = Model().draw(mean)\n"
    mean = torch.linspace(-3, 3, 1_000, dtype=torch.float64).view(500, 2)

    def draw(indent: str) -> Tensor:
        names: dict[str, object] = {"reparametrise": reparametrise, "mean": mean}
        torch.manual_seed(0)
        exec(head + indent + body + call, names)  # noqa: S102 - the listing stands above
        z = names["z"]
        assert isinstance(z, Tensor)
        return z

    torch.manual_seed(0)
    noise = torch.randn(500, 2, dtype=torch.float64)
    return Correction(
        printed=runs(lambda: draw(4 * " "), unless=SyntaxError),
        corrected=close(draw(8 * " ") - mean, noise, atol=1e-12),
    )


@erratum("B6.3-9", printed="x.view(-1, 784) for every input_dim", right="x.flatten(1)")
def the_input_size_is_an_argument() -> Correction:
    """For other image sizes the fixed 784 changes the number of rows or fails; flatten(1) does not (book sec. 6.3)."""
    coloured = torch.rand(2, 3, 28, 28)
    small = torch.rand(2, 1, 8, 8)
    ours = book_vae(pixels=64)
    return Correction(
        printed=all_of(
            rows_kept=close(len(coloured.view(-1, 784)), 2),
            small_images=runs(partial(ListedVAE(torch.relu, pixels=64), small), unless=RuntimeError),
        ),
        corrected=all_of(
            rows_kept=close(len(coloured.flatten(1)), 2),
            small_images=runs(partial(ours.terms, small.flatten(1)), unless=RuntimeError),
        ),
    )


@erratum("B6.3-10", printed="loss = BCE + ½ Σ(1 + log σ² − μ² − σ²)", right="loss = BCE − ½ Σ(1 + log σ² − μ² − σ²)")
def the_kl_divergence_has_to_be_added() -> Correction:
    """With the printed sign the rate is maximised: within 50 steps the loss is below −10⁶ (book sec. 6.3)."""
    x = images()

    def loss(sign: float) -> tuple[float, float]:
        model = book_vae()

        def total() -> Tensor:
            terms = model.terms(x)
            return (terms.distortion + sign * terms.rate).sum() / len(x)

        initial = float(total().detach())
        adam(model, total, steps=50, lr=1e-3)
        return initial, float(total().detach())

    (_, printed), (initial, corrected) = loss(-1.0), loss(1.0)
    return Correction(
        printed=greater_equal(printed, 0.0),
        corrected=all_of(
            bounded=greater_equal(corrected, 0.0),
            loss_ratio=less_equal(corrected / initial, 0.6),
            printed_diverges=less_equal(printed, -1e6),
        ),
    )


@erratum("B6.3-10", printed="a Gaussian likelihood in the text", right="the listing's BCE is a Bernoulli likelihood")
def the_listing_has_another_likelihood_than_the_book() -> Correction:
    """For grey pixels a perfect reconstruction has BCE equal to their entropy, and squared error 0 (book sec. 6.3)."""
    x = images().clamp(1e-6, 1 - 1e-6)
    copy_loss = -BernoulliDecoder(nn.Identity())(x.logit()).log_prob(x).mean()
    entropy = -(x * x.log() + (1 - x) * (1 - x).log()).sum(1).mean()
    return Correction(
        printed=close(copy_loss, 0.0, atol=1e-3),
        corrected=all_of(entropy=close(copy_loss, entropy, rtol=1e-4), nats_per_image=greater_equal(copy_loss, 10.0)),
    )
