"""Verdicts on what the suite printed on another host."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from tfenv import report, verify
from tfenv.errors import UsageError
from tfenv.report import Host, Report
from tfenv.verify import declared_hash, driver_version
from tfenv.verify_lines import Printed, from_lines, of_lines

DIGEST = "sha256:" + "ab" * 32
DRIVER = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build"
CODE = verify.pack()
NAMES = verify.plan_of(CODE, "smoke").names


def lines(
    *,
    status: str = "pass",
    verdict: str = "pass",
    gpus: tuple[str, ...] = ("H",),
    code: bytes = CODE,
    cell: str = "c",
    suite: verify.Suite = "smoke",
) -> str:
    names = verify.plan_of(CODE, suite).names
    start = {
        "event": "start",
        "suite": suite,
        "cell": cell,
        "declared_sha256": declared_hash({"cell": cell}),
        "suite_sha256": hashlib.sha256(code).hexdigest(),
        "checks": [{"name": name} for name in names],
    }
    checks = [{"event": "check", "name": name, "status": "pass", "seconds": 1.5} for name in names]
    checks[-1]["status"] = status
    facts = {"kernel": "6.1", "machine": "x86_64", "gpus": list(gpus), "driver": DRIVER}
    end = {"event": "end", "verdict": verdict, "facts": facts}
    return "\n".join(["a stray line", *(json.dumps(event) for event in (start, *checks, end))])


WRITTEN = 1_700_000_000.0  # Unix seconds


def made(text: str, **more: Any) -> Report:
    return from_lines(Printed(text, "L", WRITTEN), {"cell": "c"}, DIGEST, packed=CODE, **more)


def started(text: str, **more: object) -> str:
    """The lines with more in their start."""
    first, start, *rest = text.splitlines()
    return "\n".join([first, json.dumps({**json.loads(start), **more}), *rest])


def test_lines_of_elsewhere_become_the_report_of_that_digest() -> None:
    found = made(lines())
    assert (found.verdict, found.digest, found.suite) == ("pass", DIGEST, "smoke")
    assert found.started == (WRITTEN - found.seconds) * 1000, "the file was written when it ended"
    wanted = Host(kernel="6.1", machine="x86_64", docker="rootfs", gpus=("H",), driver="580.159.04")
    assert found.host == wanted
    assert found.suite_hash == verify.suite_hash(CODE, "smoke", {"cell": "c"})
    assert found.seconds == 1.5 * len(NAMES)


def test_a_failure_there_is_one_here() -> None:
    assert made(lines(status="fail", verdict="fail")).verdict == "fail"
    assert made(lines(status="fail")).verdict == "fail"


@pytest.mark.parametrize(
    ("said", "believed"),
    [
        (WRITTEN * 1000 - 3_600_000, True),
        (1_420_070_400_000, True),  # 2015
        (1_420_070_399_000, False),
        (1_900_000_000_000, False),  # the future
        ("5", False),
        (float("inf"), False),
        (True, False),
    ],
)
def test_it_began_when_it_says_so_if_that_can_be(said: object, believed: bool) -> None:
    told: list[str] = []
    found = made(started(lines(), started=said), tell=told.append, now=lambda: WRITTEN + 9)
    assert (found.started == said) == believed == (not told)
    if not believed:
        assert found.started == (WRITTEN - found.seconds) * 1000 and "is not believed" in told[0]


def test_how_many_gpus_it_was_to_see_is_kept() -> None:
    assert made(started(lines(), expect_gpus=2)).expect_gpus == 2
    for other in (None, "2", True, -1):
        assert made(started(lines(), expect_gpus=other)).expect_gpus is None


def broke_off(text: str) -> tuple[str, str]:
    found = made(text)
    assert found.verdict == "fail" and found.checks[-1].name == "suite"
    (finding,) = found.checks[-1].findings
    return finding.message, finding.remedy


def test_lines_that_break_off_are_no_pass() -> None:
    message, remedy = broke_off("\n".join(lines().splitlines()[:-1]))
    assert message.startswith("the file breaks off before the suite's end")
    assert "--kit" in remedy and "docker" not in remedy


def test_two_runs_in_a_file_prove_nothing() -> None:
    cut = "\n".join(lines().splitlines()[:4])
    end = lines().splitlines()[-1]
    for text in (
        f"{lines()}\n{lines()}",
        f"{cut}\n{lines()}",
        f"{lines(status='fail')}\n{lines()}",
        f"{lines()}\n{end}",
    ):
        with pytest.raises(UsageError, match="L holds more than one run") as caught:
            made(text)
        assert "a file of its own" in caught.value.remedy


def test_without_a_gpu_there_nothing_is_verified() -> None:
    assert (made(lines(gpus=())).verdict, made(lines(gpus=())).reason) == ("unverified", "no GPU")


@pytest.mark.parametrize("gpus", ["true", '"H200"', "5", '{"a": 1}'])
def test_gpus_that_are_no_list_are_none(gpus: str) -> None:
    assert made(lines(gpus=("H",)).replace('["H"]', gpus)).verdict == "unverified"


def test_a_stray_line_may_be_anything() -> None:
    assert made("[" * 100_000 + "\n" + lines()).verdict == "pass"


def test_lines_of_another_suite_are_refused() -> None:
    with pytest.raises(UsageError, match="L: these lines are of another version"):
        made(lines(code=b"another"))


@pytest.mark.parametrize("cut", [0, 30, 200])
def test_a_file_without_a_line_of_the_suite_says_so(cut: int) -> None:
    start = lines().splitlines()[1]
    for text in (start[:cut], f"bash: python: command not found\n{start[:cut]}"):
        with pytest.raises(UsageError, match=r"^L holds no line of the suite") as caught:
            made(text)
        assert "stderr" in caught.value.remedy
    with pytest.raises(UsageError, match=r"^L holds not the suite's first"):
        made("\n".join(lines().splitlines()[2:]))


def test_lines_of_another_command_are_called_so() -> None:
    with pytest.raises(UsageError, match="these are lines of stress") as caught:
        made('{"event": "start", "kind": "stress"}')
    assert caught.value.remedy == "type: tfenv stress CELL --lines L"


@pytest.mark.parametrize("cell", ["other", ""])
def test_lines_of_another_image_are_refused(cell: str) -> None:
    with pytest.raises(UsageError, match="of another image") as caught:
        made(lines(cell=cell))
    assert ("it says that it is other" in str(caught.value)) == bool(cell)


def test_lines_of_another_suite_or_image_are_not_hidden_behind_good_ones() -> None:
    first = "\n".join(lines().splitlines()[:-1])
    for other in (lines(code=b"another"), lines(cell="other"), lines()):
        with pytest.raises(UsageError, match="more than one run"):
            made(f"{first}\n{other}")


def workers(first: str, *others: str) -> tuple[str, str]:
    found = made(first, others=[Printed(other, "L.1") for other in others])
    return found.verdict, found.reason


def test_of_workers_every_one_has_a_say() -> None:
    good, bad = lines(suite="workers"), lines(suite="workers", status="fail", verdict="fail")
    cut = "\n".join(good.splitlines()[:-1])
    assert workers(good, good) == ("pass", "")
    verdict, reason = workers(good)
    assert verdict == "unverified" and reason.endswith("worker 1 printed: put it beside, as L.1")
    said = made(good, others=[Printed(cut, "L.1")]).checks[-1].findings[0]
    assert "worker 1: the file breaks off" in said.message and "--kit" in said.remedy
    assert (
        workers(bad)[0] == workers(good, bad)[0] == workers(bad, good)[0] == workers(good, cut)[0] == "fail"
    )
    for other in (lines(suite="workers", cell="x"), lines(suite="workers", code=b"x"), ""):
        with pytest.raises(UsageError):
            workers(good, other)


def test_what_the_other_worker_printed_lies_beside(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text(lines(suite="workers"))
    assert of_lines(path, {"cell": "c"}, DIGEST).verdict == "unverified"
    (tmp_path / "lines.1").write_text(lines(suite="workers"))
    assert of_lines(path, {"cell": "c"}, DIGEST).verdict == "pass"


@pytest.mark.parametrize("when", [-1e9, 0, 4e9])
def test_a_file_may_be_of_any_time(tmp_path: Path, when: float) -> None:
    path = tmp_path / "lines"
    path.write_text(lines())
    os.utime(path, (when, when))
    found = of_lines(path, {"cell": "c"}, DIGEST)
    assert found.started == max(0, when * 1000 - found.seconds * 1000)
    assert report.read(report.write(found, tmp_path / "r")) == found


@pytest.mark.parametrize(
    ("line", "version"),
    [
        (DRIVER, "580.159.04"),
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun", "535.54.03"),
        ("other", "other"),
    ],
)
def test_the_drivers_version_is_read(line: str, version: str) -> None:
    assert driver_version(line) == version
