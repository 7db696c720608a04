"""The environment of a run as text, also from incomplete or damaged files."""

from parnassus.runs.environment import describe_environment

ABOUT = {
    "started": "2026-01-02T03:04:05+00:00",
    "profile": "smoke",
    "machine": "Linux x86_64, 2 cores",
    "options": {"seed": 3, "device": "cpu", "quiet": True},
    "versions": {"parnassus": "0.2.0", "torch": "2.11"},
}


def test_environment_has_all_facts_in_order() -> None:
    assert describe_environment(ABOUT, 1234.567) == {
        "started": "2026-01-02 03:04:05",
        "profile": "smoke",
        "seconds": "1235",
        "seed": "3",
        "device": "cpu",
        "machine": "Linux x86_64, 2 cores",
        "versions": "parnassus 0.2.0, torch 2.11",
    }


def test_unfinished_and_damaged_runs_are_described() -> None:
    assert describe_environment(ABOUT, None)["seconds"] == "not finished"
    assert describe_environment({"options": 3, "versions": [1], "started": 5}, "?") == {
        "started": "5",
        "profile": "",
        "seconds": "?",
        "machine": "",
    }
