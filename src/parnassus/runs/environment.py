"""Start, duration, machine and versions of a run, as text for its report and its page in the lab."""

from collections.abc import Mapping

from parnassus.report.formatting import format_number


def describe_environment(about: Mapping[str, object], seconds: object) -> dict[str, str]:
    """The environment of a run, from the content of its run.json and its duration, None for an unfinished run."""
    options, versions = about.get("options"), about.get("versions")
    described = {
        "started": str(about.get("started", "")).replace("T", " ")[:19],
        "profile": str(about.get("profile", "")),
        "seconds": "not finished" if seconds is None else format_number(seconds),
    }
    if isinstance(options, dict):
        described |= {name: format_number(options[name]) for name in ("seed", "device", "precision") if name in options}
    described["machine"] = str(about.get("machine", ""))
    if isinstance(versions, dict):
        described["versions"] = ", ".join(f"{name} {version}" for name, version in versions.items())
    return described
