from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import small
from tfenv import cli, report, verify, verify_elsewhere, verify_former
from tfenv.container import Ended, Spec
from tfenv.engine import Completed
from tfenv.errors import IntegrityError, NotReadyError, UsageError
from tfenv.report import Check, Host, Report
from tfenv.rootfs_run import Driver, Rootfs
from tfenv.unpacked import Unpacked
from tfenv.verify import declared_hash, driver_version
from tfenv.verify_elsewhere import Asked, in_rootfs, whole_digest
from tfenv.verify_former import former_pass
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


def test_an_unpacked_image_is_verified_by_its_own_digest(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    specs: list[Spec] = []
    text = lines(code=verify.pack())

    class Fake:
        def output(self) -> Iterator[tuple[bytes, bytes]]:
            yield text.encode() + b"\n", b""

        def wait(self) -> Ended:
            return Ended(0)

        def kill(self) -> None: ...

    @contextmanager
    def container(self: Rootfs, spec: Spec) -> Iterator[Any]:
        specs.append(spec)
        yield Fake()

    monkeypatch.setattr(Rootfs, "container", container)
    monkeypatch.setattr(verify_elsewhere, "find_driver", Driver)
    monkeypatch.setattr(
        verify_elsewhere, "run_command", lambda argv: Completed(0, "NVIDIA H200, 580.1\n", "")
    )
    found = in_rootfs(Unpacked(folder=tmp_path, digest=DIGEST), {}, Asked(suite="smoke", gpus="all"))
    assert (found.digest, found.host.gpus, found.host.driver) == (DIGEST, ("NVIDIA H200",), "580.1")
    assert specs[0].gpus and found.host.docker == "rootfs" and found.verdict == "pass"
    with pytest.raises(NotReadyError, match="does not have the GPUs 0,1"):
        in_rootfs(Unpacked(folder=tmp_path, digest=DIGEST), {}, Asked(suite="smoke", gpus="2"))
    assert len(specs) == 1


def test_nvidia_smi_is_found_in_nvidias_own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/nvidia-smi").write_text("")
    monkeypatch.setattr(verify_elsewhere, "find_driver", lambda: Driver(folder=tmp_path))
    monkeypatch.setattr(verify_elsewhere, "run_command", lambda argv: Completed(0, argv[0], ""))
    assert verify_elsewhere.smi(["nvidia-smi", "-L"]).stdout == str(tmp_path / "bin/nvidia-smi")
    assert verify_elsewhere.smi(["other"]).stdout == "other"


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
    folders = [tmp_path / "committed", tmp_path / "mine"]
    of: dict[str, Any] = {"digest": DIGEST, "suite_hash": "cd" * 32, "gpus": ("H", "H"), "driver": "580"}
    assert former_pass(folders, **of)
    other = replace(PASS.host, kernel="2")
    failed = replace(PASS, verdict="fail", checks=(Check(name="a", status="fail"),), host=other)
    report.write(replace(failed, started=2), tmp_path / "mine")
    assert former_pass(folders, **of) is None
    report.write(replace(failed, started=1), tmp_path / "mine")
    assert former_pass(folders, **of) is None, "of the same moment"
    report.write(replace(failed, started=2, host=replace(other, gpus=("H",))), tmp_path / "mine")
    report.write(replace(failed, started=0), tmp_path / "mine")
    assert former_pass(folders, **of), "an older one, and one on another GPU"
    unsaid = replace(PASS, verdict="unverified", checks=(), host=other, started=9)
    report.write(unsaid, tmp_path / "mine")
    assert former_pass(folders, **of)


def test_a_pass_of_the_future_does_not_hold(tmp_path: Path) -> None:
    report.write(replace(PASS, started=4_102_444_800_000), tmp_path)
    of: dict[str, Any] = {"digest": DIGEST, "suite_hash": "cd" * 32, "gpus": ("H", "H"), "driver": "580"}
    assert former_pass([tmp_path], **of, now=lambda: 1_800_000_000.0) is None
    assert former_pass([tmp_path], **of, now=lambda: 4_102_444_799.0)


def test_a_damaged_report_is_passed_over(tmp_path: Path) -> None:
    (report.write(PASS, tmp_path) / report.CTRF).write_text("{")
    assert former(tmp_path) is None


def test_a_digest_is_given_in_full() -> None:
    assert whole_digest(DIGEST) == DIGEST
    with pytest.raises(UsageError, match="is not a digest"):
        whole_digest("sha256:ab")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> small.Place:
    monkeypatch.setattr("tfenv.pipeline.declared", lambda cell, lock, image: {"cell": cell.name})
    made = small.place(tmp_path, monkeypatch)
    assert cli.run(["build", "--record", small.CELL]) == 0
    return made


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any, str]:
    capsys.readouterr()
    code = cli.run(["verify", small.CELL, "--json", *arguments])
    out, err = capsys.readouterr()
    return code, json.loads(out), err


def test_verify_takes_lines_of_elsewhere(
    here: small.Place, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "lines"
    path.write_text(lines(code=verify.pack(), cell=small.CELL))
    code, found, _ = told(capsys, "--lines", str(path), "--reports", str(tmp_path / "r"))
    assert (code, found["verdict"]) == (0, "pass")
    kept = report.read(Path(found["reports"]))
    assert (kept.image, kept.digest) == (small.CELL, found["digest"]) and kept.host.gpus == ("H",)
    code, found, _ = told(capsys, "--lines", str(path), "--digest", DIGEST)
    assert (code, found["digest"]) == (0, DIGEST)


def test_verify_of_an_unpacked_image(
    here: small.Place, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "root/usr").mkdir(parents=True)
    (tmp_path / "root.json").write_text(json.dumps({"manifest": DIGEST, "config": {}}))
    monkeypatch.setattr(
        verify_elsewhere, "in_rootfs", lambda image, declared, asked, **more: replace(PASS, image="x")
    )
    code, found, _ = told(capsys, "--rootfs", str(tmp_path / "root"))
    assert (code, report.read(Path(found["reports"])).image) == (0, small.CELL)


def test_verify_takes_a_former_pass_on_the_same_gpus_unless_told_again(
    here: small.Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    def check(cell: Any, lock: Any, image: Any, host: Any, **more: Any) -> tuple[Report, Path]:
        ran.append(image.id)
        suite_hash = verify.suite_hash(verify.pack(), "full", {"cell": cell.name})
        found = replace(PASS, digest=image.id, suite_hash=suite_hash)
        return found, report.write(found, host.store.root / "reports")

    monkeypatch.setattr("tfenv.pipeline.check", check)
    monkeypatch.setattr(verify_former, "gpu_here", lambda succeeds: True)
    monkeypatch.setattr(verify_former, "smi", lambda argv: Completed(0, "H, 580\nH, 580\n", ""))
    assert told(capsys)[0] == 0 and len(ran) == 1
    code, found, err = told(capsys)
    assert (code, found["verdict"], len(ran)) == (0, "pass", 1) and "--again" in err
    assert told(capsys, "--again")[0] == 0 and len(ran) == 2
    assert told(capsys, "--gpus", "none")[0] == 0 and len(ran) == 3
    monkeypatch.setattr(verify_former, "smi", lambda argv: Completed(0, "H, 581\nH, 581\n", ""))
    assert told(capsys)[0] == 0 and len(ran) == 4


@pytest.mark.parametrize(("suite", "count"), [("full", 2), ("workers", 3)])
def test_a_kit_is_what_a_host_without_tfenv_needs(
    here: small.Place, capsys: pytest.CaptureFixture[str], tmp_path: Path, suite: str, count: int
) -> None:
    folder = tmp_path / "kit"
    code, found, _ = told(capsys, "--kit", str(folder), "--suite", suite)
    assert code == 0 and len(found["commands"]) == count
    assert (folder / "verify.pyz").read_bytes() == verify.pack()
    assert json.loads((folder / "declared.json").read_text()) == {"cell": small.CELL}
    *typed, last = found["commands"]
    assert last == f"tfenv verify {small.CELL} --lines lines"
    for index, line in enumerate(reversed(typed)):
        assert line.startswith("python3 -m tfenv.rootfs_run --rootfs rootfs --bind kit:/tfenv -- python -B ")
        assert f"--suite {suite}" in line
        if suite == "workers":
            assert f"--cluster 127.0.0.1:29400,127.0.0.1:29408 --worker {index} > lines" in line
            assert line.endswith("&") == (index > 0)
    assert told(capsys, small.CELL, "--all", "--kit", str(folder))[0] == 2


def test_a_kit_gives_the_gpus_that_were_asked_for(
    here: small.Place, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def first(*options: str) -> str:
        return str(told(capsys, "--kit", str(tmp_path / "kit"), *options)[1]["commands"][0])

    assert "--bind kit:/tfenv --gpus device=0,1 -- python" in first("--gpus", "0,1")
    assert "--bind kit:/tfenv --gpus 2 -- python" in first("--gpus", "2")
    assert "--bind kit:/tfenv --gpus none -- python" in first("--gpus", "none")
    assert "--bind kit:/tfenv -- python" in first("--gpus", "all")
    assert "--suite full --expect-gpus 2 > lines" in first("--expect-gpus", "2")


def test_what_a_kit_prints_is_judged(
    here: small.Place, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder, path = tmp_path / "kit", tmp_path / "lines"
    assert told(capsys, "--kit", str(folder), "--suite", "workers")[0] == 0
    arguments = ["--suite", "workers", "--cluster", "127.0.0.1:29400,127.0.0.1:29408", "--worker", "0"]
    declared = ["--declared", str(folder / "declared.json")]
    done = subprocess.run(
        [sys.executable, str(folder / "verify.pyz"), *declared, *arguments],
        capture_output=True,
        env={"CUDA_VISIBLE_DEVICES": ""},
        check=False,
    )
    path.write_bytes(done.stdout)
    code, found, _ = told(capsys, "--lines", str(path), "--digest", DIGEST)
    assert (code, found["verdict"], report.read(Path(found["reports"])).suite) == (3, "unverified", "workers")


def test_lines_are_of_the_suite_that_was_named(
    here: small.Place, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "lines"
    path.write_text(lines(code=verify.pack(), cell=small.CELL))
    code, _, err = told(capsys, "--lines", str(path))
    assert code == 0 and "what is judged is the suite smoke" in err
    assert told(capsys, "--lines", str(path), "--suite", "smoke")[0] == 0
    code, found, _ = told(capsys, "--lines", str(path), "--suite", "full")
    assert code == 2 and "is of the suite smoke, not full" in found["error"]["message"]


def test_one_way_to_a_verdict_is_named(
    here: small.Place, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "lines"
    path.write_text("")
    ways = [["--lines", str(path)], ["--rootfs", str(tmp_path)], ["--kit", str(tmp_path / "kit")]]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        code, found, _ = told(capsys, *ways[one], *ways[other])
        assert code == 2 and "three ways" in found["error"]["message"]


def test_a_folder_for_no_reports_is_found_before_the_checks(
    here: small.Place, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfenv.pipeline.check", lambda *_, **__: pytest.fail("the suite was run"))
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file/x", Path("/proc/none/x")):
        assert told(capsys, "--reports", str(folder))[0] == 4


def test_a_kit_that_cannot_be_written_is_not_half_there(
    here: small.Place, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "kit"
    assert told(capsys, "--kit", str(folder))[0] == 0
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    monkeypatch.setattr(verify.kit, "pack", lambda: b"another")
    monkeypatch.setattr("os.fsync", lambda _fd: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    assert told(capsys, "--kit", str(folder))[0] == 4
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
