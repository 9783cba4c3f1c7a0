"""Verdicts on what the suite printed on another host."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest
from tfenv import report, verify
from tfenv.errors import IntegrityError
from tfenv.report import Host, Report
from tfenv.verify import declared_hash, driver_version
from tfenv.verify_lines import from_lines, of_lines

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


def made(text: str) -> Report:
    return from_lines(text, {"cell": "c"}, DIGEST, started=5, packed=CODE)


def test_lines_of_elsewhere_become_the_report_of_that_digest() -> None:
    found = made(lines())
    assert (found.verdict, found.digest, found.suite, found.started) == ("pass", DIGEST, "smoke", 5)
    wanted = Host(kernel="6.1", machine="x86_64", docker="rootfs", gpus=("H",), driver="580.159.04")
    assert found.host == wanted
    assert found.suite_hash == verify.suite_hash(CODE, "smoke", {"cell": "c"})
    assert found.seconds == 1.5 * len(NAMES)


def test_a_failure_there_is_one_here() -> None:
    assert made(lines(status="fail", verdict="fail")).verdict == "fail"
    assert made(lines(status="fail")).verdict == "fail"


def test_lines_that_break_off_are_no_pass() -> None:
    assert made("\n".join(lines().splitlines()[:-1])).verdict == "fail"


def test_without_a_gpu_there_nothing_is_verified() -> None:
    assert (made(lines(gpus=())).verdict, made(lines(gpus=())).reason) == ("unverified", "no GPU")


@pytest.mark.parametrize("gpus", ["true", '"H200"', "5", '{"a": 1}'])
def test_gpus_that_are_no_list_are_none(gpus: str) -> None:
    assert made(lines(gpus=("H",)).replace('["H"]', gpus)).verdict == "unverified"


def test_a_stray_line_may_be_anything() -> None:
    assert made("[" * 100_000 + "\n" + lines()).verdict == "pass"


def test_lines_of_another_suite_are_refused() -> None:
    for text in (lines(code=b"another"), "", "nothing"):
        with pytest.raises(IntegrityError, match="another version"):
            made(text)


@pytest.mark.parametrize("cell", ["other", ""])
def test_lines_of_another_image_are_refused(cell: str) -> None:
    with pytest.raises(IntegrityError, match="of another image") as caught:
        made(lines(cell=cell))
    assert ("it says that it is other" in str(caught.value)) == bool(cell)


def test_lines_of_another_suite_or_image_are_not_hidden_behind_good_ones() -> None:
    first = "\n".join(lines().splitlines()[:-1])
    for other in (lines(code=b"another"), lines(cell="other"), lines()):
        assert made(f"{first}\n{other}").verdict == "fail"


def workers(first: str, *others: str) -> tuple[str, str]:
    found = from_lines(first, {"cell": "c"}, DIGEST, started=5, others=others, packed=CODE)
    return found.verdict, found.reason


def test_of_workers_every_one_has_a_say() -> None:
    good, bad = lines(suite="workers"), lines(suite="workers", status="fail", verdict="fail")
    cut = "\n".join(good.splitlines()[:-1])
    assert workers(good, good) == ("pass", "")
    verdict, reason = workers(good)
    assert verdict == "unverified" and "worker 1" in reason
    assert (
        workers(bad)[0] == workers(good, bad)[0] == workers(bad, good)[0] == workers(good, cut)[0] == "fail"
    )
    for other in (lines(suite="workers", cell="x"), lines(suite="workers", code=b"x"), ""):
        with pytest.raises(IntegrityError):
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
    assert found.started == max(0, when * 1000)
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
