"""Verdicts that hold again, and those that do not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_verify_lines import DIGEST
from tfenv import report
from tfenv.report import Check, Host, Report
from tfenv.verify_former import former_pass

PASS = Report(
    image="c",
    digest=DIGEST,
    suite="full",
    suite_hash="cd" * 32,
    verdict="pass",
    host=Host(kernel="1", gpus=("H", "H"), driver="580"),
    checks=(Check(name="a", status="pass"),),
    started=1,
    seconds=1,
)


def former(parent: Path, **changes: Any) -> Report | None:
    wanted: dict[str, Any] = {"digest": DIGEST, "suite_hash": "cd" * 32, "gpus": ("H", "H"), "driver": "580"}
    found = former_pass([parent / "none", parent], **{**wanted, **changes})
    return found[0] if found else None


def test_a_pass_holds_for_the_same_image_suite_gpus_and_driver(tmp_path: Path) -> None:
    report.write(PASS, tmp_path)
    report.write(replace(PASS, started=9, host=replace(PASS.host, kernel="2")), tmp_path)
    found = former(tmp_path)
    assert found is not None and found.started == 9, "another kernel does not matter; the newest is taken"
    for other in (
        {"digest": "sha256:" + "ff" * 32},
        {"suite_hash": "ff" * 32},
        {"gpus": ("H",)},
        {"driver": "1"},
    ):
        assert former(tmp_path, **other) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"verdict": "fail"},
        {"verdict": "unverified"},
        {"stand_in": "nvidia/cuda:x"},
        {"host": Host(driver="580")},
    ],
)
def test_nothing_but_a_pass_on_a_gpu_holds_again(tmp_path: Path, changes: dict[str, Any]) -> None:
    report.write(replace(PASS, **changes), tmp_path)
    assert former(tmp_path) is None and former(tmp_path, gpus=()) is None


def test_after_a_failure_no_older_pass_holds(tmp_path: Path) -> None:
    report.write(PASS, tmp_path / "committed")
    folders = [tmp_path / "committed", tmp_path / "mine", tmp_path / "others"]
    of: dict[str, Any] = {"digest": DIGEST, "suite_hash": "cd" * 32, "gpus": ("H", "H"), "driver": "580"}
    assert former_pass(folders, **of)
    other = replace(PASS.host, kernel="2")
    failed = replace(PASS, verdict="fail", checks=(Check(name="a", status="fail"),), host=other)
    unsaid = replace(PASS, verdict="unverified", checks=(), host=other, started=9)
    report.write(replace(failed, started=0), tmp_path / "others")
    report.write(replace(failed, started=2, host=replace(other, gpus=("H",))), tmp_path / "others")
    assert former_pass(folders, **of), "an older one, and one on another GPU"
    report.write(replace(unsaid, host=replace(other, kernel="3")), tmp_path / "others")
    assert former_pass(folders, **of)
    report.write(replace(failed, started=1), tmp_path / "mine")
    assert former_pass(folders, **of) is None, "of the same moment"
    report.write(replace(failed, started=2), tmp_path / "mine")
    assert former_pass(folders, **of) is None
    report.write(unsaid, tmp_path / "mine")
    assert former_pass(folders, **of) is None, "which what could not be verified does not undo"
    report.write(replace(PASS, host=other, started=1), tmp_path / "mine")
    assert former_pass(folders, **of) is None, "nor what was run before it"
    report.write(replace(PASS, host=other, started=3), tmp_path / "mine")
    assert former_pass(folders, **of)


def test_a_failure_for_other_gpus_than_there_are_is_none_of_the_image(tmp_path: Path) -> None:
    failed = replace(PASS, verdict="fail", checks=(Check(name="a", status="fail"),), started=2)
    report.write(PASS, tmp_path)
    report.write(replace(failed, expect_gpus=3), tmp_path)
    assert former(tmp_path) == PASS
    report.write(replace(failed, expect_gpus=2), tmp_path)
    assert former(tmp_path) is None


def test_a_pass_of_the_future_does_not_hold(tmp_path: Path) -> None:
    report.write(replace(PASS, started=4_102_444_800_000), tmp_path)
    of: dict[str, Any] = {"digest": DIGEST, "suite_hash": "cd" * 32, "gpus": ("H", "H"), "driver": "580"}
    assert former_pass([tmp_path], **of, now=lambda: 1_800_000_000.0) is None
    assert former_pass([tmp_path], **of, now=lambda: 4_102_444_799.0)


def test_a_damaged_report_is_passed_over(tmp_path: Path) -> None:
    (report.write(PASS, tmp_path) / report.CTRF).write_text("{")
    assert former(tmp_path) is None
