"""What the matrix page says, and that it says it of the right things."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import matrices
import pages
import pytest
import small
from tfenv import cli, compat, digest, facts, page, report
from tfenv.digest import Digest
from tfenv.errors import EXIT_FAILED, EXIT_USAGE, IntegrityError, UsageError
from tfenv.files import LOCK_NAME
from tfenv.lockfile import dump_lock, lock_hash, read_lock
from tfenv.page import Answer, Entry, Gpu, Page, Refused, answers, gpus, judging
from tfenv.page.html import data
from tfenv.report import Check, Host, Report

MANIFEST = "sha256:" + "1" * 64
OTHER = "sha256:" + "2" * 64


@pytest.fixture(scope="module")
def made() -> Page:
    return pages.page()


@pytest.fixture(scope="module")
def html(made: Page) -> str:
    return page.to_html(made)


# ---- what is proved


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The generated files of a locked cell."""
    made = small.workspace(tmp_path / "team")
    return made.folder(made.matrix.cells[0])


def record(folder: Path, *, lock: str | None = None) -> None:
    of = Digest(
        inputs="a" * 64,
        lock=lock or lock_hash(read_lock(folder / LOCK_NAME)),
        manifest=MANIFEST,
        config=OTHER,
        diff_ids=(),
        layer_bytes=(),
        builder="x",
    )
    (folder / digest.FILE_NAME).write_text(digest.dump(of))


def reported(folder: Path, **changes: Any) -> None:
    values: dict[str, Any] = {
        "image": "cell",
        "digest": MANIFEST,
        "suite": "full",
        "suite_hash": "e" * 64,
        "verdict": "pass",
        "host": Host(gpus=("NVIDIA H200", "NVIDIA H200"), driver="580.159.04"),
        "checks": (Check(name="gpu", status="pass"),),
        "started": 1796044022355,
        "seconds": 1.0,
    }
    report.write(Report(**{**values, **changes}), folder / "reports")


NO_GPU = {"verdict": "unverified", "host": Host(), "reason": "no GPU"}


def test_without_a_lock_nothing_is_claimed(tmp_path: Path) -> None:
    assert page.standing(tmp_path / "none").kind == "open"


def test_a_lock_alone(folder: Path) -> None:
    assert page.standing(folder) == page.Standing(kind="locked")


def test_a_recorded_digest_alone(folder: Path) -> None:
    record(folder)
    found = page.standing(folder)
    assert (found.kind, found.digest, found.sentences) == ("built", MANIFEST, ())


def test_a_digest_of_another_lock_does_not_count(folder: Path) -> None:
    record(folder, lock="b" * 64)
    reported(folder)
    found = page.standing(folder)
    assert (found.kind, found.digest, found.proofs) == ("locked", "", ())
    assert found.sentences == ("The digest that is recorded is of another lock.",)


def test_a_lock_that_does_not_know_its_base_gives_no_image_to_count(folder: Path) -> None:
    of = read_lock(folder / LOCK_NAME)
    (folder / LOCK_NAME).write_text(dump_lock(small.on_image(of, "nvidia/cuda:12.2.2")))
    record(folder)
    reported(folder)
    found = page.standing(folder)
    assert (found.kind, found.digest, found.proofs) == ("partly", "", ())
    assert found.sentences == ("The digest of nvidia/cuda:12.2.2 is not known yet.",)


def test_a_stand_in_for_the_base_is_called_so_and_proves_nothing(folder: Path) -> None:
    reported(folder, stand_in="nvidia/cuda:12.2.2")
    record(folder)
    assert page.standing(folder).kind == "built"
    of = read_lock(folder / LOCK_NAME)
    (folder / LOCK_NAME).write_text(dump_lock(small.on_image(of, "nvidia/cuda:12.2.2")))
    record(folder)
    reported(folder, **NO_GPU, stand_in="nvidia/cuda:12.2.2")
    found = page.standing(folder)
    assert (found.kind, found.digest, any(proof.decides for proof in found.proofs)) == ("partly", "", False)
    assert set(found.sentences) == {
        "Built with a stand-in for nvidia/cuda:12.2.2; every check passed on 2 x NVIDIA H200, "
        "driver 580.159.04, 2026-11-30.",
        "Built with a stand-in for nvidia/cuda:12.2.2; every check that needs no GPU passed on a machine "
        "without a GPU, 2026-11-30.",
        "The digest of nvidia/cuda:12.2.2 is not known yet.",
    }


def test_a_pass_on_a_gpu_is_verified_and_says_where_and_when(folder: Path) -> None:
    record(folder)
    reported(folder)
    found = page.standing(folder)
    assert found.kind == "verified"
    assert found.sentences == ("Verified on 2 x NVIDIA H200, driver 580.159.04, 2026-11-30.",)
    assert found.proofs[0].names == ("NVIDIA H200",)


def test_what_one_gpu_does_not_allow_is_said_beside_the_pass(folder: Path) -> None:
    record(folder)
    checks = (Check(name="gpu", status="pass"), Check(name="multi_gpu", status="not-run", reason="one GPU"))
    reported(folder, host=Host(gpus=("NVIDIA H200",), driver="580.159.04"), checks=checks)
    assert page.standing(folder).sentences == (
        "Verified on NVIDIA H200, driver 580.159.04, 2026-11-30; multi_gpu not run.",
    )


def test_a_report_of_another_digest_does_not_count(folder: Path) -> None:
    record(folder)
    reported(folder, digest=OTHER)
    assert page.standing(folder).kind == "built"


def test_without_a_gpu_it_is_not_verified(folder: Path) -> None:
    record(folder)
    reported(folder, **NO_GPU)
    found = page.standing(folder)
    assert found.kind == "checked"
    assert found.sentences == (
        "Built; every check that needs no GPU passed on a machine without a GPU, 2026-11-30.",
    )


def test_unverified_for_another_reason_says_the_reason(folder: Path) -> None:
    record(folder)
    reported(folder, verdict="unverified", reason="nccl was not run: one GPU")
    found = page.standing(folder)
    assert found.kind == "checked"
    assert "nccl was not run: one GPU" in found.sentences[0]


def test_a_pass_that_names_no_gpu_is_refused(folder: Path) -> None:
    record(folder)
    reported(folder, host=Host())
    with pytest.raises(IntegrityError, match="nothing passes without a GPU"):
        page.standing(folder)


def test_one_host_that_fails_outweighs_those_that_pass(folder: Path) -> None:
    record(folder)
    reported(folder)
    failed = (Check(name="nccl", status="fail"), Check(name="gpu", status="pass"))
    reported(folder, verdict="fail", host=Host(gpus=("NVIDIA A100",), driver="570.26"), checks=failed)
    found = page.standing(folder)
    assert found.kind == "failed"
    assert "Built; failed on NVIDIA A100, driver 570.26, 2026-11-30: nccl." in found.sentences
    assert "Verified on 2 x NVIDIA H200, driver 580.159.04, 2026-11-30." in found.sentences


def test_of_one_kind_of_host_the_newest_report_counts(folder: Path) -> None:
    record(folder)
    reported(folder, verdict="fail", suite_hash="d" * 64)
    reported(folder, started=1796044022356)
    assert page.standing(folder).kind == "verified"
    reported(folder, verdict="fail", suite_hash="f" * 64, started=1796044022357)
    assert page.standing(folder).kind == "failed"


def test_a_smoke_suite_is_called_so(folder: Path) -> None:
    record(folder)
    reported(folder, suite="smoke")
    assert page.standing(folder).sentences[0].endswith("2026-11-30, smoke suite.")


def test_a_smoke_suite_after_a_full_one_says_only_what_it_found_wrong(folder: Path) -> None:
    record(folder)
    reported(folder)
    reported(folder, suite="smoke", suite_hash="d" * 64, started=1796044022356)
    (sentence,) = page.standing(folder).sentences
    assert sentence.endswith("2026-11-30.")
    failed = (Check(name="gpu", status="fail"),)
    reported(folder, suite="smoke", suite_hash="f" * 64, verdict="fail", checks=failed, started=1796044022357)
    assert page.standing(folder).kind == "failed"


def test_a_damaged_report_is_an_error(folder: Path) -> None:
    record(folder)
    reported(folder)
    next((folder / "reports").glob("*/*.json")).write_text("{}")
    with pytest.raises(IntegrityError, match="not a usable report"):
        page.standing(folder)


# ---- answers


def test_only_drivers_at_which_an_answer_changes_are_kept(made: Page) -> None:
    assert made.answers.drivers == (page.OLDEST, "525.60.13", "530.30.02", "590.44.01")


def test_a_driver_that_changes_nothing_is_dropped_and_one_that_does_is_kept() -> None:
    cells = pages.matrix().cells[:1]
    drivers = ("525.60.13", "535.54.03")

    def judge(cell: object, gpu: object, driver: str | None) -> Answer:
        return Answer(state="refused" if driver in (page.OLDEST, "525.60.13") else "runs")

    found = answers.ask(cells, judge, (), drivers)
    assert found.drivers == (page.OLDEST, "535.54.03")


def test_every_kept_answer_is_the_judges(made: Page) -> None:
    of = made.answers
    for cell in pages.matrix().cells:
        grid = of.grids[of.grid_of[cell.name]]
        for gpu, line in zip((None, *of.gpus), grid, strict=True):
            for driver, answer in zip((None, *of.drivers), line, strict=True):
                assert of.kept[answer] == pages.judge(cell, gpu, driver)


def test_spans_cover_all_drivers_without_a_gap(made: Page) -> None:
    of = made.answers
    pascal = of.spans(of.grid_of["2.15.1-cu12.2-cudnn8.9-py3.11-debian12"], 0)
    assert [(span.since, span.until, span.answer.state) for span in pascal] == [
        ("", "525.60.13", "refused"),
        ("525.60.13", "590.44.01", "runs"),
        ("590.44.01", "", "refused"),
    ]


def test_where_the_gpu_alone_is_refused_drivers_do_not_matter(made: Page) -> None:
    of = made.answers
    (span,) = of.spans(of.grid_of["2.4.4-cu12.2-cudnn8.9-py3.11-debian12"], 4)
    assert (span.since, span.until, span.answer.sentences) == ("", "", (pages.NO_CODE,))


def test_gpus_that_differ_in_what_to_do_alone_are_one_line(made: Page) -> None:
    release = next(of for of in made.releases if of.tensorflow == "2.15.1")
    ((*lines,),) = (table.lines for table in release.tables)
    assert [[gpu.compute_capability for gpu in line.gpus] for line in lines] == [
        ["6.1"],
        ["6.1", "8.0"],
        ["9.0", "12.0"],
    ]


# ---- what the rules say


def finding(severity: Any, message: str, remedy: str = "") -> compat.Finding:
    return compat.Finding(code="x", severity=severity, message=message, remedy=remedy)


@pytest.mark.parametrize(
    ("outcome", "severities", "state"),
    [
        ("runs", [], "runs"),
        ("runs", ["warn"], "runs"),
        ("limit", ["limit", "warn"], "limited"),
        ("refused", ["refuse", "limit"], "refused"),
        ("unknown", ["unknown", "limit"], "unknown"),
    ],
)
def test_only_a_limit_is_a_limit(outcome: Any, severities: list[str], state: str) -> None:
    findings = tuple(finding(severity, f"m{i}") for i, severity in enumerate(severities))
    found = judging.answer(compat.Verdict(outcome=outcome, findings=findings), None, None)
    assert found.state == state
    said = [of for of in severities if of != "warn"] if state != "refused" else severities[:1]
    assert found.sentences == tuple(f"M{i}." for i, _ in enumerate(said))


def test_what_was_asked_about_stands_for_many() -> None:
    found = judging.answer(
        compat.Verdict(
            outcome="refused",
            findings=(
                finding("refuse", "the driver 1.2 is too old for Hopper, compute capability 9.0", "do it"),
                finding("refuse", "no code for sm_90 (Hopper, compute capability 9.0)", "do it"),
                finding("refuse", "cuDNN 9.10 has none: branch 580 is the last for Hopper"),
            ),
        ),
        "9.0",
        "1.2",
    )
    assert found.sentences == (
        "This driver is too old for this GPU.",
        "No code for this GPU.",
        "cuDNN 9.10 has none: branch 580 is the last that does.",
    )
    assert found.remedies == ("do it",)


def test_the_judge_asks_the_rules_with_the_cells_libraries() -> None:
    cell = pages.matrix().cells[0]
    facts = matrices.made_up(cell.row.tensorflow)
    judge = judging.judge(lambda _: facts)
    hopper, later = pages.GPUS[3], "590.44.01"
    assert hopper.compute_capability == "9.0"
    for gpu, driver in ((None, None), (hopper, None), (hopper, "525.60.13"), (pages.GPUS[0], later)):
        kind, capability = (gpu.kind, gpu.compute_capability) if gpu else ("", None)
        verdict = compat.runs(facts, "12.2", "8.9", capability, driver, kind)
        assert judge(cell, gpu, driver) == judging.answer(verdict, capability, driver)
    assert judge(cell, hopper, "525.60.13").state == "refused"
    assert judge(cell, hopper, "530.30.02").state == "limited"


def test_a_release_that_facts_do_not_know_is_not_judged() -> None:
    cell = pages.matrix().cells[0]
    gone = replace(cell, row=replace(cell.row, tensorflow="2.99.1"))
    found = judging.judge(matrices.made_up)(gone, None, None)
    assert (found.state, found.sentences) == ("unknown", ("Nothing is known of 2.99.1.",))
    assert judging.drivers([gone], matrices.made_up, ()) == frozenset()
    assert judging.about(matrices.made_up)("2.99.1") == found.sentences


def test_drivers_to_ask_about_are_floors_and_the_ends_of_gpus() -> None:
    cell = pages.matrix().cells[0]
    assert judging.drivers([cell], matrices.made_up, ()) == {"525.60.13", "530.30.02"}
    pascal = judging.drivers([], matrices.made_up, pages.GPUS[:1])
    assert {"581", "585", "590"} <= pascal and "580" not in pascal
    assert "570.26" in judging.drivers([], matrices.made_up, pages.GPUS[4:])


def test_what_is_said_of_a_release() -> None:
    told = judging.about(lambda name: matrices.made_up(name, yanked="broken"))("2.15.1")
    assert told == (
        "Compiled for CUDA 12.2.0 and cuDNN 8.9.4.",
        "NCCL 2.16.5 is linked in.",
        "Machine code for compute capability 5.0.",
        "The package index has it as yanked: broken.",
    )


# ---- what is collected


def test_newest_first_in_minor_releases(made: Page) -> None:
    assert [name for name, _ in made.minors][:2] == ["2.22", "2.21"]
    assert [of.tensorflow for of in dict(made.minors)["2.15"]] == ["2.15.1", "2.15.0.post1"]
    assert made.pythons == pages.PYTHONS


def test_every_cell_and_every_refusal_has_its_place(made: Page) -> None:
    matrix = pages.matrix()
    assert sorted(entry.cell.name for entry in made.entries) == sorted(cell.name for cell in matrix.cells)
    assert [entry.number for entry in made.entries] == list(range(len(matrix.cells)))
    assert sum(len(one.pairs) for of in made.releases for one in of.refused) == len(matrix.refused)
    for release in made.releases:
        for python, places in release.lines:
            assert len(places) == len(release.bases)
            for ones, base in zip(places, release.bases, strict=True):
                for one in ones:
                    if isinstance(one, Entry):
                        assert (one.cell.python, one.cell.base.name) == (python, base)
                    else:
                        assert isinstance(one, Refused) and (python, base) in one.pairs


def test_a_proof_counts_for_its_compute_capability_only(made: Page) -> None:
    entry = next(of for of in made.entries if of.standing.kind == "verified" and "2.15.1" in of.cell.name)
    assert [made.answers.gpus[i].compute_capability for i, _ in entry.proven] == ["9.0"]
    assert all(not of.proven for of in made.entries if of.standing.kind in ("checked", "built", "open"))


def test_no_proof_counts_for_a_gpu_of_another_host() -> None:
    arm = Gpu(compute_capability="9.0", architecture="Hopper", host="linux/arm64", names=("GH200",))
    made = pages.page(gpus=(*pages.GPUS, arm))
    proven = {made.answers.gpus[i] for of in made.entries for i, _ in of.proven}
    assert arm not in proven
    assert pages.GPUS[3] in proven


def test_why_other_libraries_serve_is_said_of_the_release() -> None:
    (cell, *_) = pages.matrix().cells
    other = replace(cell, row=replace(cell.row, other_libraries="no older wheels exist"))
    (release,) = pages.page(cells=(other,), refused=()).releases
    assert release.about[1:] == ("Why newer libraries: no older wheels exist.",)
    (release,) = pages.page(cells=(cell,), refused=()).releases
    assert len(release.about) == 1


def test_a_release_of_which_all_is_refused_is_shown_too() -> None:
    matrix = pages.matrix()
    gone = tuple((cell.name, "no wheel") for cell in matrix.cells if cell.row.tensorflow == "2.4.4")
    cells = tuple(cell for cell in matrix.cells if cell.row.tensorflow != "2.4.4")
    found = pages.page(cells=cells, refused=(*matrix.refused, *gone))
    release = found.releases[-1]
    assert (release.tensorflow, release.entries, release.sets) == ("2.4.4", (), ())
    assert "2.4.4" in page.to_html(found)
    assert "| **2.4.4** | - | - | - | ✖ 12 refused |" in page.to_markdown(found, "x")


# ---- GPUs


def test_known_gpus_have_each_name_once_and_the_capability_that_facts_say() -> None:
    known = gpus.known()
    names = [name for gpu in known for name in gpu.names]
    assert len(names) == len(set(names)) > 100
    assert all(gpus.capability(name) == gpu.compute_capability for gpu in known for name in gpu.names)


def test_gpus_are_known_by_the_name_of_their_driver() -> None:
    assert gpus.capability("NVIDIA H200") == "9.0"
    assert gpus.capability("Voodoo 2") is None


def test_kinds_are_named_only_where_not_all_are_meant() -> None:
    every = (*pages.GPUS, Gpu(compute_capability="3.0", architecture="Kepler"))
    assert gpus.labels(pages.GPUS[:2], every) == (("6.1", "Pascal"),)
    assert gpus.labels(every[2:], every) == (
        ("8.0", "Ampere"),
        ("9.0", "Hopper"),
        ("12.0", "Blackwell"),
        ("3.0", "Kepler"),
    )
    twice = (every[2], replace(every[2], compute_capability="8.6"))
    assert gpus.labels(twice, twice) == (("8.0, 8.6", "Ampere"),)
    assert gpus.labels(pages.GPUS[1:3], every) == (("6.1", "Pascal (data-centre)"), ("8.0", "Ampere"))
    assert every[-1].shown == ("compute capability 3.0",)


def test_gpus_that_are_in_arm_hosts_only_are_a_group_of_their_own() -> None:
    known = [gpu for gpu in gpus.known() if gpu.compute_capability == "9.0"]
    assert {gpu.host for gpu in known} == {"", "linux/arm64"}
    for gpu in known:
        assert ("GH200" in gpu.names) is bool(gpu.host) is not ("H200" in gpu.names)
    assert gpus.labels([gpu for gpu in known if gpu.host], gpus.known()) == (
        ("9.0", "Hopper (data-centre in linux/arm64 hosts)"),
    )


@pytest.mark.parametrize(("name", "state"), [("GH200", "refused"), ("GB10", "refused"), ("H200", "limited")])
def test_what_is_in_arm_hosts_only_does_not_run(name: str, state: str) -> None:
    cell = replace(pages.matrix().cells[0], row=replace(pages.matrix().rows[0], tensorflow="2.21.0"))
    cell = replace(cell, cuda_set=replace(cell.cuda_set, cuda="12.9", cudnn="9.10"))
    (gpu,) = (of for of in gpus.known() if name in of.names)
    assert judging.judge(facts.compiled)(cell, gpu, "580").state == state


# ---- the page


class Reader(HTMLParser):
    """Elements, ids and links of a page, and whether every element is closed in its turn."""

    VOID = ("meta", "link", "input", "br")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_same_files_give_the_same_bytes(html: str) -> None:
    assert page.to_html(pages.page()) == html


def test_well_formed_with_every_id_once_and_every_link_at_something(html: str) -> None:
    reader = Reader(html)
    assert reader.open == []
    ids = [attributes["id"] for _, attributes in reader.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [attributes["href"] or "" for tag, attributes in reader.elements if tag == "a"]
    assert links and all(link[0] == "#" and link[1:] in ids for link in links)


def test_nothing_is_fetched(html: str) -> None:
    assert not re.search(r"https?:|//[a-z]|@import|url\(", html)
    assert "default-src 'none'" in html
    assert len(html.encode()) < 1_000_000


def test_nothing_of_the_matrix_is_taken_as_markup(html: str) -> None:
    assert "<others>" not in html
    assert "&lt;others&gt;" in html


def test_a_sentence_cannot_end_the_script() -> None:
    matrix = pages.matrix()

    def judge(*_: object) -> Answer:
        return Answer(state="limited", sentences=("</script><script>alert(1)</script>",))

    html = page.to_html(pages.page(cells=matrix.cells[:1], refused=(), judge=judge))
    assert html.count("</script>") == 2
    assert Reader(html).open == []


def test_all_is_said_without_the_script(html: str) -> None:
    text = re.sub(r"\s+", " ", re.sub(r"<script.*?</script>|<[^>]+>", " ", html, flags=re.DOTALL))
    assert text.count("has no wheel for Python 3.12, only for &lt;others&gt;") == len(pages.RELEASES)
    for said in (
        "Verified on NVIDIA H200, driver 580.159.04, 2026-11-30.",
        "Built; failed on NVIDIA A100, driver 580.159.04, 2026-11-30: nccl.",
        "built, not verified",
        "locked, not built",
        "The digest that is recorded is of another lock.",
        pages.JIT,
        pages.PASCAL,
        "525.60.13 or newer, older than 590.44.01",
        pages.DIGEST[:19],
    ):
        assert said in text, said


def test_data_says_what_the_judge_says(made: Page) -> None:
    told = json.loads(json.dumps(data(made)))
    for entry in made.entries:
        grid, proofs = told["cells"][entry.number]
        for i, gpu in enumerate((None, *made.answers.gpus)):
            for j, driver in enumerate((None, *made.answers.drivers)):
                state, *numbers = told["answers"][told["grids"][grid][i][j]]
                want = pages.judge(entry.cell, gpu, driver)
                sentences, remedies = ([told["sentences"][k] for k in some] for some in numbers)
                assert (state, sentences, remedies) == (want.state, [*want.sentences], [*want.remedies])
        assert [(gpu, state) for gpu, state, _ in proofs] == [
            (gpu, "proven" if proof.verdict == "pass" else "failed") for gpu, proof in entry.proven
        ]


# ---- the table for a README


def test_one_line_for_each_release_with_how_far_its_cells_have_come(made: Page) -> None:
    lines = page.to_markdown(made, "docs/matrix.html").splitlines()
    assert lines[2 : 2 + len(pages.RELEASES)][6:9] == [
        "| **2.16.2** | cu12.2-cudnn8.9 | 3.9, 3.10, 3.11 | debian11, debian12, debian13 "
        "| ○ 9 locked, not built; ✖ 3 refused |",
        "| **2.16.1** | cu12.2-cudnn8.9 | 3.9, 3.10, 3.11 | debian11, debian12, debian13 "
        "| ○ 9 not locked yet; ✖ 3 refused |",
        "| **2.15.1** | cu12.2-cudnn8.9 | 3.9, 3.10, 3.11 | debian11, debian12, debian13 "
        "| ✔ 1 verified on NVIDIA H200; ○ 8 not locked yet; ✖ 3 refused |",
    ]
    assert lines[-1].endswith("(docs/matrix.html).")
    assert "▲ 9 with a limit" in lines[2 + len(pages.RELEASES) - 1]


def test_a_gpus_name_in_a_report_breaks_no_table() -> None:
    from tfenv.page.markdown import _plain

    assert _plain("NVIDIA GeForce RTX 4090 (x/y)") == "NVIDIA GeForce RTX 4090 (x/y)"
    told = _plain("a |\n<img onerror=x>\x1b[31m`&lt;" + "b" * 99)
    assert len(told) == 80
    assert not set(told) & set("|<>=`&;[]\n\x1b")


def test_a_picture_leads_to_the_page(made: Page) -> None:
    assert "(docs/m.png)](docs/m.html)" in page.to_markdown(made, "docs/m.html", "docs/m.png")


def test_what_is_around_the_markers_stays() -> None:
    text = f"before\n{page.BEGIN}\nold\n{page.END}\nafter\n"
    assert page.replace_between(text, "new\n") == f"before\n{page.BEGIN}\n\nnew\n\n{page.END}\nafter\n"


@pytest.mark.parametrize(
    "text", ["", page.BEGIN, f"{page.END}{page.BEGIN}", f"{page.BEGIN}{page.END}{page.BEGIN}{page.END}"]
)
def test_markers_that_are_not_there_once_each(text: str) -> None:
    with pytest.raises(UsageError, match="markers") as caught:
        page.replace_between(text, "new")
    assert page.BEGIN in caught.value.remedy


# ---- the command


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A team's folder with one locked cell."""
    return small.place(tmp_path, monkeypatch).workspace.start


def test_the_page_and_the_table_are_written_and_then_current(
    team: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["page", "--check"]) == EXIT_FAILED
    assert "type: tfenv page" in capsys.readouterr().err
    assert not (team / "docs").exists()
    assert cli.run(["page", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["changed"] == told["files"] == [str(team / "docs/matrix.html"), str(team / "docs/matrix.md")]
    assert "2.15.1" in (team / "docs/matrix.html").read_text("utf-8")
    assert "](matrix.html)" in (team / "docs/matrix.md").read_text("utf-8")
    assert cli.run(["page", "--check"]) == 0
    assert "matrix.html: current" in capsys.readouterr().out


def test_the_table_goes_between_the_markers_of_the_readme(team: Path) -> None:
    (team / "README.md").write_text(f"# Ours\n\n{page.BEGIN}\n{page.END}\n\nthe rest\n")
    (team / "docs").mkdir()
    (team / "docs/matrix.png").touch()
    assert cli.run(["page"]) == 0
    text = (team / "README.md").read_text("utf-8")
    assert text.startswith("# Ours\n") and text.endswith("\n\nthe rest\n")
    assert "| **2.15.1** |" in text and "(docs/matrix.png)](docs/matrix.html)" in text
    assert not (team / "docs/matrix.md").exists()
    (team / "README.md").write_text(text.replace("locked, not built", "verified"))
    assert cli.run(["page", "--check"]) == EXIT_FAILED
    assert cli.run(["page"]) == 0
    assert (team / "README.md").read_text("utf-8") == text


def test_a_readme_with_one_marker_is_left_alone(team: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (team / "README.md").write_text(page.BEGIN)
    assert cli.run(["page"]) == EXIT_USAGE
    assert page.END in capsys.readouterr().err
    assert (team / "README.md").read_text() == page.BEGIN
    assert not (team / "docs").exists()


def test_for_another_folder_the_readme_is_left_alone(team: Path) -> None:
    (team / "README.md").write_text(f"{page.BEGIN}\n{page.END}\n")
    assert cli.run(["page", "--output", "elsewhere"]) == 0
    assert sorted(path.name for path in (team / "elsewhere").iterdir()) == ["matrix.html", "matrix.md"]
    assert not (team / "docs").exists()
    assert (team / "README.md").read_text() == f"{page.BEGIN}\n{page.END}\n"


def test_the_page_says_the_same_of_the_same_files(team: Path) -> None:
    assert cli.run(["page"]) == 0
    first = (team / "docs/matrix.html").read_bytes()
    assert cli.run(["page", "--output", "again"]) == 0
    assert (team / "again/matrix.html").read_bytes() == first
