"""Progress of a loop: its position, its speed and the time left."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf


@dataclass(frozen=True)
class Progress:
    """`done` of `total` steps of the loop called `title`; this session began at step `first`, `seconds` ago.

    `metrics` are those of the last step; metrics.csv contains fewer steps.

    >>> Progress("training", done=50, total=200).done
    50
    """

    title: str
    done: int
    total: int
    first: int = 0  # first step of this session
    seconds: float = 0.0  # since the beginning of this session
    metrics: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def read(cls, content: Mapping[str, object]) -> "Progress | None":
        """Parse the content of progress.json; None if it is not valid."""
        match content:
            case {"title": str(title), "done": int(done), "total": int(total), "first": int(first)}:
                seconds, metrics = content.get("seconds"), content.get("metrics")
                return cls(
                    title,
                    done,
                    total,
                    first,
                    float(seconds) if isinstance(seconds, float) else 0.0,
                    {k: v for k, v in metrics.items() if isinstance(v, float)} if isinstance(metrics, dict) else {},
                )
        return None

    @property
    def rate(self) -> float:
        """Steps per second since the session began."""
        return (self.done - self.first) / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float:
        """Estimated seconds until the end."""
        return (self.total - self.done) / self.rate if self.rate > 0 else inf

    @property
    def pace(self) -> str:
        """Steps per second, and the time left or, at the end, the total time."""
        shown = f"{self.rate:,.0f}" if self.rate >= 10 else f"{self.rate:.2f}"
        if self.done < self.total:
            return f"{shown} steps/s, {format_duration(self.seconds_left)} left"
        return f"{shown} steps/s, took {format_duration(self.seconds)}"

    def __str__(self) -> str:
        return f"{self.title} {self.done:,}/{self.total:,}  {self.pace}"


def format_duration(seconds: float) -> str:
    """A duration as 0:07, 12:30 or 1:02:03; "?" if it is infinite."""
    if seconds == inf:
        return "?"
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
