"""Methods of the rooms as estimators with `fit`, `predict`, `transform`, `sample` and `act`.

Estimators follow scikit-learn's conventions and accept NumPy arrays, lists, data frames and tensors. They are built of
the same parts as the experiments and train by `Run` and `descend`.
"""

from parnassus.estimators.classifier import Classifier
from parnassus.estimators.ddpm import DDPM
from parnassus.estimators.explanation import Explanation, explain
from parnassus.estimators.gp_regressor import GPRegressor
from parnassus.estimators.inline_figure import InlineFigure
from parnassus.estimators.kernel_ridge import KernelRidge
from parnassus.estimators.pca import PCA
from parnassus.estimators.ppo import PPO
from parnassus.estimators.regressor import Regressor
from parnassus.estimators.vae import VAE

__all__ = [
    "DDPM",
    "PCA",
    "PPO",
    "VAE",
    "Classifier",
    "Explanation",
    "GPRegressor",
    "InlineFigure",
    "KernelRidge",
    "Regressor",
    "explain",
]
