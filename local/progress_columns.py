"""Columns of the progress bars of `ingest`: count, elapsed time, rate and remaining time."""

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text


class Rate(ProgressColumn):
    """Items a second; below one a second, items a minute."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        if not speed:
            return Text("-/s", style="progress.data.speed")
        text = f"{speed:.1f}/s" if speed >= 1 else f"{speed * 60:.1f}/min"
        return Text(text, style="progress.data.speed")


def columns() -> tuple[ProgressColumn, ...]:
    return (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        Rate(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
