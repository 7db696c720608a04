"""`parnassus evaluate RUN …`: what trained agents return, over episodes and over seeds, with how sure that is."""

import json
from dataclasses import asdict, dataclass

import torch
from jaxtyping import Float
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from torch import Tensor

from parnassus.cli.playing import Player
from parnassus.reinforcement.bootstrap import bootstrap_interval
from parnassus.reinforcement.evaluation import GOALS, interquartile_mean
from parnassus.runs.errors import RunError


@dataclass(frozen=True)
class Evaluation:
    """What the learners of a run reach: numbers over their mean returns. Of one alone there is no spread."""

    run: str
    env: str
    learners: int
    episodes: int
    mean: float
    spread: float | None
    interquartile_mean: float
    interval: tuple[float, float] | None
    solved: int | None
    means: list[float]


def evaluate_runs(players: list[Player], *, episodes: int, seed: int, as_json: bool) -> int:
    """Let the agents of every run play, and print what they reach: a table, or JSON."""
    if episodes < 1:
        raise RunError(f"--episodes must be at least 1; got {episodes}")
    found = [evaluated(player, player.returns(episodes, seed=seed)) for player in players]
    if as_json:
        print(json.dumps([asdict(each) for each in found], indent=2, ensure_ascii=False, allow_nan=False))
        return 0
    console = Console(highlight=False)
    console.print(as_table(found))
    how = "actions drawn as in training" if players[0].drawn else "the best action always"
    console.print(
        f"\n{episodes} {'episode' if episodes == 1 else 'episodes'} a learner, {how}; IQM is the mean of the middle "
        "half of the learners, with its 95 % interval over learners drawn again.",
        style="dim",
    )
    return 0


def evaluated(player: Player, returns: Float[Tensor, "learners episodes"]) -> Evaluation:
    """A learner counts by the mean of its episodes, so that seeds are compared, not lucky episodes."""
    means, env = returns.mean(1), player.experiment.env
    several, goal = len(means) > 1, GOALS.get(env)
    return Evaluation(
        run=player.name,
        env=env,
        learners=len(means),
        episodes=returns.shape[1],
        mean=float(means.mean()),
        spread=float(means.std()) if several else None,
        interquartile_mean=float(interquartile_mean(means)),
        interval=bootstrap_interval(means, interquartile_mean, generator=torch.Generator().manual_seed(0))
        if several
        else None,
        solved=None if goal is None else int((means >= goal).sum()),
        means=means.tolist(),
    )


def as_table(found: list[Evaluation]) -> Table:
    """A line for each run."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for name in ("run", "environment", "learners", "mean", "spread", "IQM", "95 %", "solved"):
        left = name in ("run", "environment")
        table.add_column(name, justify="left" if left else "right", no_wrap=not left, overflow="fold")
    for each in found:
        table.add_row(
            escape(each.run),
            escape(each.env),
            str(each.learners),
            f"{each.mean:.1f}",
            "—" if each.spread is None else f"{each.spread:.1f}",
            f"{each.interquartile_mean:.1f}",
            "—" if each.interval is None else "{:.1f} to {:.1f}".format(*each.interval),
            "—" if each.solved is None else f"{each.solved} of {each.learners}",
        )
    return table
