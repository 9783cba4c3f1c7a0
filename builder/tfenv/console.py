"""What a person sees on stderr: notes, errors, and how a build or a download goes on.

On a terminal a live view, elsewhere plain lines. Data never passes through here: it goes to stdout.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import IO, TYPE_CHECKING, Any

from tfenv.errors import TfenvError
from tfenv.progress import Progress, Step, clean

if TYPE_CHECKING:
    import rich.console
    from rich.table import Table

Event = Mapping[str, Any]
DownloadCallback = Callable[[str, int, int], None]

_MARKS = {"running": ">", "done": "+", "cached": "=", "failed": "x", "waiting": " "}
_STYLES = {"running": "cyan", "done": "green", "cached": "dim", "failed": "bold red"}
_QUIET_BYTES = 1_000_000  # BuildKit's housekeeping is shown from here on
_BEAT = 30.0  # seconds between plain lines about one long step
_BIG_FILE = 20_000_000  # a download of this many bytes deserves a plain line of its own
_DOWNLOAD_BEAT = 5.0  # seconds between plain lines about all downloads


def size(count: int) -> str:
    """Bytes for people, in powers of 1000: ``1.2 GB``."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit in ("B", "kB") else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def duration(seconds: float) -> str:
    """``12.3 s``, ``4 min 05 s``."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60):02d} s"


def title(name: str, width: int = 70) -> str:
    """A step's name on one line: without the options of its RUN, cut to ``width``."""
    words = [word for word in name.split() if not word.startswith(("--mount=", "--network="))]
    text = " ".join(words)
    return text if len(text) <= width else f"{text[: width - 3]}..."


def amount(step: Step) -> str:
    """The bytes that a step moved, where it moves any."""
    if step.total:
        return f"{size(step.current)} of {size(step.total)}"
    return size(step.current) if step.current else ""


def shown(step: Step) -> bool:
    """Is this step worth a line?"""
    if step.state == "waiting":
        return False
    return not step.internal or step.current >= _QUIET_BYTES or step.state == "failed"


def plain_line(step: Step) -> str:
    """``#3 [cuda 2/2] RUN ... 12.3 s, done``"""
    parts = [p for p in (amount(step), duration(step.seconds()) if step.completed else "") if p]
    state = "" if step.state == "running" else step.state
    detail = ", ".join([*parts, *([state] if state else [])])
    return f"#{step.number} {title(step.name)}" + (f" ... {detail}" if detail else "")


def is_live(env: Mapping[str, str], terminal: bool) -> bool:
    """May the view be redrawn in place?"""
    return terminal and env.get("TERM", "") not in ("", "dumb") and not env.get("CI")


class Console:
    """Everything said to a person.

    Args:
        stream: where it goes (stderr). env: NO_COLOR, TERM and CI are read from it.
        clock: seconds, monotonic; now: the time of day, compared with BuildKit's.
    """

    def __init__(
        self,
        env: Mapping[str, str] = os.environ,
        stream: IO[str] | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(timezone.utc),
    ) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._clock = clock
        self._now = now
        self.live = is_live(env, self._stream.isatty())
        self.color = self.live and not env.get("NO_COLOR")
        self._lock = threading.Lock()  # downloads report from several threads
        self._on_screen: rich.console.Console | None = None

    def _line(self, text: str, style: str = "") -> None:
        text = clean(text)
        with self._lock:
            if self._on_screen is not None:
                self._on_screen.print(text, style=style or None, markup=False, highlight=False)
                return
            if style and self.color:
                text = f"\x1b[{style}m{text}\x1b[0m"
            self._stream.write(f"{text}\n")
            self._stream.flush()

    def note(self, text: str) -> None:
        """Say something."""
        self._line(text)

    def warn(self, text: str) -> None:
        """Say something that deserves a look."""
        self._line(f"warning: {text}", "" if self._on_screen else "33")

    def error(self, error: TfenvError) -> None:
        """Say what is wrong and what to do about it."""
        self._line(f"error: {error.message}", "" if self._on_screen else "31")
        if error.remedy:
            first, *others = error.remedy.splitlines()
            self._line("\n".join([f"remedy: {first}", *(f"        {line}" for line in others)]))

    def _rich(self) -> rich.console.Console:
        from rich.console import Console as Rich

        return Rich(file=self._stream, no_color=not self.color, force_terminal=True)

    @contextmanager
    def _screen(self, render: Callable[[], Table]) -> Iterator[None]:
        from rich.live import Live

        screen = self._rich()
        with Live(console=screen, get_renderable=render, refresh_per_second=5):
            self._on_screen = screen
            try:
                yield
            finally:
                self._on_screen = None

    @contextmanager
    def build_view(self) -> Iterator[Callable[[Event], None]]:
        """Give the callback for ``run_build``: it shows the steps as they go on."""
        progress = Progress()
        if self.live:
            with self._screen(lambda: _steps_table(progress.steps, self._now())):

                def redraw(event: Event) -> None:
                    progress.feed(event)

                yield redraw
            return
        said: dict[str, tuple[str, float]] = {}

        def tell(event: Event) -> None:
            for step in progress.feed(event):
                state, last = said.get(step.digest, ("", 0.0))
                stale = step.state == "running" and self._clock() - last >= _BEAT
                if shown(step) and (step.state != state or stale):
                    said[step.digest] = (step.state, self._clock())
                    self._line(plain_line(step))

        yield tell

    @contextmanager
    def downloads(self, files: int, total: int) -> Iterator[DownloadCallback]:
        """Give the callback (name, bytes done, bytes in all) for a fetch of ``files`` files.

        ``total`` is the bytes of all of them. Calls come one at a time, from any thread.
        """
        seen: dict[str, tuple[int, int]] = {}
        began = self._clock()
        if self.live:
            with self._screen(lambda: _files_table(dict(seen), files, total, self._clock() - began)):
                yield lambda name, done, whole: seen.__setitem__(name, (done, whole))
            return
        last = began

        def so_far() -> str:
            complete = sum(1 for now, whole in seen.values() if now >= whole)
            got = sum(now for now, _ in seen.values())
            return f"{complete} of {files} files, {size(got)} of {size(total)}"

        def tell(name: str, done: int, whole: int) -> None:  # one call at a time, says download()
            nonlocal last
            news = seen.get(name) != (done, whole)
            seen[name] = (done, whole)
            if news and done >= whole >= _BIG_FILE:
                self._line(f"fetched {name} {size(whole)}")
            if self._clock() - last >= _DOWNLOAD_BEAT:
                last = self._clock()
                self._line(f"fetching: {so_far()}")

        yield tell
        self._line(f"fetched: {so_far()}, {duration(self._clock() - began)}")


def _steps_table(steps: Sequence[Step], now: datetime, rows: int = 15) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 1))
    table.add_column()
    table.add_column(ratio=1, no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    begun = sorted((s for s in steps if s.started and shown(s)), key=lambda s: s.started or now)
    for step in begun[-rows:]:
        style = _STYLES.get(step.state, "")
        cells = (_MARKS[step.state], title(step.name), amount(step), duration(step.seconds(now)))
        table.add_row(*(Text(cell, style=style) for cell in cells))
    return table


def _files_table(seen: Mapping[str, tuple[int, int]], files: int, total: int, seconds: float) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 1))
    done = sum(1 for now, whole in seen.values() if now >= whole)
    got = sum(now for now, _ in seen.values())
    rate = f"{size(int(got / seconds))}/s" if seconds > 0 else ""
    table.add_row(Text(f"{done} of {files} files"), Text(f"{size(got)} of {size(total)}"), Text(rate))
    for name, (now, whole) in [(n, v) for n, v in seen.items() if v[0] < v[1]][-8:]:
        table.add_row(Text(clean(name)), Text(f"{size(now)} of {size(whole)}"), Text(""))
    return table
