from __future__ import annotations

import base64
import json
from datetime import datetime, timezone

import pytest
from tfenv.progress import Decoder, Progress, clean, logs, parse_time
from tiny import FIXTURES


def events(name):
    decoder = Decoder()
    items = [decoder.feed(line) for line in (FIXTURES / name).read_text().splitlines(keepends=True)]
    assert decoder.close() is None
    return [i for i in items if isinstance(i, dict)], [i for i in items if isinstance(i, str) and i]


def played(name):
    progress = Progress()
    for event in events(name)[0]:
        progress.feed(event)
    return progress


def test_a_recorded_build():
    steps = played("build-ok.rawjson").steps
    assert [step.name for step in steps if not step.internal] == [
        "[stage-1 1/1] COPY --from=a /ldconfig /ldconfig",
        '[a 2/2] RUN --network=none ["/ldconfig","--version"]',
        "[a 1/2] COPY ldconfig /ldconfig",
        "exporting to oci image format",
    ]
    assert {step.state for step in steps} == {"done"}
    assert [step.number for step in steps] == list(range(1, len(steps) + 1))
    run = next(step for step in steps if "RUN" in step.name)
    assert run.seconds() == pytest.approx(0.42013, abs=1e-4)
    sent = next(step for step in steps if step.name == "[internal] load build context")
    assert sent.current == 988386


def test_a_recorded_failure():
    progress = played("build-fail.rawjson")
    failed = progress.failed
    assert failed is not None and "--nonsense" in failed.name
    assert failed.error.endswith("exit code: 64")
    assert progress.tail(failed.digest)[0] == "/ldconfig: unrecognized option '--nonsense'"
    assert len(progress.tail(failed.digest, 1)) == 1
    assert events("build-fail.rawjson")[1][0] == "Dockerfile.fail:4"


def test_one_event_a_line_reads_the_same():
    decoder = Decoder()
    for event in events("build-ok.rawjson")[0]:
        assert decoder.feed(json.dumps(event) + "\n") == event


def test_text_between_events_and_broken_events_are_text():
    decoder = Decoder()
    assert decoder.feed("ERROR: x\n") == "ERROR: x"
    assert decoder.feed("{not json}\n") == "{not json}"
    assert decoder.feed("{\n") is None
    assert decoder.feed('  "a": \n') is None
    assert decoder.feed("}\n") == '{\n  "a": \n}'
    assert decoder.feed('{"a": 1}\n') == {"a": 1}
    decoder.feed("{\n")
    assert decoder.close() == "{"


def vertex(**more):
    return {"vertexes": [{"digest": "sha256:1", "name": "[1/1] RUN x", **more}]}


T0, T1, T3 = (f"2024-01-01T00:00:0{s}.123456789Z" for s in (0, 1, 3))


def test_states():
    progress = Progress()
    states = [
        progress.feed(vertex(**more))[0].state
        for more in (
            {},
            {"started": T0},
            {"started": T0, "completed": T1},
            {"started": T0, "completed": T1, "cached": True},
            {"started": T0, "completed": T1, "error": "boom"},
        )
    ]
    assert states == ["waiting", "running", "done", "cached", "failed"]
    assert progress.failed is not None


def test_time_of_a_step_that_starts_twice_adds_up_and_goes_on():
    progress = Progress()
    progress.feed(vertex(started=T0, completed=T1))
    (step,) = progress.feed(vertex(started=T1))
    now = datetime(2024, 1, 1, 0, 0, 5, 123456, timezone.utc)
    assert step.seconds(now) == pytest.approx(5)
    (step,) = progress.feed(vertex(started=T1, completed=T3))
    assert step.seconds(now) == pytest.approx(3)


def test_bytes_add_up_over_the_parts_of_a_step():
    progress = Progress()
    progress.feed(vertex(started=T0))

    def part(name, current, total):
        return {"statuses": [{"id": name, "vertex": "sha256:1", "current": current, "total": total}]}

    progress.feed(part("a", 1, 10))
    progress.feed(part("a", 5, 10))
    (step,) = progress.feed(part("b", 2, 20))
    assert (step.current, step.total) == (7, 30)
    assert progress.feed({"statuses": [{"id": "x", "vertex": "sha256:unknown"}]}) == ()


def test_a_cancelled_step_is_not_the_culprit():
    progress = Progress()
    progress.feed(vertex(started=T0, completed=T1, error="rpc error: context canceled"))
    other = {"digest": "sha256:2", "name": "b", "started": T0, "completed": T1, "error": "boom"}
    progress.feed({"vertexes": [other]})
    assert progress.failed is not None and progress.failed.digest == "sha256:2"


def test_output_in_pieces_is_joined():
    progress = Progress()

    def log(text):
        data = base64.b64encode(text.encode()).decode()
        return {"logs": [{"vertex": "sha256:1", "data": data}]}

    for text in ("one\ntw", "o\n", "thr\x1b[31mee\x1b[0m"):
        progress.feed(log(text))
    assert progress.tail("sha256:1") == ["one", "two", "three"]
    assert logs(log("x\n")) == [("sha256:1", "x\n")]
    assert progress.feed({"warnings": [{"short": base64.b64encode(b"old syntax").decode()}]}) == ()
    progress.feed({"logs": [{"vertex": "sha256:1", "data": "!"}]})


@pytest.mark.parametrize(
    ("dirty", "expected"),
    [
        ("\x1b[2J\x1b[1;1Hhi", "hi"),
        ("\x1b]0;title\x07hi", "hi"),
        ("\x1b]8;;http://x\x1b\\hi", "hi"),
        ("a\x00b\x08c\x9bd", "abcd"),
        ("50%\r100%\r\n", "50%\n100%\n"),
        ("safe\u202etxt.exe", "safetxt.exe"),
        ("tab\tnew\nline é", "tab\tnew\nline é"),
        ("\x1bcreset", "reset"),
    ],
)
def test_clean(dirty, expected):
    assert clean(dirty) == expected


def test_times():
    assert parse_time("2024-01-01T00:00:00.5Z") == datetime(2024, 1, 1, 0, 0, 0, 500000, timezone.utc)
    assert parse_time("2024-01-01T00:00:00Z") == datetime(2024, 1, 1, tzinfo=timezone.utc)
    assert parse_time(None) is None
    assert parse_time("soon") is None
