"""What runs on a recorded host: rows, the best choice, the driver that is needed; and how it is told."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from doctor_fakes import conditions, host
from tfenv.compat import known
from tfenv.compat.subject import Known
from tfenv.doctor.asking import ask
from tfenv.doctor.collecting import look, told_of_try, tried
from tfenv.doctor.evidence import Evidence, Ran
from tfenv.doctor.judging import judge
from tfenv.doctor.reading import values
from tfenv.doctor.reading.toolkit import TRY
from tfenv.doctor.rows import Row, Rows, day, grouped, question, rows
from tfenv.doctor.sources import Sources
from tfenv.doctor.telling import summary, text
from tfenv.matrix import load_matrix
from tfenv.model import Cell, Matrix
from tfenv.resources import checkout_matrix


@cache
def matrix() -> Matrix:
    path = checkout_matrix()
    assert path
    return load_matrix(path)


@cache
def world() -> Known:
    return known(day("2026-05-30"))


def of(evidence: Evidence) -> Rows:
    return rows(values(evidence), matrix(), world())


def state(found: Rows, release: str) -> Row:
    return next(row for row in found.rows if row.tensorflow == release)


def condition(finding: str) -> Evidence:
    row = next(row for row in conditions() if row["finds"][0] == finding)
    return host(row["base"], row)


def test_a_server_of_hopper() -> None:
    found = of(host("server"))
    assert found.gpus == ("NVIDIA H100 80GB HBM3",) and found.driver == "550.127.05"
    assert state(found, "2.15.1").state == "limit"
    assert set(state(found, "2.15.1").codes) == {"jit-at-first-use", "nccl-without-code"}
    assert state(found, "2.21.0").state == "refused" and state(found, "2.21.0").codes == (
        "driver-too-old-for-ptx",
    )
    assert state(found, "2.4.4").state == "refused"
    assert found.best == "2.18"


def test_a_workstation_of_ada() -> None:
    found = of(host("workstation"))
    assert state(found, "2.21.0").state == "runs" and found.best == "2.21"
    assert found.needed == ""


def test_without_a_driver_the_bus_tells_the_family() -> None:
    found = of(condition("no-driver"))
    assert found.gpus == ("8.9",) and found.driver == ""
    assert found.best == "2.21" and found.needed == "525.60.13"


def test_without_a_gpu_there_are_no_rows() -> None:
    assert of(host("laptop")) == Rows()
    assert of(condition("not-x86")) == Rows()


@pytest.mark.parametrize(
    ("seen", "asked"),
    [
        ({"gpu_names": "NVIDIA H100 80GB HBM3", "gpu_capabilities": "9.0"}, ("NVIDIA H100 80GB HBM3",)),
        ({"gpu_names": "NVIDIA Z9000", "gpu_capabilities": "12.0"}, ("12.0",)),
        ({"gpu_names": "Tesla T4; Tesla T4", "gpu_capabilities": "7.5"}, ("Tesla T4",)),
        (
            {"gpu_names": "Tesla T4; NVIDIA Z9000", "gpu_capabilities": "7.5,12.0"},
            ("Tesla T4", "7.5", "12.0"),
        ),
        ({"pci_capabilities": "8.0"}, ("8.0",)),
        ({}, ()),
    ],
)
def test_which_gpus_are_asked_about(seen: dict[str, str], asked: tuple[str, ...]) -> None:
    assert question(seen)[0] == asked


def test_the_day_of_a_recording() -> None:
    assert str(day("2026-05-30")) == "2026-05-30"
    assert day("") is None and day("yesterday") is None


def test_releases_of_which_the_same_is_to_be_said_are_told_together() -> None:
    def row(release: str, state: Any, *codes: str) -> Row:
        return Row(tensorflow=release, cell="c", tag="t", state=state, codes=codes)

    groups = grouped((row("3", "runs"), row("2", "runs"), row("1", "limit", "a"), row("0", "limit", "b")))
    assert [[one.tensorflow for one in group] for group in groups] == [["3", "2"], ["1"], ["0"]]


def test_the_text_names_the_best_choice_and_what_limits() -> None:
    evidence = host("server")
    said = text(judge(values(evidence)), of(evidence))
    assert "best choice: 2.18" in said and "13.5 s" in said and said.endswith("ready")


def test_the_best_choice_is_a_verified_one_of_those_that_run_alike() -> None:
    evidence = host("server")
    seen = values(evidence)
    plain = rows(seen, matrix(), world())
    best = next(row for row in plain.rows if row.tag == plain.best)
    other = next(
        cell
        for cell in matrix().cells
        if cell.row.tensorflow == best.tensorflow
        and cell.name != best.cell
        and f"-{cell.cuda_set.name}-" in best.cell
    )
    asked: set[frozenset[str]] = set()

    def verified_on(cell: Cell, capabilities: frozenset[str]) -> str:
        asked.add(capabilities)
        return "an H200" if cell.name == other.name else ""

    found = rows(seen, matrix(), world(), verified_on)
    chosen = next(row for row in found.rows if row.tag == found.best)
    assert (chosen.cell, chosen.verified, best.verified) == (other.name, "an H200", "")
    assert asked and all(asked)
    assert [row.state for row in found.rows] == [row.state for row in plain.rows]
    assert "verified on an H200: tfenv up" in text(judge(seen), found)
    assert "verified on" not in text(judge(seen), plain)


def test_the_text_in_ascii() -> None:
    evidence = condition("driver-needs-reboot")
    said = text(judge(values(evidence)), Rows(), fancy=False)
    assert said.isascii() and "X  driver" in said


@pytest.mark.parametrize(
    ("finding", "said"),
    [
        (
            "driver-needs-reboot",
            "begin with this: the driver was updated and the old kernel module is still loaded: reboot",
        ),
        (
            "no-gpu",
            "nothing is broken: no NVIDIA GPU on this machine's PCI bus; there is no docker client on PATH",
        ),
        ("engine-asleep", "could not tell: container engine"),
        ("compute-exclusive", "ready, with 1 limit: see above"),
    ],
)
def test_the_summary(finding: str, said: str) -> None:
    assert summary(judge(values(condition(finding)))).startswith(said[:60])


def fake(answers: dict[str, Ran]) -> tuple[Sources, list[tuple[str, ...]]]:
    ran: list[tuple[str, ...]] = []

    def run(argv: Any, limit: float) -> Ran:
        ran.append(tuple(argv))
        return next((answer for head, answer in answers.items() if " ".join(argv).startswith(head)), Ran())

    def missing(path: str) -> str:
        raise FileNotFoundError(path)

    sources = Sources(
        env={"PATH": "/usr/bin"},
        read=missing,
        names=lambda path: None,
        matching=lambda pattern: [],
        link=lambda path: path if path == "/usr/bin/docker" else "",
        node=lambda path: None,
        space=lambda path: None,
        run=run,
    )
    return sources, ran


def test_a_try_never_pulls_and_leaves_nothing() -> None:
    sources, ran = fake(
        {
            "/usr/bin/docker image ls": Ran(0, "debian:12\ntfenv:2.15\n<none>:<none>\n"),
            "/usr/bin/docker run": Ran(0),
        }
    )
    assert tried(sources).ok
    argv = ran[-1]
    assert argv[-1] == "tfenv:2.15" and "--rm" in argv and argv[argv.index("--pull") + 1] == "never"
    assert argv[argv.index("--network") + 1] == "none"


def test_a_try_without_an_image_is_no_verdict() -> None:
    sources, ran = fake({"/usr/bin/docker image ls": Ran(0, "")})
    assert tried(sources).skipped
    assert not any("run" in argv for argv in ran)


def test_nothing_is_tried_unless_it_is_asked_for() -> None:
    sources, _ = fake({"/usr/bin/docker image ls": Ran(0, "debian:12")})
    assert TRY not in look(sources, None).commands
    assert TRY in look(sources, None, try_gpus=True).commands


def test_what_came_of_a_try_is_said_also_where_nothing_was_run() -> None:
    def told(ran: Ran) -> str:
        return told_of_try(replace(Evidence(), commands={TRY: ran}))

    assert told(Ran(0)) == "--try: a container with --gpus all runs"
    assert told(Ran(125, err="could not select device driver")).endswith(
        "does not run: could not select device driver"
    )
    assert told(Ran(skipped="there is no GPU")) == "--try: nothing was run: there is no GPU"
    assert told(Ran()) == "--try: nothing was run: there is no Docker client"


@pytest.mark.parametrize(("found", "skipped"), [(("no-gpu",), True), (("no-docker",), False), ((), False)])
def test_without_a_gpu_nothing_is_tried(
    monkeypatch: pytest.MonkeyPatch, found: tuple[str, ...], skipped: bool
) -> None:
    sources, ran = fake({"/usr/bin/docker image ls": Ran(0, "debian:12\n"), "/usr/bin/docker run": Ran(0)})
    judged = SimpleNamespace(found=[SimpleNamespace(id=name) for name in found])
    monkeypatch.setattr("tfenv.doctor.collecting.judge", lambda _values: judged)
    tried_ = look(sources, None, try_gpus=True).commands[TRY]
    assert (tried_.skipped == "there is no GPU") is skipped
    assert any("--gpus" in argv for argv in ran) is not skipped


def test_the_network_is_asked_only_if_wanted() -> None:
    sources, _ = fake({})
    assert look(sources, None).network == {}
    assert look(sources, lambda env: {"index": "ok"}).network == {"index": "ok"}


def test_asking_takes_no_longer_than_the_patience() -> None:
    import threading

    never = threading.Event()

    def hangs(env: Any) -> tuple[str, str]:
        never.wait(30)
        return "ok", ""

    def fails(env: Any) -> tuple[str, str]:
        raise ValueError("settings that cannot be read")

    said = ask(
        {}, {"index": hangs, "mirror": fails, "registry": lambda env: ("proxy", "it wants a login")}, 0.05
    )
    never.set()
    assert said == {"index": "offline", "registry": "proxy", "registry_said": "it wants a login"}


def test_certificates_that_are_not_there(tmp_path: Any) -> None:
    there = tmp_path / "ca.crt"
    there.write_text("")
    assert ask({"SSL_CERT_FILE": str(there)}, {}) == {}
    assert ask({"SSL_CERT_FILE": str(tmp_path / "gone")}, {}) == {"ca_missing": "SSL_CERT_FILE"}


@pytest.mark.parametrize(
    ("raised", "status", "word"),
    [
        ("SSLError", 0, "certificate"),
        ("ProxyError", 0, "proxy"),
        ("ConnectionError", 0, "offline"),
        ("", 200, "ok"),
        ("", 404, "ok"),
        ("", 401, "refused"),
        ("", 407, "proxy"),
    ],
)
def test_what_came_of_a_question(raised: str, status: int, word: str) -> None:
    import requests
    from tfenv.doctor.asking import _answer

    class Session:
        def head(self, url: str, **options: Any) -> Any:
            if raised:
                raise getattr(requests.exceptions, raised)(
                    "host=secret.example.org: certificate verify failed"
                )
            return type("Answer", (), {"status_code": status})

    got, said = _answer(Session(), "https://secret.example.org/")
    assert got == word and "secret" not in said


def test_chips_on_the_bus_are_known_by_compute_capability() -> None:
    from tfenv import factfiles, gpus

    rows_ = factfiles.read("pci")["rows"]
    bounds = [(int(row["from"], 16), int(row["to"], 16)) for row in rows_]
    assert bounds == sorted(bounds) and all(low <= high for low, high in bounds)
    assert all(one[1] < other[0] for one, other in itertools.pairwise(bounds))
    # Kepler's first chips are older than all that TensorFlow's wheels have code for.
    assert {row["capability"] for row in rows_ if not gpus.of_capability(row["capability"])} == {"3.0"}
