"""A large autoencoder memorises few examples; noise at the input makes that harder (book sec. 4.4)."""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.optim import Adam

from parnassus.data import Dataset, open_data
from parnassus.latent.autoencoder import Autoencoder, dense_decoder, dense_encoder
from parnassus.latent.denoising import DenoisingAutoencoder, gaussian
from parnassus.layers import identity
from parnassus.report import curves, image_grid
from parnassus.train import Run, at_least, at_most, descend

covers = ("B4.4-1", "B4.4-5")
