"""`parnassus watch RUN`: record episodes of a trained agent as an animation."""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import numpy as np
import torch
import tyro
from numpy.typing import NDArray
from torch import Tensor

from parnassus.atlas.reading import settings_of
from parnassus.atlas.settings import check_limits
from parnassus.reinforcement.commands.trained_agents import TrainedAgents, find_agents
from parnassus.reinforcement.environments import (
    TENSOR_ENVIRONMENTS,
    BrokenEnvironmentError,
    Environments,
    GymnasiumEnvironments,
)
from parnassus.reinforcement.environments.gymnasium_serial import make_gymnasium
from parnassus.reinforcement.environments.interface import endless_episode_error
from parnassus.runs.errors import RunError
from parnassus.runs.folder import RUNS
from parnassus.setting_types import Between, DeviceName, NonNegative, Positive
from parnassus.train.seeding import check_seed

if TYPE_CHECKING:
    import gymnasium

    Frame = NDArray[np.uint8]

SELECTION_EPISODES = 20  # per learner, to select the best one
MAX_FRAME_RATE = 25.0  # frames per second; steps of faster environments are subsampled
MAX_WIDTH, MIN_WIDTH = 480, 240  # pixels; the title does not fit into a narrower frame
PAUSE = 1_000  # milliseconds for which the last frame of an episode is shown
SECONDS_PER_STEP = {"Acrobot-v1": 1 / 15, "CartPole-v1": 1 / 50, "MountainCar-v0": 1 / 30, "Pendulum-v1": 1 / 30}


@dataclass(frozen=True)
class WatchSettings:
    """Record episodes of a trained agent as an animation (.gif), and print their returns."""

    run: Annotated[
        tyro.conf.Positional[str], tyro.conf.arg(metavar="RUN")
    ]  # a prefix that identifies one run, or `last`
    episodes: Annotated[int, Between(1, 10)] = 1  # number of episodes
    learner: Positive[int] | None = None  # number of the learner, starting from 1; by default the best
    stochastic: bool = False  # sample actions as in training, instead of taking the most probable one
    seed: NonNegative[int] = 0  # seed of the episodes
    out: Path | None = None  # path of the animation; by default RUN/animations/seed-N.gif
    device: DeviceName = "cpu"  # device to use
    folder: Path = RUNS  # folder of the runs


@dataclass(frozen=True)
class Renderer:
    """One copy of an environment, a function that draws its state, and the duration of a step in seconds."""

    environments: Environments
    render: "Callable[[Tensor, Tensor | None], Frame]"
    seconds: float


@dataclass(frozen=True)
class EpisodeFrame:
    """The frame after a step of an episode, with the return so far."""

    frame: "Frame"
    episode: int
    step: int
    episode_return: float
    is_last: bool


def parse_watch(arguments: list[str]) -> WatchSettings:
    settings = tyro.cli(WatchSettings, prog="parnassus watch", args=arguments)
    check_limits(settings_of(WatchSettings), settings)
    return settings


def record_episodes(settings: WatchSettings) -> int:
    """Play episodes, write them as an animation, and print their returns."""
    from parnassus.report.animations import write_gif

    check_seed(settings.seed)
    agents = find_agents(settings.run, settings.folder, device=settings.device, sample_actions=settings.stochastic)
    learners = agents.experiment.num_learners
    if settings.learner is not None and not 1 <= settings.learner <= learners:
        raise RunError(f"--learner must be between 1 and {learners} for {agents.name}; got {settings.learner}")
    learner = best_learner(agents, settings.seed) if settings.learner is None else settings.learner - 1
    out = settings.out or agents.folder / "animations" / f"seed-{settings.seed}"
    path = out.with_suffix("") if out.suffix == ".gif" else out
    renderer = choose_renderer(agents)
    torch.manual_seed(settings.seed)
    ends: list[EpisodeFrame] = []
    path.parent.mkdir(parents=True, exist_ok=True)
    played = play_episodes(agents, renderer, learner, settings.episodes)
    write_gif(timed_frames(played, ends, seconds=renderer.seconds), path)
    best = ", the best of them" if settings.learner is None and learners > 1 else ""
    print(f"{agents.name}, {agents.experiment.env}: learner {learner + 1} of {learners}{best}")
    for end in ends:
        steps = "1 step" if end.step == 1 else f"{end.step} steps"
        print(f"episode {end.episode}: return {end.episode_return:.6g} in {steps}")
    if settings.episodes > 1:
        print(f"mean return: {sum(end.episode_return for end in ends) / settings.episodes:.6g}")
    print(f"animation: {path}.gif")
    return 0


def best_learner(agents: TrainedAgents, seed: int) -> int:
    """The learner with the highest mean return."""
    if agents.experiment.num_learners == 1:
        return 0
    return int(agents.returns(SELECTION_EPISODES, seed=seed).mean(1).argmax())


def play_episodes(agents: TrainedAgents, renderer: Renderer, learner: int, episodes: int) -> Iterator[EpisodeFrame]:
    """Successive episodes, with one frame for the start and one for every step."""
    environments = renderer.environments
    observation, episode, step, total = environments.reset(), 1, 0, 0.0
    yield EpisodeFrame(renderer.render(observation[0], None), episode, step, total, is_last=False)
    while episode <= episodes:
        action = agents(observation.expand(agents.experiment.num_learners, 1, -1))[learner]
        observation, reward, terminated, truncated, next_observation = environments.step(action)
        step, total, is_last = step + 1, total + float(reward), bool(terminated | truncated)
        yield EpisodeFrame(renderer.render(next_observation[0], action[0]), episode, step, total, is_last)
        if is_last:
            episode, step, total = episode + 1, 0, 0.0
        elif step == environments.max_episode_steps:
            raise endless_episode_error(step)


def choose_renderer(agents: TrainedAgents) -> Renderer:
    """The drawing of a tensor environment by this library, otherwise Gymnasium's."""
    in_tensors = agents.experiment.env in TENSOR_ENVIRONMENTS and not agents.experiment.use_gymnasium
    return tensor_renderer(agents) if in_tensors else gymnasium_renderer(agents)


def tensor_renderer(agents: TrainedAgents) -> Renderer:
    """A tensor environment, drawn from its observations."""
    from parnassus.reinforcement.figures.classic_control import RENDERERS

    env = agents.experiment.env
    draw = RENDERERS[env]

    def render(observation: Tensor, action: Tensor | None) -> "Frame":
        return draw(observation.tolist(), None if action is None else float(action.reshape(-1)[0]))

    return Renderer(agents.experiment.make_environments(1, agents.device), render, SECONDS_PER_STEP[env])


def gymnasium_renderer(agents: TrainedAgents) -> Renderer:
    """A Gymnasium environment, which renders its start and every step."""
    from gymnasium.wrappers import RenderCollection

    env = agents.experiment.env
    collections: list[RenderCollection[object, object]] = []

    def make(name: str) -> "gymnasium.Env[Any, Any]":
        collections.append(RenderCollection(make_drawing_environment(name), reset_clean=False))
        return cast("gymnasium.Env[Any, Any]", collections[0])

    def render(_observation: Tensor, _action: Tensor | None) -> "Frame":
        frames = cast("list[Frame]", collections[0].render())
        return np.asarray(frames[0], dtype=np.uint8)  # a second one belongs to the next episode

    environments = GymnasiumEnvironments(env, 1, device=agents.device, make=make)
    return Renderer(environments, render, 1 / float(collections[0].metadata.get("render_fps", 30)))


def make_drawing_environment(name: str) -> "gymnasium.Env[Any, Any]":
    """A Gymnasium environment that renders to arrays."""
    from gymnasium.error import Error

    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # pygame draws without a window
    try:
        environment = make_gymnasium(name, render=True)
    except BrokenEnvironmentError as error:
        raise BrokenEnvironmentError(f"{name} cannot be rendered: {error}") from None
    try:
        environment.reset()
        if not isinstance(environment.render(), np.ndarray):
            raise BrokenEnvironmentError(f"{name} cannot be rendered: it returns no image")
    except (Error, NotImplementedError, ImportError) as error:
        raise BrokenEnvironmentError(f"{name} cannot be rendered: {str(error).splitlines()[0]}") from None
    return environment


def timed_frames(
    played: Iterable[EpisodeFrame], ends: list[EpisodeFrame], *, seconds: float
) -> "Iterator[tuple[Frame, int]]":
    """Frames and their milliseconds at the speed of the environment; the last of each episode is appended to `ends`."""
    every = max(1, round(1 / (MAX_FRAME_RATE * seconds)))
    milliseconds = max(20, round(1_000 * every * seconds))
    for each in played:
        if each.is_last:
            ends.append(each)
        if each.is_last or each.step % every == 0:
            yield add_title(each), PAUSE if each.is_last else milliseconds


def add_title(each: EpisodeFrame) -> "Frame":
    """The frame below a line with the episode, the step and the return so far."""
    from PIL import Image, ImageDraw

    image = Image.fromarray(each.frame)
    image.thumbnail((MAX_WIDTH, MAX_WIDTH))
    page = Image.new("RGB", (max(MIN_WIDTH, image.width), image.height + 22), "white")
    page.paste(image, ((page.width - image.width) // 2, 22))
    title = f"episode {each.episode}   step {each.step}   return {each.episode_return:.1f}"
    ImageDraw.Draw(page).text((8, 5), title, fill="#2b2e33", font_size=12)
    return np.asarray(page)
