"""Denoising diffusion in the form of an estimator."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from parnassus.arrays import ArrayLike, as_tensor
from parnassus.data import Batches
from parnassus.data.splits import Split
from parnassus.diffusion import UNet, cosine_schedule
from parnassus.diffusion.commands.averaged_training import train_with_averaging
from parnassus.diffusion.models import ddpm
from parnassus.diffusion.samplers.image_sampling import ddim_images, to_pixels
from parnassus.estimators.image_layout import ImageLayout
from parnassus.estimators.inline_figure import InlineFigure
from parnassus.estimators.training import Trained, temporary_seed, training_run
from parnassus.report.plots import image_grid

DenoiserFactory: TypeAlias = Callable[..., nn.Module]
"""Builds a denoiser from (shape, classes=…), such as `UNet` or `partial(ResidualMLP, width=256)`."""


class DDPM(Trained, BaseEstimator):  # type: ignore[misc]  # untyped
    """Denoising diffusion of images, with classes if labels are given (book sec. 13.2).

    Images have the axes (count, height, width), or also channels before or after these, with values in [0, 1] or bytes;
    samples have the same layout. `denoiser` is the network, by default a small `UNet`.

    >>> import numpy as np
    >>> from functools import partial
    >>> from parnassus.diffusion import ResidualMLP
    >>> from parnassus.estimators import DDPM
    >>> images = np.random.default_rng(0).random((50, 8, 8))
    >>> model = DDPM(partial(ResidualMLP, width=32), steps=10, timesteps=20, verbose=False).fit(images)
    >>> model.sample(4).shape
    (4, 8, 8)
    """

    def __init__(
        self,
        denoiser: DenoiserFactory | None = None,
        *,
        steps: int = 2_000,
        batch_size: int = 128,
        learning_rate: float = 2e-3,
        timesteps: int = 200,
        random_state: int = 0,
        device: str = "auto",
        verbose: bool = True,
    ) -> None:
        self.denoiser = denoiser
        self.steps = steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.timesteps = timesteps
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> "DDPM":
        """Train from new random weights; with labels, samples can be of one class."""
        given = as_tensor(X, "X")
        self.layout_ = ImageLayout.of(tuple(given.shape))
        x = 2 * self.layout_.to_tensor(given) - 1
        labels: Tensor | None = None
        self.classes_: NDArray[Any] = np.empty(0)
        if y is not None:
            self.classes_, labels = _number_classes(y)
        shape, classes = tuple(x.shape[1:]), len(self.classes_)
        factory = partial(UNet, width=32) if self.denoiser is None else self.denoiser
        with training_run(self.random_state, self.device, verbose=self.verbose) as run:
            split = Split(x, labels).to(run.device)
            model = ddpm.DDPM(
                factory(shape, classes=classes), shape, schedule=cosine_schedule(self.timesteps), classes=classes
            )
            batches = (split.batches if labels is None else split.pairs)(self.batch_size, self.steps)
            pairs = cast("Batches[tuple[Tensor, Tensor]]", batches)
            self.model_ = train_with_averaging(run, model, pairs, self.learning_rate).eval()
            self.loss_steps_, self.loss_curve_ = run.curve("loss")
        return self

    def sample(
        self,
        count: int = 16,
        y: object = None,
        *,
        guidance_scale: float = 2.0,
        inference_steps: int = 50,
        random_state: int | None = None,
    ) -> NDArray[Any]:
        """`count` images by DDIM, of class `y` or of the classes in `y`, in turn over all classes by default."""
        check_is_fitted(self)
        labels = self._labels(count, y)
        with temporary_seed(random_state):
            images = ddim_images(
                self.model_,
                labels.to(next(self.model_.parameters()).device),
                guidance_scale=guidance_scale,
                steps=inference_steps,
            )
        return self.layout_.to_array(to_pixels(images))

    def plot_samples(self, count: int = 16, y: object = None, *, random_state: int | None = None) -> InlineFigure:
        """A grid of samples."""
        return InlineFigure(image_grid(self.layout_.to_tensor(self.sample(count, y, random_state=random_state))))

    def _labels(self, count: int, y: object) -> Tensor:
        if y is None:
            return torch.arange(count) % max(1, len(self.classes_))
        if not len(self.classes_):
            raise ValueError("the model has no classes: give labels to fit to sample by class")
        requested = np.broadcast_to(np.asarray(y), (count,))
        unknown = set(requested.tolist()) - set(self.classes_.tolist())
        if unknown:
            raise ValueError(f"y must be among {self.classes_.tolist()}; got {sorted(unknown)}")
        return torch.from_numpy(np.searchsorted(self.classes_, requested))


def _number_classes(y: ArrayLike) -> tuple[NDArray[Any], Tensor]:
    """The classes in order, and the index of each label."""
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(f"y must have one label per image; got shape {labels.shape}")
    classes, indices = np.unique(labels, return_inverse=True)
    return classes, torch.from_numpy(indices)
