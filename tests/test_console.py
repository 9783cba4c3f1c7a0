from __future__ import annotations

import io

import pytest
from rich.console import Console as Rich
from test_progress import events
from tfenv.console import Console, _files_table, _steps_table, duration, is_live, size, title
from tfenv.errors import TfenvError
from tfenv.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


TTY = {"TERM": "xterm"}


@pytest.mark.parametrize(
    ("env", "terminal", "live"),
    [
        (TTY, True, True),
        (TTY, False, False),
        ({"TERM": "dumb"}, True, False),
        ({}, True, False),
        ({**TTY, "CI": "true"}, True, False),
    ],
)
def test_where_the_view_is_live(env, terminal, live):
    assert is_live(env, terminal) is live


def test_no_color():
    assert Console(TTY, Terminal()).color
    assert not Console({**TTY, "NO_COLOR": "1"}, Terminal()).color
    assert not Console(TTY, io.StringIO()).color


def said(action, env=None, stream=None):
    stream = stream or io.StringIO()
    action(Console(env or {}, stream))
    return stream.getvalue()


def test_plain_words_and_control_characters_removed():
    assert said(lambda c: c.note("a\x1b[2Jb\x07")) == "ab\n"
    assert said(lambda c: c.warn("careful")) == "warning: careful\n"
    error = TfenvError("it broke", remedy="do this\nthen that")
    assert said(lambda c: c.error(error)) == "error: it broke\nremedy: do this\n        then that\n"
    assert said(lambda c: c.error(TfenvError("x", remedy=""))) == "error: x\n"


def test_colour_only_on_a_terminal_that_wants_it():
    def warn(console):
        console.warn("w")

    assert said(warn, TTY, Terminal()) == "\x1b[33mwarning: w\x1b[0m\n"
    assert said(warn, {**TTY, "NO_COLOR": "1"}, Terminal()) == "warning: w\n"


def play(console, name):
    with console.build_view() as on_event:
        for event in events(name)[0]:
            on_event(event)


def test_plain_lines_of_a_build(snapshot):
    stream = io.StringIO()
    play(Console({}, stream), "build-ok.rawjson")
    assert stream.getvalue() == snapshot


def test_plain_lines_of_a_failure():
    stream = io.StringIO()
    play(Console({}, stream), "build-fail.rawjson")
    assert stream.getvalue().splitlines()[-1].endswith("... 0.1 s, failed")


def test_a_long_step_gives_a_sign_of_life():
    stream = io.StringIO()
    time = [0.0]
    with Console({}, stream, clock=lambda: time[0]).build_view() as on_event:
        vertex = {"digest": "d", "name": "[1/1] RUN x", "started": "2024-01-01T00:00:00Z"}
        on_event({"vertexes": [vertex]})
        for seconds, current in ((10, 5_000_000), (31, 9_000_000), (40, 9_500_000)):
            time[0] = seconds
            on_event({"statuses": [{"vertex": "d", "id": "x", "current": current}]})
    assert stream.getvalue().splitlines() == ["#1 [1/1] RUN x", "#1 [1/1] RUN x ... 9.0 MB"]


def rendered(table):
    screen = Rich(file=io.StringIO(), width=100, force_terminal=False)
    screen.print(table)
    return screen.file.getvalue()


def test_the_live_table(snapshot):
    progress = Progress()
    for event in events("build-fail.rawjson")[0]:
        progress.feed(event)
    now = progress.steps[-1].completed
    assert rendered(_steps_table(progress.steps, now)) == snapshot


def test_the_live_view_ends_and_speaks_through_the_screen():
    stream = Terminal()
    console = Console({**TTY, "NO_COLOR": "1"}, stream)
    with console.build_view() as on_event:
        for event in events("build-ok.rawjson")[0]:
            on_event(event)
        console.note("[bold]a note[/bold]")
    assert "exporting to oci image format" in stream.getvalue()
    assert "[bold]a note[/bold]" in stream.getvalue()


def test_downloads_in_plain_lines():
    stream, time = io.StringIO(), [0.0]
    with Console({}, stream, clock=lambda: time[0]).downloads(3, 64_000_000) as tell:
        tell("small.deb", 500_000, 1_000_000)
        tell("small.deb", 1_000_000, 1_000_000)
        time[0] = 6.0
        tell("big.whl", 10_000_000, 60_000_000)
        time[0] = 7.0
        for _ in range(2):
            tell("big.whl", 60_000_000, 60_000_000)
        tell("other.deb", 3_000_000, 3_000_000)
    assert stream.getvalue().splitlines() == [
        "fetching: 1 of 3 files, 11.0 MB of 64.0 MB",
        "fetched big.whl 60.0 MB",
        "fetched: 3 of 3 files, 64.0 MB of 64.0 MB, 7.0 s",
    ]


def test_downloads_that_failed_are_not_called_fetched():
    stream = io.StringIO()
    with pytest.raises(OSError), Console({}, stream, clock=lambda: 0.0).downloads(2, 2) as tell:
        tell("a.deb", 1, 1)
        raise OSError
    assert stream.getvalue() == ""


def test_downloads_on_a_terminal():
    stream = Terminal()
    with Console(TTY, stream).downloads(1, 10) as tell:
        tell("a.whl", 10, 10)
    assert "1 of 1 files" in stream.getvalue()
    text = rendered(_files_table({"a": (5, 10), "b": (2, 2)}, 3, 20, 2.0))
    assert "1 of 3 files" in text and "7 B of 20 B" in text and "5 B of 10 B" in text


def test_numbers_for_people():
    assert [size(n) for n in (0, 999, 1000, 1_234_567, 3_400_000_000, 2 * 10**12)] == [
        "0 B",
        "999 B",
        "1 kB",
        "1.2 MB",
        "3.4 GB",
        "2.0 TB",
    ]
    assert [duration(s) for s in (0.04, 12.34, 245)] == ["0.0 s", "12.3 s", "4 min 05 s"]
    assert title("[a 1/2] RUN --network=none --mount=type=bind,x  echo\n hi") == "[a 1/2] RUN echo hi"
    assert len(title("x" * 200)) == 70
