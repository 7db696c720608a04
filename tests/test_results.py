"""The command of every stored result is still valid, and the results are inside of today's bands."""

import json
import shlex
from dataclasses import asdict
from pathlib import Path

from bands import RECORDS, outside, read_records

from parnassus.atlas.bands import judge
from parnassus.atlas.index import Atlas
from parnassus.atlas.settings import check_limits
from parnassus.cli.run import parse

ATLAS = Atlas()
RESULTS = sorted(set((Path(__file__).parents[1] / "results").glob("*.json")) - {RECORDS})


def test_stored_commands_are_parsed_and_match_their_options() -> None:
    assert len(RESULTS) >= 30
    for path in RESULTS:
        result = json.loads(path.read_text(encoding="utf-8"))
        words = shlex.split(result.get("command_now", result["command"]))
        name, *flags = words[words.index("run") + 1 :]
        entry = ATLAS.experiments[name]
        experiment, options, launch = parse(entry, flags)
        check_limits(entry.settings, experiment)
        assert launch.profile == result["profile"], path.name
        assert options.seed == result["options"]["seed"], path.name


def test_stored_results_are_inside_their_bands() -> None:
    judged, bad = 0, dict[str, float]()
    for path in RESULTS:
        result = json.loads(path.read_text(encoding="utf-8"))
        words = shlex.split(result.get("command_now", result["command"]))
        name, *flags = words[words.index("run") + 1 :]
        experiment, _, launch = parse(ATLAS.experiments[name], flags)
        if ATLAS.experiments[name].bands_apply(launch.profile, asdict(experiment)):
            judged += 1
            verdict = judge(ATLAS.experiments[name].expected, result["result"], applies=True)
            bad |= {f"{path.name}: {each.name}": each.value for each in verdict.values if each.holds is False}
    assert judged > 0
    assert not bad, bad


def test_recorded_runs_are_inside_their_bands() -> None:
    records = read_records()
    assert not set(records) - set(ATLAS.experiments), "results/bands.json records experiments that do not exist"
    bad = {
        f"{name}, seed {seed}": found
        for name, runs in records.items()
        for seed, record in runs.items()
        if (found := outside(name, record))
    }
    assert not bad, bad
