"""Integrated gradients, DeepLIFT and other gradient attributions of digits against SHAP values (book sec. 17.3)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from parnassus.data import open_data
from parnassus.layers import Classifier, check_labels, evaluate
from parnassus.layers.commands.image_classifiers import EvaluateImages as Evaluate  # noqa: F401 - declares `parnassus evaluate`
from parnassus.layers.commands.image_classifiers import PredictImages as Predict  # noqa: F401 - declares `parnassus predict`
from parnassus.optim import Adam
from parnassus.report import curves
from parnassus.setting_types import GreyImageData
from parnassus.shapley.attributions.attribution import explain
from parnassus.shapley.attributions.deletion_curve import deletion_curve
from parnassus.shapley.attributions.interventional import InterventionalValue
from parnassus.shapley.attributions.masked_images import expand_group_values, masked_images, pixel_groups
from parnassus.shapley.attributions.superpixels import tiles
from parnassus.shapley.figures.image_maps import plot_class_attributions
from parnassus.shapley.gradients.deep_lift import deep_lift
from parnassus.shapley.gradients.expected_gradients import expected_gradients, gradient_moments
from parnassus.shapley.gradients.integrated_gradients import gradient_times_input, integrated_gradients
from parnassus.shapley.gradients.model_gradients import ModelGradients
from parnassus.shapley.gradients.path_integrals import integrate_along_lines
from parnassus.train import Positive, Run, at_least, at_most, between, descend

covers = ("B17.3-1", "B17.3-3")
expected = {
    "test_accuracy": at_least(0.94, "accuracy on test images"),
    "max_gap": at_most(1e-6, "maximum difference between a prediction and the sum of its attributions"),
    "gap_gradient_times_input": at_least(0.25, "completeness gap of gradient × input, relative to the change"),
    "gap_midpoint_rule": at_most(2e-3, "relative completeness gap of the midpoint rule"),
    "gap_adaptive_integration": at_most(
        1e-3, "relative completeness gap of adaptive integration with at most as many gradients"
    ),
    "correlation_integrated_gradients": at_least(0.98, "correlation of integrated gradients with SHAP values of tiles"),
    "correlation_deep_lift": at_least(0.95, "correlation of DeepLIFT with SHAP values of tiles"),
    "correlation_gradient_times_input": between(0.8, 0.95, "correlation of gradient × input with SHAP values of tiles"),
    "deletion_shap": at_most(0.2, "mean of the relative deletion curve of the logit, order of SHAP values"),
    "deletion_integrated_gradients": at_most(
        0.2, "mean of the relative deletion curve of the logit, order of integrated gradients"
    ),
    "deletion_deep_lift": at_most(0.2, "mean of the relative deletion curve of the logit, order of DeepLIFT"),
    "deletion_gradient_times_input": at_most(
        0.25, "mean of the relative deletion curve of the logit, order of gradient × input"
    ),
    "deletion_random": between(0.35, 0.65, "mean of the relative deletion curve of the logit, random order"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {
        "steps": 20,
        "num_explained": 2,
        "background_size": 2,
        "max_evals": 60,
        "max_gradients": 16,
        "num_draws": 8,
        "max_points": 16,
    },
    "gpu": {
        "data": "mnist",
        "tile_size": 4,
        "steps": 4_000,
        "background_size": 16,
        "num_explained": 40,
        "max_evals": 4_000,
    },
}


@dataclass(frozen=True)
class Experiment:
    data: GreyImageData = "digits"  # images by class, or a path to an image folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    tile_size: Positive[int] = 2  # side of the square tiles, in pixels
    steps: Positive[int] = 600  # gradient steps
    batch_size: Positive[int] = 64  # images per gradient step
    learning_rate: Positive[float] = 3e-3  # Adam's learning rate
    background_size: Positive[int] = 4  # background images
    num_explained: Positive[int] = 12  # test images that are explained
    max_evals: Positive[int] = 1_000  # coalitions of tiles evaluated by Kernel SHAP
    max_gradients: Positive[int] = 256  # gradients per line of integrated gradients
    num_draws: Positive[int] = 200  # draws of expected gradients
    max_points: Positive[int] = 1_024  # maximum number of gradients per line in the convergence study

    def model(self, shape: Sequence[int], classes: Sequence[str]) -> Classifier:
        """Two convolutions, max pooling and a linear layer."""
        channels, height, width = shape
        positions = ((height - 2) // 2) * ((width - 2) // 2)
        return Classifier(
            nn.Sequential(
                nn.Conv2d(channels, 8, 3, padding=1),
                nn.ReLU(),
                nn.Conv2d(8, 16, 3),
                nn.ReLU(),
                nn.MaxPool2d(2),
                nn.Flatten(),
                nn.Linear(16 * positions, len(classes)),
            )
        )

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data, size=self.image_size).to(run.device)
        _, height, width = data.shape
        model = run.build(self.model, shape=data.shape, classes=data.classes)
        model, optimizer = run.prepare(model, partial(Adam, lr=self.learning_rate))
        for step, loss in descend(run, model, optimizer, data.train.pairs(self.batch_size, self.steps)):
            run.log(step, loss=loss)
        labels = tiles(height, width, self.tile_size).to(run.device)
        problem = build_problem(model, data.test.x[: self.num_explained], data.train.x[: self.background_size], labels)
        found = self.compute_attributions(problem)
        self.plot_maps(run, problem, found, data.classes)
        deletion = self.plot_deletion(run, problem, found)
        gaps = self.plot_gaps(run, problem)
        self.compare_methods(run, problem, found, deletion)
        complete = ("Kernel SHAP", "integrated gradients", "expected gradients", "DeepLIFT")
        return {
            "test_accuracy": evaluate(model, data.test.x, check_labels(data.test.y, len(data.classes))).accuracy,
            "max_gap": max(float((found[name].values.sum(-1) - problem.change).abs().max()) for name in complete),
            "gap_gradient_times_input": problem.relative_gap(found["gradient × input"].values),
            "gap_midpoint_rule": gaps["midpoint rule"],
            "gap_adaptive_integration": gaps["adaptive"],
            "correlation_integrated_gradients": problem.correlation(found, "integrated gradients"),
            "correlation_deep_lift": problem.correlation(found, "DeepLIFT"),
            "correlation_gradient_times_input": problem.correlation(found, "gradient × input"),
            "deletion_shap": deletion["Kernel SHAP"],
            "deletion_integrated_gradients": deletion["integrated gradients"],
            "deletion_deep_lift": deletion["DeepLIFT"],
            "deletion_gradient_times_input": deletion["gradient × input"],
            "deletion_random": deletion["random order"],
        }

    def compute_attributions(self, problem: "AttributionProblem") -> "dict[str, TimedAttributions]":
        """Attributions of the predicted class by every method, with the time per image."""
        model, x, background = problem.model, problem.x, problem.background

        def shap_values() -> Tensor:
            return explain(problem.value, x.flatten(1), self.max_evals).values

        def path_integrals() -> Tensor:
            return integrated_gradients(model, x, background, tolerance=1e-4, max_gradients=self.max_gradients).values

        methods: dict[str, Callable[[], Tensor]] = {
            "Kernel SHAP": shap_values,
            "integrated gradients": path_integrals,
            "expected gradients": lambda: expected_gradients(model, x, background, self.num_draws).values,
            "DeepLIFT": lambda: deep_lift(model, x, background).values,
            "gradient × input": lambda: gradient_times_input(model, x, background),
        }
        found = {}
        for name, method in methods.items():
            start = perf_counter()
            values = problem.of_predicted(method())
            found[name] = TimedAttributions(values, (perf_counter() - start) / len(x))
        return found

    def plot_maps(
        self, run: Run, problem: "AttributionProblem", found: "dict[str, TimedAttributions]", classes: tuple[str, ...]
    ) -> None:
        """Maps of a few images by every method, each on its own scale."""
        shown = min(4, len(problem.x))
        maps = torch.stack([problem.as_map(each.values)[:shown] for each in found.values()], 1)
        maps = maps / maps.abs().amax((2, 3), keepdim=True).clamp(min=1e-12)
        titles = [[f"predicted {classes[int(index)]}", *found] for index in problem.predicted[:shown]]
        run.figure(
            "maps",
            plot_class_attributions(problem.x[:shown].cpu(), maps.cpu(), titles),
            "Attributions of the logit of the predicted class, each map on its own scale. Kernel SHAP has tiles "
            f"of {self.tile_size} × {self.tile_size} pixels as players; gradient methods attribute to pixels, and "
            "are noisier.",
        )

    def plot_deletion(
        self, run: Run, problem: "AttributionProblem", found: "dict[str, TimedAttributions]"
    ) -> dict[str, float]:
        """Deletion curves of the logit in the order of each method, and their means."""
        scores = {name: problem.sum_over_tiles(each.values) for name, each in found.items()}
        generator = torch.Generator().manual_seed(run.seed)
        scores["random order"] = torch.rand(len(problem.x), problem.value.players, generator=generator).to(
            problem.x.device
        )
        falls = {name: problem.deletion(each) for name, each in scores.items()}
        run.figure(
            "deletion curves",
            curves(
                {name: (range(len(fall)), fall.cpu()) for name, fall in falls.items()},
                x_label="tiles deleted",
                y_label="remaining fraction of the logit's change",
            ),
            "Tiles are replaced by those of other images, in the order of each method's attributions: the faster "
            "the logit falls, the better the order. Below 0 the rest of the image lowers the logit.",
        )
        return {name: float(fall.mean()) for name, fall in falls.items()}

    def plot_gaps(self, run: Run, problem: "AttributionProblem") -> dict[str, float]:
        """Completeness gaps against the number of gradients: midpoint rule, random points, adaptive integration."""
        gradients, x, background = ModelGradients(problem.model), problem.x[:6], problem.background[:1]
        counts = [4**power for power in range(1, 10) if 4**power <= self.max_points]
        part = build_problem(problem.model, x, background, problem.labels)
        gaps: dict[str, list[float]] = {"midpoint rule": [], "random points": [], "adaptive": []}
        for count in counts:
            midpoints = (torch.arange(count, device=x.device) + 0.5) / count
            points = torch.lerp(background[:, None, None], x, midpoints.reshape(-1, 1, 1, 1, 1))
            mean_gradient = gradients(points.flatten(0, 2)).unflatten(0, points.shape[:3]).mean(1)
            step = (x - background[:, None]).flatten(2).double()
            products = (mean_gradient * step[:, :, None]).mean(0)
            gaps["midpoint rule"].append(part.relative_gap(part.of_predicted(products)))
            drawn = gradient_moments(gradients, x, background, count * len(background))
            gaps["random points"].append(part.relative_gap(part.of_predicted(drawn.mean)))
            adaptive = integrate_along_lines(gradients, x, background, tolerance=1e-6, max_gradients=count)
            gaps["adaptive"].append(part.relative_gap(part.of_predicted(adaptive.integrals)))
        run.figure(
            "completeness gap",
            curves(
                {name: (counts, each) for name, each in gaps.items()},
                x_label="gradients per line",
                y_label="completeness gap, relative to the change",
                log_x=True,
                log_y=True,
            ),
            "Distance of the sum of attributions from the change of the logit, before completeness is enforced. "
            "The gradients of a network with ReLUs and max pooling are discontinuous, here at hundreds of points "
            "on a line. Adaptive integration needs about twenty gradients per kink; with fewer it spends the rest "
            "on the midpoint rule, so that the two are close. For a network with a dozen kinks, or a smooth one, "
            "it is exact to many digits where the midpoint rule has three.",
        )
        return {name: each[-1] for name, each in gaps.items()}

    def compare_methods(
        self, run: Run, problem: "AttributionProblem", found: "dict[str, TimedAttributions]", deletion: dict[str, float]
    ) -> None:
        run.table(
            "methods",
            [
                {
                    "method": name,
                    "completeness gap": f"{problem.relative_gap(each.values):.1e}",
                    "correlation with Kernel SHAP": round(problem.correlation(found, name), 3),
                    "deletion": round(deletion[name], 3),
                    "milliseconds per image": round(1e3 * each.seconds, 1),
                }
                for name, each in found.items()
            ],
            "Attributions of pixels are summed over tiles before the comparison. All methods but gradient × input "
            "sum to the change of the logit: errors of integration and sampling are removed by enforcing "
            "completeness.",
        )


@dataclass(frozen=True)
class TimedAttributions:
    """Attributions of the predicted class, by pixel or by tile, and the seconds per image."""

    values: Float[Tensor, "rows players"]
    seconds: float


@dataclass(frozen=True)
class AttributionProblem:
    """Images, a classifier, a background, and the change of each predicted class's logit from the background."""

    model: nn.Module
    x: Float[Tensor, "rows channels height width"]
    background: Float[Tensor, "others channels height width"]
    labels: Int[Tensor, "height width"]
    value: InterventionalValue
    predicted: Int[Tensor, " rows"]
    change: Float[Tensor, " rows"]

    def of_predicted(self, values: Float[Tensor, "rows outputs players"]) -> Float[Tensor, "rows players"]:
        return values[torch.arange(len(values)), self.predicted]

    def sum_over_tiles(self, values: Float[Tensor, "rows players"]) -> Float[Tensor, "rows tiles"]:
        """Attributions of pixels summed over tiles; those of tiles unchanged."""
        if values.shape[1] == self.value.players:
            return values
        summed: Tensor = values @ pixel_groups(self.labels, self.x.shape[1]).to(values).mT
        return summed

    def as_map(self, values: Float[Tensor, "rows players"]) -> Float[Tensor, "rows height width"]:
        if values.shape[1] == self.value.players:
            return expand_group_values(values, self.labels)
        return values.reshape(self.x.shape).sum(1)

    def relative_gap(self, values: Float[Tensor, "rows players"]) -> float:
        """Mean distance of the sums of attributions from the changes, relative to these."""
        return float((values.sum(1) - self.change).abs().mean() / self.change.abs().mean())

    def correlation(self, found: dict[str, TimedAttributions], name: str) -> float:
        """Correlation of the attributions of all tiles with those of Kernel SHAP."""
        pair = torch.stack([self.sum_over_tiles(found[each].values).flatten() for each in (name, "Kernel SHAP")])
        return float(torch.corrcoef(pair)[0, 1])

    def deletion(self, scores: Float[Tensor, "rows tiles"]) -> Float[Tensor, " deleted"]:
        """Mean remaining fraction of the change with 0, 1, 2, … tiles of each image deleted."""
        logits = deletion_curve(self.value, self.x.flatten(1), self.predicted, scores)
        return (1 + (logits - logits[:, :1]) / self.change[:, None]).mean(0)


def build_problem(
    model: nn.Module,
    x: Float[Tensor, "rows channels height width"],
    background: Float[Tensor, "others channels height width"],
    labels: Int[Tensor, "height width"],
) -> AttributionProblem:
    logits = ModelGradients(model).outputs(x)
    changes = logits - ModelGradients(model).outputs(background).mean(0)
    predicted = logits.argmax(1)
    change = changes[torch.arange(len(x)), predicted]
    return AttributionProblem(model, x, background, labels, masked_images(model, background, labels), predicted, change)
