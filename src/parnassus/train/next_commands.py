"""The commands that make sense after a run, derived from what its experiment declares."""

import importlib
from shlex import quote

from parnassus.atlas.declarations import Entry
from parnassus.atlas.index import load_atlas
from parnassus.runs.folder import RUNS, RunFolder
from parnassus.runs.lookup import command_for

PURPOSES = {
    "sample": "Draw samples from the trained model",
    "predict": "Apply it to new input",
    "evaluate": "Evaluate it again, or on other data",
    "explain": "Explain its predictions for rows of a table",
    "watch": "Watch the trained agent",
}
FLAGS = {"sample": {"prompt": "Once"}, "evaluate": {"data": "OTHER"}}
"""Settings of Sample and Evaluate that the suggested commands show, with example values."""


def next_commands(name: str, experiment: object, folder: RunFolder) -> dict[str, str]:
    """Purposes and commands to copy for a run of the experiment `name`; none if the index does not have it."""
    atlas = load_atlas()
    if name not in atlas.experiments:
        return {}
    entry = atlas.experiments[name]
    run = quote(folder.path.name if folder.path.parent == RUNS else str(folder.path))
    data = quote(str(getattr(experiment, "data", "my.csv")))
    suggested = {verb: command_for(folder, verb, *_flags(entry, verb)) for verb in entry.verbs}
    suggested |= {
        each.verb: f"parnassus {each.example.format(run=run, data=data)}"
        for each in atlas.commands.values()
        if each.method and callable(getattr(experiment, each.method, None))
    }
    return {PURPOSES.get(verb, f"Use it with {verb}"): command for verb, command in suggested.items()}


def _flags(entry: Entry, verb: str) -> list[str]:
    """The input of `predict`, and flags of `sample` and `evaluate` that are often changed."""
    if verb == "predict":
        suffixes: tuple[str, ...] = importlib.import_module(entry.module).Predict.suffixes
        return [f"my{suffixes[0]}"]
    names = {setting.name for setting in entry.verb_settings[verb]}
    return [word for name, value in FLAGS.get(verb, {}).items() if name in names for word in (f"--{name}", value)]
