"""Images from trained variational autoencoders: samples, interpolations, traversals (book secs. 6.3, 6.4)."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from parnassus.data import DataError, open_grey_images, open_images
from parnassus.latent.latent_space.interpolation import latent_traversal, spherical_interpolation
from parnassus.latent.variational.vae import VAE
from parnassus.setting_types import GreyImageData
from parnassus.train import Positive

ImageKind = Literal["means", "samples", "interpolations", "traversals", "reconstructions"]


@dataclass(frozen=True)
class VAESample:
    """Images from a trained VAE: samples, interpolations, traversals or reconstructions."""

    show: ImageKind = "means"  # means or samples of p(x|z) for codes z sampled from the prior, or other images
    num_samples: Positive[int] = 64  # images, or rows of interpolations and traversals
    images: GreyImageData = "mnist_mini"  # images to reconstruct or interpolate: data set or folder
    image_size: Positive[int] | None = None  # height and width to which images of a folder are resized

    def __call__(self, model: VAE) -> Tensor:
        device = next(model.parameters()).device
        if self.show == "samples":
            return model.sample(self.num_samples)
        if self.show == "means":
            return model.decode(model.prior().sample((self.num_samples,)))
        if self.show == "traversals":
            code = torch.zeros(model.latent_dim, device=device)
            units = range(min(self.num_samples, model.latent_dim))
            return model.decode(torch.cat([latent_traversal(code, unit) for unit in units]))
        x = self.load_images(model).to(device)
        if self.show == "reconstructions":
            return torch.stack([x, model.reconstruct(x)], 1).flatten(0, 1)
        codes = model.encode(x)
        pairs = zip(codes, codes.roll(-1, 0), strict=True)
        return model.decode(torch.cat([spherical_interpolation(start, end) for start, end in pairs]))

    @property
    def columns(self) -> int | None:
        """Images per row: an interpolation, a traversal, five pairs of image and reconstruction."""
        return {"interpolations": 8, "traversals": 9, "reconstructions": 10}.get(self.show)

    def load_images(self, model: VAE) -> Tensor:
        """The requested images, which must have the shape of the model's."""
        expected = tuple(model.decode(model.prior().sample((1,))).shape[1:])
        load = open_grey_images if expected[0] == 1 else open_images
        x = load(self.images, self.image_size).test.x[: self.num_samples]
        if x.shape[1:] != expected:
            raise DataError(f"images must have the model's shape {expected}; {self.images} has {(*x.shape[1:],)}")
        return x
