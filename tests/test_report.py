from __future__ import annotations

import json
import resource
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tfenv import report as reports
from tfenv.errors import IntegrityError
from tfenv.report import (
    Check,
    Finding,
    Host,
    Report,
    failures,
    find,
    from_ctrf,
    read,
    require_room,
    summary,
    to_ctrf,
    to_junit,
    to_markdown,
    write,
)

HOST = Host(kernel="6.1.0", machine="x86_64", cpu="A CPU", docker="26.1.5")
REPORT = Report(
    image="tfenv:2.15-cu12",
    digest="sha256:" + "ab" * 32,
    suite="smoke",
    suite_hash="cd" * 32,
    verdict="unverified",
    reason="no GPU",
    host=HOST,
    started=1_700_000_000_000,
    seconds=12.5,
    facts={"tensorflow": "2.15.1"},
    checks=(
        Check(name="import", status="pass", seconds=4.25, facts={"version": "2.15.1"}),
        Check(
            name="libraries",
            status="fail",
            seconds=1.5,
            findings=(
                Finding(
                    severity="error",
                    message="libcudnn.so.8 is 8.6, not 8.9 | really <b>",
                    evidence="line one\nline \x1b[31mtwo\x00\uffff",
                    remedy="rebuild it",
                ),
                Finding(severity="info", message="read it"),
            ),
        ),
        Check(
            name="pyc",
            status="pass",
            findings=(Finding(severity="warning", message="slow import"),),
        ),
        Check(name="gpu_visible", status="not-run", reason="no GPU"),
    ),
)


PASS = replace(
    REPORT,
    verdict="pass",
    reason="",
    host=replace(HOST, gpus=("H200",), driver="580.1"),
    checks=(Check(name="import", status="pass"), Check(name="other", status="pass")),
)


def test_there_and_back():
    assert from_ctrf(json.loads(json.dumps(to_ctrf(REPORT)))) == REPORT
    gpu = replace(REPORT, host=replace(HOST, gpus=("H200", "H200"), driver="580.1"))
    assert from_ctrf(json.loads(json.dumps(to_ctrf(gpu)))) == gpu


def test_ctrf(snapshot):
    data = to_ctrf(REPORT)
    data["results"]["tool"].pop("version")
    assert json.dumps(data, indent=1) == snapshot


def test_junit(snapshot):
    assert to_junit(REPORT) == snapshot


def test_markdown(snapshot):
    assert to_markdown(REPORT) == snapshot


def test_what_was_not_run_never_looks_passed():
    ctrf = to_ctrf(REPORT)["results"]
    test = next(t for t in ctrf["tests"] if t["name"] == "gpu_visible")
    assert (test["status"], test["message"]) == ("skipped", "not run: no GPU")
    assert ctrf["summary"]["passed"] == 2 and ctrf["summary"]["skipped"] == 1
    case = ElementTree.fromstring(to_junit(REPORT)).find(".//testcase[@name='gpu_visible']")
    assert case is not None
    skipped = case.find("skipped")
    assert skipped is not None and skipped.get("message") == "not run: no GPU"
    (line,) = [x for x in to_markdown(REPORT).splitlines() if "gpu_visible" in x]
    assert "not run" in line and "no GPU" in line and "pass" not in line


def test_junit_is_xml_whatever_a_log_holds():
    nasty = "".join(map(chr, range(0x20))) + "\ud800\uffff]]>&<"
    check = Check(name=nasty, status="fail", findings=(Finding(severity="error", message=nasty),))
    root = ElementTree.fromstring(to_junit(replace(REPORT, checks=(check,))))
    assert root.find(".//failure") is not None


@pytest.mark.parametrize(
    ("verdict", "words", "code"),
    [("pass", "verified", 0), ("fail", "failed", 1), ("unverified", "unverified: no GPU", 3)],
)
def test_words_and_exit_codes(verdict, words, code):
    report = replace(REPORT, verdict=verdict)
    assert (report.words, report.exit_code) == (words, code)


def test_a_summary_is_errors_warnings_or_the_reason():
    assert [summary(check) for check in REPORT.checks] == [
        "",
        "libcudnn.so.8 is 8.6, not 8.9 | really <b>",
        "slow import",
        "not run: no GPU",
    ]
    assert summary(Check(name="x", status="not-run")) == "not run: no reason given"


def test_failures_say_what_is_wrong_with_the_last_line_of_proof_and_what_to_do():
    assert failures(REPORT).splitlines()[0] == "  libraries: libcudnn.so.8 is 8.6, not 8.9 | really <b>"
    assert failures(REPORT).endswith("\n    -> rebuild it") and "two" in failures(REPORT)
    assert "line one" not in failures(REPORT) and "slow import" not in failures(REPORT)
    assert failures(replace(REPORT, checks=REPORT.checks[2:])) == ""


def test_written_and_found_again(tmp_path):
    folder = write(REPORT, tmp_path)
    assert folder.name == f"{'ab' * 6}-{'cd' * 6}-{HOST.key}"
    assert sorted(p.name for p in folder.iterdir()) == [
        "report.ctrf.json",
        "report.junit.xml",
        "report.md",
    ]
    assert read(folder) == REPORT
    assert find(tmp_path, REPORT.digest, REPORT.suite_hash, HOST) == REPORT
    later = replace(REPORT, seconds=1.0)
    write(later, tmp_path)
    assert read(folder) == later


FAILED = replace(PASS, verdict="fail", checks=(replace(PASS.checks[0], status="fail"),))


@pytest.mark.parametrize("verdict", ["fail", "unverified"])
def test_what_was_to_see_other_gpus_replaces_no_pass(tmp_path, verdict):
    other = replace(PASS, verdict=verdict, checks=FAILED.checks, expect_gpus=2)
    folders = [write(PASS, tmp_path), write(other, tmp_path)]
    assert folders[0] != folders[1] and [read(folder) for folder in folders] == [PASS, other]
    assert len(other.key) == len(PASS.key) and replace(other, expect_gpus=3).key != other.key
    for text in (to_markdown(other), to_junit(other)):
        assert "gpus expected" in text
    assert "expected" not in to_markdown(PASS)


def test_what_was_to_see_those_gpus_does(tmp_path):
    folder = write(PASS, tmp_path)
    same = replace(FAILED, expect_gpus=1)
    assert write(same, tmp_path) == folder and read(folder) == same


@pytest.mark.parametrize("said", [PASS, FAILED], ids=lambda said: said.verdict)
def test_what_could_not_be_verified_replaces_nothing_that_was_found(tmp_path, said):
    unsaid = replace(PASS, verdict="unverified", reason="stopped", started=PASS.started + 1)
    folder = write(unsaid, tmp_path)
    assert write(replace(unsaid, reason="again"), tmp_path) == folder and read(folder).reason == "again"
    assert write(said, tmp_path) == folder and read(folder) == said
    beside = write(unsaid, tmp_path)
    assert beside.name == f"{PASS.key}-unverified" and (read(folder), read(beside)) == (said, unsaid)
    assert write(FAILED, tmp_path) == folder and read(folder) == FAILED
    assert write(PASS, tmp_path) == folder and read(folder) == PASS


def test_what_was_run_before_replaces_nothing_that_was_found_since(tmp_path):
    failed = replace(FAILED, started=PASS.started + 1)
    folder = write(failed, tmp_path)
    beside = write(PASS, tmp_path)
    assert beside.name == f"{PASS.key}-earlier" and (read(folder), read(beside)) == (failed, PASS)
    assert write(replace(PASS, started=failed.started), tmp_path) == folder, "of the same moment"


def test_what_is_dated_in_the_future_is_replaced(tmp_path):
    folder = write(replace(PASS, started=PASS.started + 10_000), tmp_path)
    assert write(FAILED, tmp_path, now=lambda: PASS.started / 1000) == folder and read(folder) == FAILED


NUMA = (
    "I cuda_executor.cc:901] successful NUMA node read from SysFS had negative value (-1), but there must be"
)


def test_evidence_holds_no_known_noise():
    found = Finding(severity="error", message="x", evidence=f"{NUMA}\nthe cause\n{NUMA}\n")
    assert found.evidence == "the cause"
    made = replace(REPORT, checks=(Check(name="x", status="fail", findings=(found,)),))
    assert "NUMA" not in to_markdown(made) + to_junit(made) + json.dumps(to_ctrf(made))
    old = json.loads(json.dumps(to_ctrf(made)).replace("the cause", json.dumps(f"a\n{NUMA}")[1:-1]))
    assert from_ctrf(old).checks[0].findings[0].evidence == "a", "also of a report that is kept already"
    for kept in ("a\n", "two\r\nlines\r\n", "NUMA node 1 has no memory", ""):
        assert Finding(severity="info", message="x", evidence=kept).evidence == kept


def test_what_is_worth_knowing_is_in_the_page_on_a_line():
    findings = (
        Finding(severity="info", message="8 GB/s | x", evidence="PCIe links", remedy="look"),
        Finding(severity="info", message="long", evidence="a\nb"),
        Finding(severity="warning", message="warned"),
    )
    check = Check(name="multi_gpu", status="pass", findings=findings)
    page = to_markdown(replace(PASS, checks=(check,)))
    notes = page.partition("## Notes\n\n")[2].splitlines()
    assert notes == [
        "- multi_gpu: 8 GB/s \\| x (PCIe links) → look",
        "- multi_gpu: long (2 lines in the JSON)",
    ]
    assert "## Notes" not in to_markdown(PASS)


@pytest.mark.parametrize(
    ("docker", "said"),
    [
        ("26.1.5", "- docker: 26.1.5"),
        ("rootfs", "- run: without Docker (rootfs)"),
        ("no container", "- run: without a container"),
    ],
)
def test_what_it_was_run_by_is_said_in_words(docker, said):
    made = replace(PASS, host=replace(PASS.host, docker=docker))
    assert said in to_markdown(made).splitlines()
    assert ("docker: " in to_markdown(made)) == (docker == "26.1.5")


@pytest.mark.parametrize(
    "other",
    [
        {"digest": "sha256:" + "ab" * 31 + "00"},
        {"suite_hash": "cd" * 31 + "00"},
        {"host": replace(HOST, driver="1")},
    ],
)
def test_a_verdict_of_something_else_is_not_reused(tmp_path, other):
    write(REPORT, tmp_path)
    wanted = {"digest": REPORT.digest, "suite_hash": REPORT.suite_hash, "host": HOST, **other}
    assert find(tmp_path, **wanted) is None


def test_an_unusable_report_is_refused_and_not_reused(tmp_path):
    folder = write(REPORT, tmp_path)
    path = folder / reports.CTRF
    whole = json.loads(path.read_text())
    broken = [b"", b"{", b"[]", json.dumps({**whole, "results": {}}).encode()]
    whole["results"]["extra"]["verdict"] = "splendid"
    broken.append(json.dumps(whole).encode())
    whole["results"]["extra"]["verdict"] = "pass"
    whole["results"]["tests"][0]["status"] = "other"
    broken.append(json.dumps(whole).encode())
    for change in (
        lambda results: results["summary"].update(start=1e999),
        lambda results: results.update(tests=[5]),
        lambda results: results["environment"]["extra"].update(digest=5),
        lambda results: results["environment"]["extra"]["host"].update(gpus=5),
        lambda results: results["environment"]["extra"]["host"].update(gpus="H200"),
        lambda results: results["environment"]["extra"]["host"].update(driver=[]),
    ):
        changed = to_ctrf(REPORT)
        assert from_ctrf(json.loads(json.dumps(changed))) == REPORT
        change(changed["results"])
        broken.append(json.dumps(changed).encode())
    broken.append(b"[" * 100_000)
    for data in broken:
        path.write_bytes(data)
        with pytest.raises(IntegrityError):
            read(folder)
        assert find(tmp_path, REPORT.digest, REPORT.suite_hash, HOST) is None


def test_a_pass_that_its_checks_do_not_give_is_none():
    good = replace(PASS, checks=PASS.checks[:1])
    assert from_ctrf(to_ctrf(good)) == good
    one_gpu = Check(name="multi", status="not-run", reason="one GPU")
    assert from_ctrf(to_ctrf(replace(good, checks=(*good.checks, one_gpu)))).verdict == "pass"
    unsaid = replace(one_gpu, reason="")
    for checks in (
        REPORT.checks,  # one failed
        (),
        REPORT.checks[3:],  # none that was run
        (*good.checks, *REPORT.checks[3:]),  # one not for want of a GPU
        (*good.checks, unsaid),
        good.checks * 2,
    ):
        with pytest.raises(ValueError, match="do not give its verdict"):
            from_ctrf(to_ctrf(replace(good, checks=checks)))
    with pytest.raises(ValueError, match="nothing passes without a GPU"):
        from_ctrf(to_ctrf(replace(good, host=HOST)))


@pytest.mark.parametrize(
    "change",
    [
        lambda results: results["summary"].update(start=-1),
        lambda results: results["summary"].update(start=10**18),
        lambda results: results["summary"].update(start="5"),
        lambda results: results["extra"].update(seconds=float("nan")),
        lambda results: results["extra"].update(seconds=float("inf")),
        lambda results: results["extra"].update(facts=[]),
        lambda results: results["environment"].update(appName=5),
        lambda results: results["environment"]["extra"].update(standIn=5),
        lambda results: results["environment"]["extra"].update(expectGpus="2"),
        lambda results: results["environment"]["extra"].update(expectGpus=-1),
        lambda results: results["tests"][0].update(name=5),
        lambda results: results["tests"][0]["extra"].update(seconds=-1),
        lambda results: results["tests"][0]["extra"].update(facts=5),
        lambda results: results["tests"][1]["extra"]["findings"][0].update(message=5),
        lambda results: results["tests"][1]["extra"]["findings"][0].update(severity="fatal"),
    ],
)
def test_a_value_that_no_report_has_is_refused(tmp_path, change):
    path = write(REPORT, tmp_path) / reports.CTRF
    data = json.loads(path.read_text())
    change(data["results"])
    path.write_text(json.dumps(data))
    with pytest.raises(IntegrityError, match="not a usable report"):
        read(path.parent)


@pytest.mark.parametrize(("started", "year"), [(-(10**15), 1970), (0, 1970), (10**18, 9999)])
def test_a_clock_may_be_wrong(started, year):
    wrong = replace(REPORT, started=started)
    assert f"- date: {year}-" in to_markdown(wrong) and f'timestamp="{year}-' in to_junit(wrong)


def test_a_write_that_fails_leaves_the_former_report_whole(tmp_path, monkeypatch):
    folder = write(REPORT, tmp_path)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    synced = []

    def full(fd):
        synced.append(fd)
        if len(synced) == 3:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    for _ in range(2):
        synced.clear()
        with pytest.raises(OSError, match="No space"):
            write(replace(REPORT, started=9), tmp_path)
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_who_is_killed_while_writing_leaves_the_new_verdict_or_the_whole_former_one(tmp_path, monkeypatch):
    write(PASS, tmp_path)
    failed = replace(PASS, verdict="fail", checks=(replace(PASS.checks[0], status="fail"),))
    moved, replace_file = [], Path.replace

    def killed(self, target):
        moved.append(target.name)
        replace_file(self, target)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        write(failed, tmp_path)
    assert moved == [reports.CTRF] and read(tmp_path / PASS.key).verdict == "fail"


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path):
    folder = write(REPORT, tmp_path)
    (folder / ".report.md.k3x").write_text("half")
    (folder / "notes.md").write_text("mine")
    write(REPORT, tmp_path)
    names = {path.name for path in folder.iterdir()}
    assert names == {"notes.md", "report.md", "report.junit.xml", "report.ctrf.json"}


def test_of_two_that_write_at_once_one_is_last_in_all_forms(tmp_path):
    def made(number):
        return replace(REPORT, reason=f"n{number}", facts={"n": "x" * 100_000})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: write(made(number), tmp_path), range(40)))
    reason = read(tmp_path / REPORT.key).reason
    for name in (reports.MARKDOWN, reports.JUNIT):
        assert f"unverified: {reason}" in (tmp_path / REPORT.key / name).read_text()
    assert len(list((tmp_path / REPORT.key).iterdir())) == 3


def test_hosts_differ_by_what_matters():
    assert HOST.key == Host(kernel="6.1.0", machine="x86_64", cpu="A CPU", docker="26.1.5").key
    assert HOST.key != replace(HOST, gpus=("H200",)).key


def test_a_stand_in_is_called_one_in_every_form(tmp_path):
    name = "nvidia/cuda:12.2.2-cudnn8-runtime-ubuntu22.04"
    made = replace(REPORT, stand_in=name)
    assert read(write(made, tmp_path)) == made
    for text in (to_markdown(made), to_junit(made)):
        assert f"a stand-in for {name}" in text
    assert "stand-in" not in to_markdown(REPORT) + to_junit(REPORT) + json.dumps(to_ctrf(REPORT))


def test_whether_reports_can_be_written_is_known_before(tmp_path, monkeypatch):
    require_room(tmp_path / "new/folder")
    assert list((tmp_path / "new/folder").iterdir()) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        require_room(tmp_path / "file")
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit[1]))
    try:
        with pytest.raises(OSError, match="new"):
            require_room(tmp_path / "new")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
