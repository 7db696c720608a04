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
from parnassus.reinforcement.evaluation import goal_of, interquartile_mean
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
    returns = [player.returns(episodes, seed=seed) for player in players]
    found = [evaluated([player], [own]) for player, own in zip(players, returns, strict=True)]
    found += [evaluated([players[i] for i in group], [returns[i] for i in group]) for group in alike(players)]
    if as_json:
        print(json.dumps([asdict(each) for each in found], indent=2, ensure_ascii=False, allow_nan=False))
        return 0
    console = Console(highlight=False)
    console.print(as_table(found))
    how = "actions drawn as in training" if players[0].drawn else "the best action always"
    console.print(
        f"\n{episodes} {'episode' if episodes == 1 else 'episodes'} a learner, {how}. A learner counts by its mean: "
        "spread is the deviation of these, IQM the mean of their middle half, 95 % its interval over learners drawn "
        "again.",
        style="dim",
    )
    return 0


def alike(players: list[Player]) -> list[list[int]]:
    """Groups of runs, by their places, that differ in nothing but their seed: together they are one experiment."""
    groups: list[list[int]] = []
    for place, player in enumerate(players):
        for group in groups:
            seeds = {players[other].seed for other in group}
            if players[group[0]].experiment == player.experiment and player.seed not in seeds:
                group.append(place)
                break
        else:
            groups.append([place])
    return [group for group in groups if len(group) > 1]


def evaluated(players: list[Player], found: list[Float[Tensor, "learners episodes"]]) -> Evaluation:
    """A learner counts by the mean of its episodes, so that seeds are compared, not lucky episodes."""
    returns, env = torch.cat(found), players[0].experiment.env
    means = returns.mean(1)
    several, goal = len(means) > 1, goal_of(env)
    return Evaluation(
        run=" + ".join(player.name for player in players),
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
    """Two lines for each run: its name and numbers, and where it acts."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for name in ("run", "learners", "mean", "spread", "IQM", "95 %", "solved"):
        table.add_column(name, justify="left" if name == "run" else "right", no_wrap=name != "run", overflow="fold")
    for each in found:
        table.add_row(
            f"{escape(each.run)}\n[dim]{escape(each.env)}[/]",
            str(each.learners),
            f"{each.mean:.4g}",
            "—" if each.spread is None else f"{each.spread:.3g}",
            f"{each.interquartile_mean:.4g}",
            "—" if each.interval is None else "{:.4g} to {:.4g}".format(*each.interval),
            "—" if each.solved is None else f"{each.solved} of {each.learners}",
        )
    return table
