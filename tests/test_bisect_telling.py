"""How a result is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bisect_worlds import pinned
from tfenv.bisect import telling
from tfenv.bisect.model import Change, Endpoint, Pin
from tfenv.bisect.question import Question
from tfenv.bisect.result import Counts, Culprit, Result, steps

QUESTION = Question(
    good=Endpoint(label="A"),
    bad=Endpoint(label="B"),
    command=("it",),
    python="3.11",
    interpreter="python3",
    platform="x86_64-manylinux_2_36",
    folder="/here",
)
NUMPY = Change(
    name="numpy",
    before=Pin(name="numpy", version="1.26.4", hashes=("a" * 64,)),
    after=Pin(name="numpy", version="2.0.0"),
)
CULPRIT = Culprit(
    changes=(NUMPY,),
    after="2024-06-09T00:00:00Z",
    since="2024-06-16T00:00:00Z",
    keep_out=(("numpy<2",),),
    why="exit code 1: ImportError: no",
    log="logs/001.txt",
)
RESULT = Result(
    culprits=(CULPRIT,),
    last_good=pinned(numpy="1.26.4"),
    first_bad=pinned(numpy="2.0.0"),
    lines=("numpy<2",),
    cured=pinned(numpy="1.26.4"),
    cure="good",
    counts=Counts(candidates=497, bound=9, asked=10, tests=12, builds=12, seconds=61.0),
)


def told(result: Result, folder: Path, question: Question = QUESTION) -> str:
    return telling.text(result, question, telling.write_files(result, folder), folder)


def test_the_culprit_comes_first_and_what_to_paste(tmp_path: Path) -> None:
    text = told(RESULT, tmp_path)
    assert text.startswith("the culprit: numpy 1.26.4 -> 2.0.0\n  good until 2024-06-09 00:00:00, bad from")
    assert "\n    numpy<2\n" in text
    assert "with it the bad end passes (tested)" in text
    assert f"last good lock: {tmp_path}/last-good.txt" in text
    assert "candidates: 497, asked: 10 (halving: 9), built: 12, skipped: 0, in 1 min 01 s" in text
    assert (tmp_path / "cured.txt").read_text().endswith("numpy==1.26.4\n")


def test_where_to_paste_it(tmp_path: Path) -> None:
    cell = told(RESULT, tmp_path, replace(QUESTION, asked_by=("cell", "2.15-cu12")))
    assert "matrix.yaml" in cell and "tfenv lock 2.15-cu12 --upgrade wheels" in cell
    assert "paste it into r.in;" in told(RESULT, tmp_path, replace(QUESTION, asked_by=("file", "r.in")))
    assert "pip's -c" in told(RESULT, tmp_path)


def test_several_changes(tmp_path: Path) -> None:
    two = (NUMPY, replace(NUMPY, name="scipy"))
    both = replace(CULPRIT, changes=two, keep_out=(("numpy<2",), ("scipy<2",)))
    text = told(replace(RESULT, culprits=(both,)), tmp_path)
    assert "these together" in text and "or, instead, with one of: scipy<2" in text
    unsure = replace(both, exact=False)
    result = replace(RESULT, culprits=(unsure,))
    assert not result.exact
    assert "among these; what lies between could not be judged" in told(result, tmp_path)
    more = replace(RESULT, culprits=(CULPRIT, replace(CULPRIT, along=two)), lines=("numpy<2", "b<1"))
    text = told(more, tmp_path)
    assert "then also: numpy" in text and "with what that needs: numpy" in text
    assert "tested: so it passes" in text


def test_a_line_that_does_not_do_says_so(tmp_path: Path) -> None:
    assert "that is not enough" in told(replace(RESULT, cure="bad"), tmp_path)
    assert "could not be judged" in told(replace(RESULT, cure="skip"), tmp_path)
    untested = told(replace(RESULT, cure="", cured=None), tmp_path / "new")
    assert "; not tested" in untested and "newest" not in untested
    assert not (tmp_path / "new" / "cured.txt").exists()
    assert "no line of a requirements file" in told(replace(RESULT, lines=()), tmp_path)


def test_as_data(tmp_path: Path) -> None:
    data = telling.plain(RESULT, QUESTION, tmp_path)
    assert data["culprits"][0]["changes"] == [{"name": "numpy", "before": "1.26.4", "after": "2.0.0"}]
    assert data["culprits"][0]["keep_out"] == [["numpy<2"]]
    assert data["constraints_tested"] == "good"
    assert data["last_good"] == ["numpy==1.26.4"]
    assert data["counts"]["builds"] == 12


def test_steps_of_halving() -> None:
    assert [steps(n) for n in (0, 1, 2, 3, 4, 5, 497, 512, 513)] == [0, 0, 1, 2, 2, 3, 9, 9, 10]
