"""What a module of a room declares: claims, errata, experiments, probes and commands, as the index stores them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any, Literal

from parnassus.atlas.bands import Band
from parnassus.atlas.settings import Setting

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

RUN_VERBS = {"Sample": "sample", "Predict": "predict", "Evaluate": "evaluate"}
"""Optional dataclasses of an experiment, with the verbs that they implement."""


class Declaration:
    """A part that a module of a room declares."""

    module: str

    @property
    def room(self) -> str:
        return self.module.split(".")[1]


@dataclass(frozen=True)
class Mark(Declaration):
    """A function marked `@claim` or `@erratum`."""

    kind: Literal["claim", "erratum"]
    name: str
    module: str
    ids: tuple[str, ...]
    statement: str
    printed: str = ""
    right: str = ""
    slow: bool = False

    @property
    def label(self) -> str:
        return self.name.replace("_", " ")

    @property
    def summary(self) -> str:
        """The first paragraph of the statement, as one line."""
        return self.statement.split("\n\n")[0].replace("\n", " ")


@dataclass(frozen=True)
class Probe(Declaration):
    """A function marked `@probe`: an interactive view."""

    name: str
    module: str
    title: str
    text: str
    experiments: tuple[str, ...]  # experiments whose runs it shows; () if it needs no run


@dataclass(frozen=True)
class Entry(Declaration):
    """The declarations of an experiment's file."""

    name: str
    module: str
    title: str
    text: str
    covers: tuple[str, ...]
    expected: Mapping[str, Band]
    presets: Mapping[str, Mapping[str, Any]]  # settings changed by each profile
    settings: tuple[Setting, ...]  # those of base classes first, as in the dataclass
    verb_settings: Mapping[str, tuple[Setting, ...]] = field(default_factory=dict)
    """The flags of the verbs supported for trained runs: sample, predict, evaluate."""
    sources: tuple[str, ...] = ()  # other modules that declare some of the settings
    tuned: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    """Defaults that depend on another setting: {"env": {"Acrobot-v1": {"n_envs": 16}}}."""

    @property
    def verbs(self) -> tuple[str, ...]:
        """The verbs supported for trained runs."""
        return tuple(self.verb_settings)

    @property
    def profiles(self) -> tuple[str, ...]:
        """The profiles other than `laptop`, which uses the defaults."""
        return tuple(self.presets)

    @cached_property
    def defaults(self) -> dict[str, object]:
        """The settings of the laptop profile."""
        return {setting.name: setting.default_value for setting in self.settings}

    def preset(self, profile: str, values: Mapping[str, object]) -> dict[str, Any]:
        """The settings that a profile changes, and those tuned for the given `values` of other settings."""
        profile_values = self.presets.get(profile, {})
        chosen = {**self.defaults, **profile_values, **values}
        tuned = [table.get(str(chosen[name]), {}) for name, table in self.tuned.items()]
        return {name: value for each in (*tuned, profile_values) for name, value in each.items()}

    def bands_apply(self, profile: str, settings: Mapping[str, object]) -> bool:
        """Whether a run has the laptop profile with its default settings, to which the bands apply."""
        defaults = {**self.defaults, **self.preset("laptop", {})}
        return profile == "laptop" and _tuples(settings) == _tuples(defaults)


@dataclass(frozen=True)
class Command(Declaration):
    """A verb of the command line that belongs to a room."""

    verb: str
    module: str
    help: str
    example: str = ""  # use on a run, {run}, if the verb takes runs of some experiments
    method: str = ""  # the method that these experiments have


def entry_as_plain(entry: Entry) -> dict[str, Any]:
    """An experiment in a form that JSON can represent; settings and bands become short lists."""
    return {
        **declared_fields(entry),
        "expected": {
            name: [_finite(band.low), _finite(band.high), band.about] for name, band in entry.expected.items()
        },
        "settings": _plain_settings(entry.settings),
        "verb_settings": {verb: _plain_settings(settings) for verb, settings in entry.verb_settings.items()},
    }


def entry_from_plain(plain: Mapping[str, Any]) -> Entry:
    return Entry(
        **{
            **plain,
            "covers": tuple(plain["covers"]),
            "presets": {profile: _tuples(values) for profile, values in plain["presets"].items()},
            "sources": tuple(plain["sources"]),
            "settings": _settings_from_plain(plain["settings"]),
            "verb_settings": {verb: _settings_from_plain(each) for verb, each in plain["verb_settings"].items()},
            "expected": {
                name: Band(-inf if low is None else low, inf if high is None else high, about)
                for name, (low, high, about) in plain["expected"].items()
            },
        }
    )


def _plain_settings(settings: Iterable[Setting]) -> list[list[str]]:
    return [[each.name, each.annotation, each.default, each.help] for each in settings]


def _settings_from_plain(plain: Iterable[Sequence[str]]) -> tuple[Setting, ...]:
    return tuple(Setting(*each) for each in plain)


def declared_fields(declared: "DataclassInstance") -> dict[str, Any]:
    """The fields of a dataclass by name, without cached properties."""
    return {each.name: getattr(declared, each.name) for each in fields(declared)}


def _finite(bound: float) -> float | None:
    return None if bound in (-inf, inf) else bound


def _tuples(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
