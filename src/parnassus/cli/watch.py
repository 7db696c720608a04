"""`parnassus watch RUN`: let a trained agent play, and write what it does as a film."""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from parnassus.cli.playing import Player
from parnassus.reinforcement.environments import SIMULATED, BrokenEnvironmentError, Environments, Gymnasium
from parnassus.reinforcement.environments.copies import made
from parnassus.reinforcement.environments.interface import endless
from parnassus.runs.errors import RunError

if TYPE_CHECKING:
    import gymnasium

    Picture = NDArray[np.uint8]

MOST = 10  # episodes of a film
JUDGED = 20  # episodes of every learner, to find the best
FASTEST = 25.0  # pictures a second; of more than these only some are kept
WIDEST, NARROWEST = 480, 240  # pixels; on less the line above a picture has no room
REST = 1_000  # milliseconds for which the last picture of an episode stays
SECONDS_A_STEP = {"Acrobot-v1": 1 / 15, "CartPole-v1": 1 / 50, "MountainCar-v0": 1 / 30, "Pendulum-v1": 1 / 30}


@dataclass(frozen=True)
class Stage:
    """One copy of an environment, how it looks after a step, and how long that takes to watch."""

    worlds: Environments
    picture: "Callable[[Tensor, Tensor | None], Picture]"
    seconds: float


@dataclass(frozen=True)
class Scene:
    """How an episode looked when it had come so far."""

    picture: "Picture"
    episode: int
    step: int
    score: float
    over: bool


def watch(player: Player, *, episodes: int, learner: int | None, seed: int, out: Path) -> int:
    """Play, write OUT.gif, and say what every episode returned."""
    from parnassus.report.films import write_gif

    if not 1 <= episodes <= MOST:
        raise RunError(f"--episodes must be between 1 and {MOST}, so that the film can be watched; got {episodes}")
    learners = player.experiment.learners
    if learner is not None and not 1 <= learner <= learners:
        known = "1 alone" if learners == 1 else f"1 to {learners}"
        raise RunError(f"{player.name} has no learner {learner}; there is {known}")
    chosen = learner - 1 if learner is not None else best_learner(player, seed)
    path = out.with_suffix("") if out.suffix == ".gif" else out
    stage = drawn_here(player) if player.experiment.env in SIMULATED and not player.experiment.gym else filmed(player)
    torch.manual_seed(seed)
    ends: list[Scene] = []
    path.parent.mkdir(parents=True, exist_ok=True)
    write_gif(shown(played(player, stage, chosen, episodes), ends, seconds=stage.seconds), path)
    best = ", the best of them" if learner is None and learners > 1 else ""
    print(f"{player.name}, {player.experiment.env}: learner {chosen + 1} of {learners}{best}")
    for end in ends:
        print(f"episode {end.episode}: return {end.score:.6g} in {end.step} {'step' if end.step == 1 else 'steps'}")
    if episodes > 1:
        print(f"mean return: {sum(end.score for end in ends) / episodes:.6g}")
    print(f"film: {path}.gif")
    return 0


def best_learner(player: Player, seed: int) -> int:
    """Whose episodes return most."""
    if player.experiment.learners == 1:
        return 0
    return int(player.returns(JUDGED, seed=seed).mean(1).argmax())


def played(player: Player, stage: Stage, learner: int, episodes: int) -> Iterator[Scene]:
    """Episodes one after the other, a scene for their start and for every step."""
    observation, episode, step, score = stage.worlds.reset(), 1, 0, 0.0
    yield Scene(stage.picture(observation[0], None), episode, step, score, over=False)
    while episode <= episodes:
        action = player(observation.expand(player.experiment.learners, 1, -1))[learner]
        observation, reward, terminated, truncated, led_to = stage.worlds.step(action)
        step, score, over = step + 1, score + float(reward), bool(terminated | truncated)
        yield Scene(stage.picture(led_to[0], action[0]), episode, step, score, over)
        if over:
            episode, step, score = episode + 1, 0, 0.0
        elif step == stage.worlds.longest:
            raise endless(step)


def drawn_here(player: Player) -> Stage:
    """A world in tensors, drawn by our own hand."""
    from parnassus.report.worlds import DRAWINGS

    env = player.experiment.env
    draw = DRAWINGS[env]

    def picture(seen: Tensor, action: Tensor | None) -> "Picture":
        return draw(seen.tolist(), None if action is None else float(action.reshape(-1)[0]))

    return Stage(player.experiment.worlds(1, player.device), picture, SECONDS_A_STEP[env])


def filmed(player: Player) -> Stage:
    """One of gymnasium's, which draws itself: at its start and after every step."""
    from gymnasium.wrappers import RenderCollection

    env = player.experiment.env
    cameras: list[RenderCollection[object, object]] = []

    def make(name: str) -> "gymnasium.Env[Any, Any]":
        cameras.append(RenderCollection(drawing(name), reset_clean=False))
        return cast("gymnasium.Env[Any, Any]", cameras[0])

    def picture(_seen: Tensor, _action: Tensor | None) -> "Picture":
        frames = cast("list[Picture]", cameras[0].render())
        return np.asarray(frames[0], dtype=np.uint8)  # a second one begins the next episode

    worlds = Gymnasium(env, 1, device=player.device, make=make)
    return Stage(worlds, picture, 1 / float(cameras[0].metadata.get("render_fps", 30)))


def drawing(name: str) -> "gymnasium.Env[Any, Any]":
    """A world of gymnasium that draws itself, or a sentence."""
    from gymnasium.error import Error

    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # pictures without a window: pygame complains if it finds none
    try:
        world = made(name, pictures=True)
    except BrokenEnvironmentError as error:
        raise BrokenEnvironmentError(f"there are no pictures to make a film of: {error}") from None
    try:
        world.reset()
        if not isinstance(world.render(), np.ndarray):
            raise BrokenEnvironmentError(f"{name} has no pictures to make a film of")
    except (Error, NotImplementedError, ImportError) as error:
        raise BrokenEnvironmentError(f"{name} cannot draw itself: {str(error).splitlines()[0]}") from None
    return world


def shown(scenes: Iterable[Scene], ends: list[Scene], *, seconds: float) -> "Iterator[tuple[Picture, int]]":
    """Pictures and their milliseconds at the speed of the world; ends of episodes rest, and are put into `ends`."""
    every = max(1, round(1 / (FASTEST * seconds)))
    moment = max(20, round(1_000 * every * seconds))
    for scene in scenes:
        if scene.over:
            ends.append(scene)
        if scene.over or scene.step % every == 0:
            yield titled(scene), REST if scene.over else moment


def titled(scene: Scene) -> "Picture":
    """The picture under a line with the episode, the step and the return so far."""
    from PIL import Image, ImageDraw

    picture = Image.fromarray(scene.picture)
    picture.thumbnail((WIDEST, WIDEST))
    page = Image.new("RGB", (max(NARROWEST, picture.width), picture.height + 22), "white")
    page.paste(picture, ((page.width - picture.width) // 2, 22))
    words = f"episode {scene.episode}   step {scene.step}   return {scene.score:.1f}"
    ImageDraw.Draw(page).text((8, 5), words, fill="#2b2e33", font_size=12)
    return np.asarray(page)
