"""Which pixels made this digit? Attributions by gradients beside Shapley values (book sec. 17.3)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import perf_counter

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from parnassus.data import open_data
from parnassus.layers import Classifier, evaluate, require_labels
from parnassus.optim import Adam
from parnassus.report import curves
from parnassus.report.attributions import maps_of_classes
from parnassus.shapley.attribution import explain
from parnassus.shapley.deep_lift import deep_lift
from parnassus.shapley.deletion import deletion_curve
from parnassus.shapley.gradients import expected_gradients, gradient_times_input, integrated_gradients, moments
from parnassus.shapley.lines import along_lines
from parnassus.shapley.masking import Interventional
from parnassus.shapley.slopes import Slopes
from parnassus.shapley.superpixels import masked_images, painted, pixel_groups, tiles
from parnassus.train import Run, at_least, at_most, between, descend

covers = ("B17.3-1", "B17.3-3")
expected = {
    "test_accuracy": at_least(0.94, "share of unseen digits named rightly"),
    "not_additive": at_most(1e-6, "largest gap between a prediction and the sum of its parts"),
    "missed_at_the_input": at_least(0.25, "what gradient × input misses of the change from the background, as a share"),
    "missed_by_even_spacing": at_most(2e-3, "what many evenly spaced gradients miss of the change, as a share"),
    "missed_by_cut_lines": at_most(1e-3, "the same for at most as many on lines that are cut at kinks"),
    "like_shapley_integrated": at_least(0.98, "correlation of integrated gradients with Shapley values of tiles"),
    "like_shapley_deep_lift": at_least(0.95, "the same for DeepLIFT"),
    "like_shapley_at_the_input": between(0.8, 0.95, "the same for gradient × input"),
    "left_by_shapley": at_most(0.2, "of a logit's rise, left in the mean while tiles are taken away, weightiest first"),
    "left_by_integrated": at_most(0.2, "the same in the order of integrated gradients"),
    "left_by_deep_lift": at_most(0.2, "the same in the order of DeepLIFT"),
    "left_by_the_input": at_most(0.25, "the same in the order of gradient × input"),
    "left_by_chance": between(0.35, 0.65, "the same in random order"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"steps": 20, "explained": 2, "others": 2, "budget": 60, "most": 16, "draws": 8, "finest": 16},
    "gpu": {"data": "mnist", "tile": 4, "steps": 4_000, "others": 16, "explained": 40, "budget": 4_000},
}


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # digits, mnist_mini, mnist, fashion_mnist, or a folder of your own
    tile: int = 2  # side of the squares that come and go together, in pixels
    steps: int = 600  # gradient steps
    batch: int = 64  # images a step
    lr: float = 3e-3  # Adam's learning rate
    others: int = 4  # training images that stand in for what is not known
    explained: int = 12  # unseen images that are explained
    budget: int = 1_000  # coalitions of tiles that Kernel SHAP asks about
    most: int = 256  # gradients on a line from a stand-in to an image
    draws: int = 200  # of expected gradients
    finest: int = 1_024  # gradients on a line when it is asked what is missing

    def model(self, channels: int, height: int, width: int, classes: int) -> Classifier:
        """Two convolutions, a maximum over windows, a linear readout."""
        places = ((height - 2) // 2) * ((width - 2) // 2)
        return Classifier(
            nn.Sequential(
                nn.Conv2d(channels, 8, 3, padding=1),
                nn.ReLU(),
                nn.Conv2d(8, 16, 3),
                nn.ReLU(),
                nn.MaxPool2d(2),
                nn.Flatten(),
                nn.Linear(16 * places, classes),
            )
        )

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data).to(run.device)
        channels, height, width = data.shape
        facts = {"channels": channels, "height": height, "width": width, "classes": len(data.classes)}
        model, optimizer = run.prepare(run.build(self.model, **facts), partial(Adam, lr=self.lr))
        for step, loss in descend(run, model, optimizer, data.train.pairs(self.batch, self.steps)):
            run.log(step, loss=loss)
        labels = tiles(height, width, self.tile).to(run.device)
        asked = ask(model, data.test.x[: self.explained], data.train.x[: self.others], labels)
        found = self.explained_by(asked)
        self.show_maps(run, asked, found, data.classes)
        left = self.show_removal(run, asked, found)
        missed = self.show_gaps(run, asked)
        self.show_table(run, asked, found, left)
        whole = ("Kernel SHAP", "integrated gradients", "expected gradients", "DeepLIFT")
        return {
            "test_accuracy": evaluate(model, data.test.x, require_labels(data.test.y, len(data.classes))).accuracy,
            "not_additive": max(float((found[name].parts.sum(-1) - asked.change).abs().max()) for name in whole),
            "missed_at_the_input": asked.missed(found["gradient × input"].parts),
            "missed_by_even_spacing": missed["evenly spaced"],
            "missed_by_cut_lines": missed["cut at kinks"],
            "like_shapley_integrated": asked.likeness(found, "integrated gradients"),
            "like_shapley_deep_lift": asked.likeness(found, "DeepLIFT"),
            "like_shapley_at_the_input": asked.likeness(found, "gradient × input"),
            "left_by_shapley": left["Kernel SHAP"],
            "left_by_integrated": left["integrated gradients"],
            "left_by_deep_lift": left["DeepLIFT"],
            "left_by_the_input": left["gradient × input"],
            "left_by_chance": left["random order"],
        }

    def explained_by(self, asked: "Asked") -> "dict[str, Found]":
        """The parts of the named class by every method, and how long it took for an image."""
        model, x, background = asked.model, asked.x, asked.background

        def by_coalitions() -> Tensor:
            return explain(asked.game, x.flatten(1), self.budget).values

        def by_lines() -> Tensor:
            return integrated_gradients(model, x, background, tolerance=1e-4, most=self.most).values

        ways: dict[str, Callable[[], Tensor]] = {
            "Kernel SHAP": by_coalitions,
            "integrated gradients": by_lines,
            "expected gradients": lambda: expected_gradients(model, x, background, self.draws).values,
            "DeepLIFT": lambda: deep_lift(model, x, background).values,
            "gradient × input": lambda: gradient_times_input(model, x, background),
        }
        found = {}
        for name, way in ways.items():
            start = perf_counter()
            values = asked.of_named(way())
            found[name] = Found(values, (perf_counter() - start) / len(x))
        return found

    def show_maps(self, run: Run, asked: "Asked", found: "dict[str, Found]", classes: tuple[str, ...]) -> None:
        """Of a few images, a map for every method, each on its own scale."""
        shown = min(4, len(asked.x))
        maps = torch.stack([asked.as_map(each.parts)[:shown] for each in found.values()], 1)
        maps = maps / maps.abs().amax((2, 3), keepdim=True).clamp(min=1e-12)
        titles = [[f"a {classes[int(name)]}, it says", *found] for name in asked.named[:shown]]
        run.figure(
            "maps",
            maps_of_classes(asked.x[:shown].cpu(), maps.cpu(), titles),
            "What each pixel adds to the logit of the class that the network names, each map on its own scale. Kernel "
            f"SHAP knows tiles of {self.tile} × {self.tile} pixels; gradients know every pixel, and are noisier.",
        )

    def show_removal(self, run: Run, asked: "Asked", found: "dict[str, Found]") -> dict[str, float]:
        """How the logit falls when tiles are taken away, those with the largest parts first."""
        scores = {name: asked.in_tiles(each.parts) for name, each in found.items()}
        source = torch.Generator().manual_seed(run.seed)
        scores["random order"] = torch.rand(len(asked.x), asked.game.players, generator=source).to(asked.x.device)
        falls = {name: asked.left(each) for name, each in scores.items()}
        run.figure(
            "tiles taken away",
            curves(
                {name: (range(len(fall)), fall.cpu()) for name, fall in falls.items()},
                x_label="tiles taken away",
                y_label="left of the logit's rise over the background",
            ),
            "Tiles are replaced by those of other images, in the order in which a method finds them weighty: the "
            "faster the logit falls, the better the order. Below 0 the image speaks against the class.",
        )
        return {name: float(fall.mean()) for name, fall in falls.items()}

    def show_gaps(self, run: Run, asked: "Asked") -> dict[str, float]:
        """What the parts miss of the change against the gradients asked for: fixed nodes, chance, cut lines."""
        slopes, x, background = Slopes(asked.model), asked.x[:6], asked.background[:1]
        counts = [4**power for power in range(1, 10) if 4**power <= self.finest]
        few = ask(asked.model, x, background, asked.labels)
        gaps: dict[str, list[float]] = {"evenly spaced": [], "random places": [], "cut at kinks": []}
        for count in counts:
            places = (torch.arange(count, device=x.device) + 0.5) / count
            points = torch.lerp(background[:, None, None], x, places.reshape(-1, 1, 1, 1, 1))
            slope = slopes(points.flatten(0, 2)).unflatten(0, points.shape[:3]).mean(1)
            step = (x - background[:, None]).flatten(2).double()
            gaps["evenly spaced"].append(few.missed(few.of_named((slope * step[:, :, None]).mean(0))))
            drawn = moments(slopes, x, background, count * len(background))
            gaps["random places"].append(few.missed(few.of_named(drawn.mean)))
            cut = along_lines(slopes, x, background, tolerance=1e-6, most=count)
            gaps["cut at kinks"].append(few.missed(few.of_named(cut.parts)))
        run.figure(
            "what is missing",
            curves(
                {name: (counts, each) for name, each in gaps.items()},
                x_label="gradients on a line",
                y_label="missing of the change, as a share",
                log_x=True,
                log_y=True,
            ),
            "How far the sum of the parts is from what it should be, before the rest is shared out. The gradients of a "
            "network with ReLUs and maxima jump, here at hundreds of places on a line. To cut lines at kinks takes "
            "some twenty gradients for each: with fewer, what is left is spaced evenly, so that the two stay close. On "
            "a network with a dozen kinks, or a smooth one, cut lines are exact to many digits where even spacing has "
            "three.",
        )
        return {name: each[-1] for name, each in gaps.items()}

    def show_table(self, run: Run, asked: "Asked", found: "dict[str, Found]", left: dict[str, float]) -> None:
        run.table(
            "methods",
            [
                {
                    "method": name,
                    "missing of the sum": f"{asked.missed(each.parts):.1e}",
                    "correlation with Kernel SHAP": round(asked.likeness(found, name), 3),
                    "left of the logit": round(left[name], 3),
                    "milliseconds an image": round(1e3 * each.seconds, 1),
                }
                for name, each in found.items()
            ],
            "Parts of gradients are summed over tiles before they are compared. All but the last sum to the change of "
            "the logit: what integrals and draws leave over is shared out by how uncertain the parts are.",
        )


@dataclass(frozen=True)
class Found:
    """Parts of the named class, by pixel or by tile, and the seconds that an image took."""

    parts: Float[Tensor, "rows players"]
    seconds: float


@dataclass(frozen=True)
class Asked:
    """Images that a classifier names, what stands in for their tiles, and how much the named logits rise over it."""

    model: nn.Module
    x: Float[Tensor, "rows channels height width"]
    background: Float[Tensor, "others channels height width"]
    labels: Int[Tensor, "height width"]
    game: Interventional
    named: Int[Tensor, " rows"]
    change: Float[Tensor, " rows"]

    def of_named(self, values: Float[Tensor, "rows outputs players"]) -> Float[Tensor, "rows players"]:
        return values[torch.arange(len(values)), self.named]

    def in_tiles(self, parts: Float[Tensor, "rows players"]) -> Float[Tensor, "rows tiles"]:
        """Parts of pixels summed over tiles; those of tiles as they are."""
        if parts.shape[1] == self.game.players:
            return parts
        summed: Tensor = parts @ pixel_groups(self.labels, self.x.shape[1]).to(parts).mT
        return summed

    def as_map(self, parts: Float[Tensor, "rows players"]) -> Float[Tensor, "rows height width"]:
        if parts.shape[1] == self.game.players:
            return painted(parts, self.labels)
        return parts.reshape(self.x.shape).sum(1)

    def missed(self, parts: Float[Tensor, "rows players"]) -> float:
        """How far the sums are from the changes, as a share of these."""
        return float((parts.sum(1) - self.change).abs().mean() / self.change.abs().mean())

    def likeness(self, found: dict[str, Found], name: str) -> float:
        """The correlation of the parts of all tiles with those of Kernel SHAP."""
        pair = torch.stack([self.in_tiles(found[each].parts).flatten() for each in (name, "Kernel SHAP")])
        return float(torch.corrcoef(pair)[0, 1])

    def left(self, scores: Float[Tensor, "rows tiles"]) -> Float[Tensor, " taken"]:
        """Of the change, the mean share left when 0, 1, 2, … tiles of each image are taken away."""
        logits = deletion_curve(self.game, self.x.flatten(1), self.named, scores)
        return (1 + (logits - logits[:, :1]) / self.change[:, None]).mean(0)


def ask(
    model: nn.Module,
    x: Float[Tensor, "rows channels height width"],
    background: Float[Tensor, "others channels height width"],
    labels: Int[Tensor, "height width"],
) -> Asked:
    logits = Slopes(model).answers(x)
    rise = logits - Slopes(model).answers(background).mean(0)
    named = logits.argmax(1)
    change = rise[torch.arange(len(x)), named]
    return Asked(model, x, background, labels, masked_images(model, background, labels), named, change)
