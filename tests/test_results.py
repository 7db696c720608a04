"""Every kept result names a command that can be typed today."""

import json
import shlex
from pathlib import Path

from parnassus.atlas.index import Atlas
from parnassus.cli.run import check_settings, parse

ATLAS = Atlas()
RESULTS = sorted((Path(__file__).parents[1] / "results").glob("*.json"))


def test_every_command_is_accepted_by_its_parser() -> None:
    assert len(RESULTS) >= 30
    for path in RESULTS:
        kept = json.loads(path.read_text(encoding="utf-8"))
        words = shlex.split(kept.get("command_now", kept["command"]))
        name, *flags = words[words.index("run") + 1 :]
        entry = ATLAS.experiments[name]
        experiment, options, launch = parse(entry, flags)
        check_settings(entry, experiment)
        assert launch.profile == kept["profile"], path.name
        assert options.seed == kept["options"]["seed"], path.name
