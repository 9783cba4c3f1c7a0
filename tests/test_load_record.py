from __future__ import annotations

import io
import json
import zipfile
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from test_load_advice import H200, bench, row
from test_load_judging import GOOD, compared, progress
from tfenv.errors import IntegrityError
from tfenv.load import (
    Record,
    advise,
    bench_files,
    bench_of,
    events_of,
    judge,
    load_hash,
    pack,
    read_bench,
    recorded_benches,
    stress_files,
    stress_of,
    write,
)
from tfenv.load.tables import bench_text
from tfenv.resources import verifier_dir

RECORD = Record(cell="2.15.1-cell", digest="sha256:" + "ab" * 32, docker="rootfs")

STRESS_LINES = (Path(__file__).parent / "fixtures/load/stress.jsonl").read_text()


def test_the_lines_of_stress_are_read():
    run = stress_of(events_of(STRESS_LINES))
    assert (run.minutes, run.driver, run.devices, run.seconds, run.why) == (2, "580.1", ("H",), 125.5, "")
    assert run.gpus[0].before == {"uncorrected_volatile": 0} and run.gpus[0].after == {
        "uncorrected_volatile": 1
    }
    assert (run.samples[0].watts, run.progress[0].differing, run.xids[0].xid) == (600.5, 2, 48)
    assert run.facts == {"kernel": "6", "program": "aa", "cpu": "C"} and run.broke == {0: "InternalError"}


def test_lines_without_an_end_are_those_of_a_run_that_was_broken_off():
    events = events_of(STRESS_LINES)[:-1]
    assert stress_of(events).why == "it was broken off"
    assert (
        stress_of(events, noted="it had not ended after 9 s", tail="last").why == "it had not ended after 9 s"
    )
    assert stress_of([]).why == "it was broken off" and bench_of([]).why == "it was broken off"


def test_lines_of_another_kind_are_refused():
    with pytest.raises(IntegrityError, match="lines of stress"):
        bench_of(events_of(STRESS_LINES))
    with pytest.raises(IntegrityError, match="not as expected"):
        stress_of([{"event": "progress", "gpu": 0}])


HUGE = 10**400


@pytest.mark.parametrize(
    ("event", "key", "value"),
    [
        ("start", "minutes", "2"),
        ("start", "started", HUGE),
        ("end", "seconds", float("nan")),
        ("worker", "devices", 5),
        ("worker", "size", None),
        ("gpu", "gpu", "first"),
        ("gpu", "errors", [1]),
        ("errors", "errors", {"a": "x"}),
        ("sample", "t", float("inf")),
        ("sample", "watts", "600"),
        ("progress", "wrong", True),
        ("progress", "products", HUGE),
        ("compared", "equal_bits", 1),
        ("compared", "to_cpu", HUGE),
        ("sampled", "xid_sources", 1),
        ("broke", "gpu", {}),
    ],
)
def test_a_value_that_is_none_is_an_error_of_the_lines(event, key, value):
    events = events_of(STRESS_LINES)
    (wrong, *_) = [one for one in events if one["event"] == event]
    assert stress_of(events)
    wrong[key] = value
    with pytest.raises(IntegrityError, match="not as expected"):
        stress_of(events)


def test_a_product_that_is_no_number_is_a_finding():
    events = events_of(STRESS_LINES)
    for one in events:
        if one["event"] == "compared":
            one["to_cpu"] = float("nan")
    run = stress_of(events)
    assert judge(run).verdict == "fail" and "stress.json" in stress_files(run, RECORD)


@pytest.mark.parametrize(
    "wrong",
    [
        {"gpus": 0},
        {"status": "ok", "throughput": 0},
        {"throughput": HUGE},
        {"status": "splendid"},
        {"xla": 1},
        {"devices": 3},
        {"low": float("nan")},
        {"low": 3.0},
        {"high": 2.0},
        {"low": 0, "high": 0},
        {"low": -1.0},
        {"throughput": -2.5, "low": -3.0, "high": -2.0},
        {"throughput": float("inf"), "high": float("inf")},
        {"gpus": 2},
        {"precision": "float8"},
        {"reduction": "gossip", "gpus": 2, "devices": [{"name": "H"}] * 2},
        {"reduction": "", "gpus": 2, "devices": [{"name": "H"}] * 2},
        {"reduction": "nccl"},
    ],
)
def test_a_row_that_was_not_measured_is_refused(wrong):
    good = {"event": "row", "model": "m", "precision": "tf32", "xla": False, "gpus": 1, "reduction": ""}
    good |= {"batch": 1, "status": "ok", "throughput": 2.5, "low": 2.5, "high": 3, "devices": [{"name": "H"}]}
    assert bench_of([good]).rows[0].throughput == 2.5
    with pytest.raises(IntegrityError, match="not as expected"):
        bench_of([{**good, **wrong}])


START = {"event": "start", "kind": "bench", "started": 1, "told": {}}
END = {"event": "end", "why": "", "seconds": 3}


def test_a_bench_without_a_row_has_measured_nothing():
    assert bench_of([START, END]).why == "no configuration ran"
    failed = {"event": "row", "model": "m", "precision": "tf32", "xla": False, "gpus": 1, "reduction": ""}
    failed |= {"batch": 1, "status": "failed", "why": "x"}
    assert bench_of([START, failed, END]).why == "no configuration ran"


def without(name):
    return [one for one in events_of(STRESS_LINES) if one["event"] != name]


def test_lines_without_a_start_or_a_word_of_the_end_are_no_whole_run():
    assert stress_of(without("start")).why == "it was broken off" == bench_of([END]).why
    events = events_of(STRESS_LINES)
    del events[-1]["why"]
    with pytest.raises(IntegrityError, match="not as expected"):
        stress_of(events)
    with pytest.raises(IntegrityError, match="to run for no time"):
        stress_of([{**events[0], "minutes": 0}])


def test_gpus_that_were_not_watched_to_the_end_are_said_to_be():
    assert stress_of(events_of(STRESS_LINES)).unsampled == ""
    assert stress_of(without("sampled")).unsampled == "they were not watched to the end"
    assert judge(stress_of(without("sampled"))).checks[3].status == "not-run"
    untold = {"event": "unsampled", "why": "no NVML"}
    assert stress_of([untold, *without("sampled")]).unsampled == "no NVML"


@pytest.mark.parametrize("told", [[["a", 1], [1, 2]], "x", 5])
def test_what_it_was_told_is_an_object(told):
    with pytest.raises(IntegrityError, match="not as expected"):
        bench_of([{**START, "told": told}, END])


def test_lines_of_two_runs_are_those_of_none():
    one = events_of(STRESS_LINES)
    for two in (one + one, one[:-1] + one, [*one, one[3]], [one[0], *one], [*one, one[-1]]):
        with pytest.raises(IntegrityError, match="more than one run"):
            stress_of(two)
    with pytest.raises(IntegrityError, match="more than one run"):
        bench_of([START, END, START, END])


@pytest.mark.parametrize("key", ["gpu", "products", "wrong", "differing", "tflops"])
def test_what_was_counted_is_not_negative(key):
    events = events_of(STRESS_LINES)
    next(one for one in events if one["event"] == "progress")[key] = -1
    with pytest.raises(IntegrityError, match="is negative"):
        stress_of(events)


def test_a_tolerance_is_a_number():
    events = events_of(STRESS_LINES)
    for wrong in (float("inf"), float("nan"), 10**30):
        next(one for one in events if one["event"] == "compared")["tolerance"] = wrong
        with pytest.raises(IntegrityError, match="not as expected"):
            stress_of(events)


def test_how_it_ended_counts_although_it_said_its_end():
    events = events_of(STRESS_LINES)
    assert stress_of(events, noted="it ended with exit status 139").why == "it ended with exit status 139"
    events[-1]["why"] = "said"
    assert stress_of(events, noted="noted").why == "said"


def test_the_rows_of_a_bench_are_read():
    made = [
        {"event": "start", "kind": "bench", "started": 1, "driver": "580", "told": {"quick": True}},
        {
            "event": "row",
            "model": "resnet50",
            "precision": "tf32",
            "xla": False,
            "gpus": 2,
            "reduction": "nccl",
            "batch": 4,
            "status": "ok",
            "throughput": 9.5,
            "low": 9.4,
            "high": 9.6,
            "unit": "images/s",
            "tensorflow": "2.15.1",
            "devices": [{"name": "H"}, {"name": "H"}],
        },
        {"event": "end", "why": "", "seconds": 3},
    ]
    run = bench_of(made)
    assert (run.tensorflow, run.devices, run.rows[0].throughput, run.why) == ("2.15.1", ("H", "H"), 9.5, "")


def test_the_files_of_stress_tell_verdict_and_figures(tmp_path):
    files = stress_files(GOOD, RECORD)
    assert set(files) == {"stress.json", "stress.md", "stress.svg"}
    assert "Stress of 1 minute: verified" in files["stress.md"] and "![" in files["stress.md"]
    assert "1 minute of matrix products" in files["stress.svg"]
    assert "- run: without Docker (rootfs)" in files["stress.md"] and "docker:" not in files["stress.md"]
    assert (
        "| gpu0 | 60" in files["stress.md"] and "float32, matrices of 8192: GPU 0 400" in files["stress.md"]
    )
    data = json.loads(files["stress.json"])
    assert (data["verdict"], data["digest"], data["host"]["docker"]) == ("pass", RECORD.digest, "rootfs")
    folder = write(tmp_path, GOOD, RECORD, files)
    assert folder.name.startswith("stress-abababababab-") and (folder / "stress.svg").is_file()


def test_figures_are_whole_in_the_page_and_as_measured_in_the_file():
    samples = [replace(one, watts=692.5805, celsius=None) for one in GOOD.samples]
    files = stress_files(replace(GOOD, minutes=0.5, samples=tuple(samples)), replace(RECORD, docker="26.1.5"))
    assert "| gpu0 | - | 693 | 693 |" in files["stress.md"] and "692.5805" in files["stress.json"]
    assert "Stress of 0.5 minutes" in files["stress.md"] and "- docker: 26.1.5" in files["stress.md"]


def test_a_failure_is_told_with_its_remedy():
    page = stress_files(replace(GOOD, progress=progress(0, 1.0) + progress(1, 1.0, wrong=1)), RECORD)[
        "stress.md"
    ]
    assert (
        ": failed" in page and "**error** (products): GPU 1 gave wrong products" in page and "Remedy:" in page
    )


def test_numbers_that_json_has_not_are_words():
    data = json.loads(
        stress_files(replace(GOOD, compared=(compared(0, float("nan")),)), RECORD)["stress.json"]
    )
    assert data["run"]["compared"][0]["to_cpu"] == "nan"


def test_samples_of_a_long_run_are_thinned_in_the_file_only():
    many = tuple(replace(GOOD.samples[0], t=n / 10) for n in range(5000))
    data = json.loads(stress_files(replace(GOOD, samples=many), RECORD)["stress.json"])
    assert 250 <= len(data["run"]["samples"]) <= 300


def test_a_bench_is_read_back_and_found_beside_its_cell(tmp_path):
    run = bench(*H200, row("tf32", 0, gpus=2, reduction="nccl", status="hung", why="hung: x | y"))
    folder = write(tmp_path / "2.15.1-cell" / "reports", run, RECORD, bench_files(run, RECORD, advise(run)))
    assert read_bench(folder / "bench.json") == ("2.15.1-cell", "rootfs", run)
    assert recorded_benches(tmp_path) == [("2.15.1-cell", "rootfs", run)]
    page = (folder / "bench.md").read_text()
    assert (
        "| float32 (TF32), 2" not in page and "| float32 (TF32) | 2 | nccl | hung | hung: x \\| y |" in page
    )
    assert "## Advice" in page and "- resnet50: switch on mixed_float16 + XLA" in page
    assert "4921" in bench_text(run, [])


def test_a_damaged_bench_says_which(tmp_path):
    path = tmp_path / "bench.json"
    for text in ("{", "{}", '{"cell": "a", "run": {"rows": [{"model": "x"}]}}'):
        path.write_text(text)
        with pytest.raises(IntegrityError, match=r"bench\.json is not a usable bench"):
            read_bench(path)


@pytest.mark.parametrize(
    "change",
    [
        {"devices": [{}]},
        {"devices": 5},
        {"rows": [{**asdict(row("tf32", 1.0)), "throughput": 0}]},
        {"rows": [{**asdict(row("tf32", 1.0)), "low": "nan"}]},
        {"rows": [{**asdict(row("tf32", 1.0)), "seconds": 10**400}]},
        {"unknown": 1},
    ],
)
def test_a_damaged_bench_is_told_and_hides_no_other(tmp_path, change):
    run, said = bench(*H200), []
    folder = write(tmp_path / "a" / "reports", run, RECORD, bench_files(run, RECORD, []))
    data = json.loads((folder / "bench.json").read_text())
    other = tmp_path / "b" / "reports" / "bench-x" / "bench.json"
    other.parent.mkdir(parents=True)
    other.write_text(json.dumps({**data, "run": {**data["run"], **change}}))
    assert [name for name, _, _ in recorded_benches(tmp_path, said.append)] == ["2.15.1-cell"]
    assert len(said) == 1 and str(other) in said[0]


def test_the_folder_depends_on_program_wish_and_host():
    other = replace(GOOD, minutes=2)
    assert load_hash(GOOD) != load_hash(other) != load_hash(replace(other, facts={"program": "x"}))
    assert RECORD.folder(GOOD, "stress") != RECORD.folder(replace(GOOD, driver="1"), "stress")
    assert RECORD.folder(GOOD, "stress") == RECORD.folder(replace(GOOD, seconds=1), "stress")


def test_the_program_is_packed_alike_each_time_and_whole(tmp_path):
    assert pack() == pack()
    names = zipfile.ZipFile(io.BytesIO(pack())).namelist()
    assert {"__main__.py", "tfenv_load/main.py", "tfenv_verify/runner.py"} <= set(names)
    assert names == sorted(names) and not any("checks" in name for name in names)
    entry = zipfile.ZipFile(io.BytesIO(pack())).read("__main__.py")
    assert entry == (verifier_dir() / "tfenv_load" / "__main__.py").read_bytes()
    with pytest.raises(IntegrityError):
        pack(Path(tmp_path))
