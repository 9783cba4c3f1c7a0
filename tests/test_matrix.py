"""matrix.yaml: what is read, what is refused, and what each mistake is answered with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from matrices import DIGEST, IMAGE, TEXT, changed, expand, load, made_up, specs, with_ubuntu
from tfenv import facts, refusals
from tfenv.errors import EXIT_USAGE, MatrixError
from tfenv.matrix import load_matrix
from tfenv.refusals import Combination, cuda_source, refusal
from tfenv.schema import CudaSetSpec, DebianSpec, ExcludeSpec, NvidiaSpec, RowSpec
from tfenv.workspace import find_matrix

CELL = "2.15.1-cu12.2-cudnn8.9-py3.11-debian12"
ROOT = Path(__file__).resolve().parent.parent
WIDE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


# --- what is read --------------------------------------------------------------------------------


def test_the_committed_matrix_holds_the_cell_of_the_readme() -> None:
    matrix = load_matrix(ROOT / "matrix.yaml")
    (cell,) = [cell for cell in matrix.cells if cell.name == "2.15.1-cu12.2-cudnn8.9-py3.11-debian12"]
    assert cell.row.requirements == ("tensorflow==2.15.1", "pip")
    assert cell.requirements == (*cell.row.requirements, *cell.cuda_set.wheels)
    assert "nvidia-cudnn-cu12==8.9.4.25" in cell.requirements
    assert not any(wheel.startswith("nvidia-nccl") for wheel in cell.requirements)
    assert cell.row.exclude_newer == "2024-03-20T00:00:00Z"


def test_every_file_left_out_has_a_reason() -> None:
    matrix = load_matrix(ROOT / "matrix.yaml")
    reasons = {rule.why for row in matrix.rows for rule in (*row.trim, *row.keep)}
    reasons |= {rule.why for cell in matrix.cells for rule in cell.cuda_set.without}
    reasons |= {link.why for cell in matrix.cells for link in cell.cuda_set.links}
    reasons |= {row.other_libraries for row in matrix.rows if row.other_libraries}
    assert reasons
    for why in reasons:
        assert len(why.split()) > 3


def test_times_become_seconds(tmp_path: Path) -> None:
    matrix = load(tmp_path, TEXT)
    assert matrix.bases[0].epoch == 1686355200
    assert matrix.cells[0].cuda_set.epoch == 1710892800


def test_exclude_newer_is_the_eighth_day_after_the_upload(tmp_path: Path) -> None:
    assert facts.compiled("2.15.1").released.startswith("2024-03-08T")
    assert load(tmp_path, TEXT).rows[0].exclude_newer == "2024-03-16T00:00:00Z"


def test_the_rows_own_trim_follows_the_common_one(tmp_path: Path) -> None:
    rule = "[{what: %s, why: nothing ever reads these files}]"
    text = changed("rows:\n", f"trim: {rule % 'a/**'}\nrows:\n") + f"    trim: {rule % 'b/*'}\n"
    row = load(tmp_path, text + f"    keep: {rule % 'a/b'}\n").rows[0]
    assert [r.what for r in row.trim] == ["a/**", "b/*"]
    assert [r.what for r in row.keep] == ["a/b"]


def test_the_defaults_are_the_base_asked_for_and_the_highest_python(tmp_path: Path) -> None:
    row = load(tmp_path, TEXT).rows[0]
    assert (row.default_base, row.default_python) == ("debian12", "3.11")
    text = _pythons('provided_pythons: ["3.9", "3.10"]', "3.9", "3.10")
    assert load(tmp_path, text).rows[0].default_python == "3.10"
    text = text.replace("  base: debian12\n", '  base: debian12\n  python: "3.9"\n')
    assert load(tmp_path, text).rows[0].default_python == "3.9"
    text += '    default_python: "3.10"\n'
    assert load(tmp_path, text).rows[0].default_python == "3.10"


def _pythons(base: str, *row: str) -> str:
    """The good matrix with one line more for its base, and other Pythons in its row."""
    text = changed("    suite: bookworm\n", f"    suite: bookworm\n    {base}\n")
    return text.replace('pythons: ["3.11"]\n    bases', f"pythons: {json.dumps(row)}\n    bases")


def test_a_python_of_the_base_itself_comes_before_a_higher_one_of_the_provider(tmp_path: Path) -> None:
    text = _pythons('provided_pythons: ["3.9", "3.12"]', "3.9", "3.11", "3.12")

    def compiled(tensorflow: str) -> Any:
        return made_up(tensorflow, pythons=("3.9", "3.11", "3.12"))

    matrix = load(tmp_path, text, compiled)
    assert [cell.python for cell in matrix.cells] == ["3.9", "3.11", "3.12"]
    assert matrix.rows[0].default_python == "3.11"
    assert [cell.base.brings(cell.python) for cell in matrix.cells] == [False, True, False]
    assert matrix.bases[0].packages_for("3.11") == ("apt", "python3.11")
    assert matrix.bases[0].packages_for("3.12") == ("apt",)


# --- the two kinds of base ----------------------------------------------------------------------------


def test_a_set_serves_both_kinds_of_base(tmp_path: Path) -> None:
    matrix = load(tmp_path, with_ubuntu(f"{IMAGE}@{DIGEST}"))
    debian, ubuntu = matrix.cells
    assert (debian.name, ubuntu.name) == (CELL, CELL.replace("debian12", "ubuntu22.04"))
    assert (debian.cuda_from, debian.image) == ("wheels", "")
    assert debian.requirements == ("tensorflow==2.15.1", "pip", "six", "nvidia-cublas-cu12==12.2.5.6")
    assert (ubuntu.cuda_from, ubuntu.image) == ("base", f"{IMAGE}@{DIGEST}")
    assert ubuntu.requirements == ("tensorflow==2.15.1", "pip", "six", "nvidia-cuda-nvcc-cu12==12.2.140")
    assert (ubuntu.base.glibc, ubuntu.base.suite, ubuntu.base.packages_for("3.11")) == ("2.35", "", ())
    assert ubuntu.base.offers("3.10") and not ubuntu.base.brings("3.11") and not ubuntu.base.offers("3.9")
    assert matrix.refused == ()


def test_an_image_without_cuda_gets_the_wheels(tmp_path: Path) -> None:
    matrix = load(tmp_path, with_ubuntu("nvidia/cuda:12.2.2-base-ubuntu22.04"))
    assert [cell.cuda_from for cell in matrix.cells] == ["wheels", "wheels"]
    assert len({cell.requirements for cell in matrix.cells}) == 1
    assert matrix.cells[1].image == "nvidia/cuda:12.2.2-base-ubuntu22.04"


def test_a_newer_wheel_set_moves_the_date_of_the_image(tmp_path: Path) -> None:
    before = load(tmp_path, TEXT).cells[0]
    assert before.epoch == 1710892800 == before.cuda_set.epoch
    after = load(tmp_path, changed("epoch: 2024-03-20", "epoch: 2023-03-20")).cells[0]
    assert after.epoch == 1710547200, "exclude_newer of the row"


OTHER = """\
  cu12.3-cudnn8.9:
    cuda: "12.3"
    cudnn: "8.9"
    epoch: 2024-03-20T00:00:00Z
    wheels: [nvidia-cublas-cu12==12.3.4.1]
rows:
"""
ON = "    cuda_set_on: {debian12: cu12.3-cudnn8.9}\n"
WHY = "    other_libraries: newer ones of one major version serve\n"


def test_a_base_may_have_other_libraries(tmp_path: Path) -> None:
    text = with_ubuntu().replace("rows:\n", OTHER) + ON + WHY
    debian, ubuntu = load(tmp_path, text).cells
    assert debian.name == "2.15.1-cu12.3-cudnn8.9-py3.11-debian12"
    assert debian.requirements[-1] == "nvidia-cublas-cu12==12.3.4.1"
    assert ubuntu.name == "2.15.1-cu12.2-cudnn8.9-py3.11-ubuntu22.04"
    assert debian.row.other_libraries == "newer ones of one major version serve"


def test_one_source_of_cuda(tmp_path: Path) -> None:
    """None and two are refused, each with what to see to."""
    bare = changed("    wheels: [nvidia-cublas-cu12==12.2.5.6]\n", "")
    ((name, why),) = load(tmp_path, bare).refused
    assert (name, why) == (
        CELL,
        "no CUDA source: debian12 brings no CUDA, and there are no wheels of cu12.2-cudnn8.9",
    )
    text = with_ubuntu().replace(f"      ubuntu22.04: {IMAGE}\n", "").replace("    images:\n", "")
    ((name, why),) = load(tmp_path, text).refused
    assert name.endswith("-ubuntu22.04")
    assert why == "no CUDA source: cu12.2-cudnn8.9 names no nvidia/cuda image for ubuntu22.04"
    two = load(tmp_path, with_ubuntu().replace("requirements: [six]", "requirements: [nvidia-cudnn-cu12]"))
    assert two.cells == ()
    assert {why for _, why in two.refused} == {
        "two CUDA sources: the row asks for nvidia-cudnn-cu12 beside its CUDA set"
    }


def test_a_flavour_without_cuda_needs_wheels(tmp_path: Path) -> None:
    text = with_ubuntu("nvidia/cuda:12.2.2-base-ubuntu22.04", only=True)
    assert len(load(tmp_path, text).cells) == 1
    bare = text.replace("    wheels: [nvidia-cublas-cu12==12.2.5.6]\n", "")
    assert [why for _, why in load(tmp_path, bare).refused] == [
        "no CUDA source: cu12.2-cudnn8.9 names no nvidia/cuda image for ubuntu22.04"
    ]


def test_links_are_second_names_of_the_set(tmp_path: Path) -> None:
    links = (
        "    links: [{name: libcupti.so.11.2, target: libcupti.so.11.8, why: it is opened by this name}]\n"
    )
    cell = load(tmp_path, changed("rows:\n", f"{links}rows:\n")).cells[0]
    assert [(link.name, link.target) for link in cell.cuda_set.links] == [
        ("libcupti.so.11.2", "libcupti.so.11.8")
    ]


def test_what_has_no_wheel_is_taken_as_its_source_archive(tmp_path: Path) -> None:
    rule = "    from_source: [{what: wrapt, why: it has no wheel of that version}]\n"
    cell = load(tmp_path, TEXT + rule).cells[0]
    assert [rule.what for rule in cell.row.from_source] == ["wrapt"]
    assert load(tmp_path, TEXT).cells[0].row.from_source == ()


TWO_DEBIANS = TEXT.replace(
    "cuda_sets:\n",
    TEXT[TEXT.index("  debian12:") : TEXT.index("cuda_sets:")]
    .replace("debian12", "debian11")
    .replace('{"3.11": [python3.11]}', '{"3.9": [python3.9]}')
    + "cuda_sets:\n",
).replace("bases: [debian12]", "bases: [debian12, debian11]")


def test_a_python_is_one_cell_on_the_base_of_a_kind_that_offers_it(tmp_path: Path) -> None:
    text = TWO_DEBIANS.replace('pythons: ["3.11"]', 'pythons: ["3.9", "3.11"]')
    matrix = load(tmp_path, text)
    assert [(cell.python, cell.base.name) for cell in matrix.cells] == [
        ("3.11", "debian12"),
        ("3.9", "debian11"),
    ]
    assert matrix.refused == (), "3.9 on debian12 is no combination: debian11 has it"


def test_a_python_that_no_base_of_a_kind_offers_is_refused_once(tmp_path: Path) -> None:
    text = TWO_DEBIANS.replace('pythons: ["3.11"]', 'pythons: ["3.10", "3.11"]')
    matrix = load(tmp_path, text)
    assert len(matrix.cells) == 1
    assert matrix.refused == (
        ("2.15.1-cu12.2-cudnn8.9-py3.10-debian12", "debian12 offers Python 3.11, not 3.10"),
    )


def test_each_kind_of_base_is_asked_for_itself(tmp_path: Path) -> None:
    text = with_ubuntu().replace('pythons: ["3.11"]', 'pythons: ["3.10", "3.11"]')
    matrix = load(tmp_path, text)
    assert [(cell.python, cell.base.name) for cell in matrix.cells] == [
        ("3.11", "debian12"),
        ("3.10", "ubuntu22.04"),
        ("3.11", "ubuntu22.04"),
    ]
    assert [name for name, _ in matrix.refused] == ["2.15.1-cu12.2-cudnn8.9-py3.10-debian12"]


def test_find_matrix_walks_up_and_the_environment_wins(tmp_path: Path) -> None:
    (tmp_path / "matrix.yaml").write_text(TEXT)
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    assert find_matrix(deep, {}) == tmp_path / "matrix.yaml"
    assert find_matrix(deep, {"TFENV_MATRIX": "/x/y.yaml"}) == Path("/x/y.yaml")


def test_find_matrix_says_what_to_do_where_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(MatrixError) as caught:
        find_matrix(tmp_path, {})
    assert str(tmp_path) in caught.value.message
    assert "TFENV_MATRIX" in caught.value.remedy


# --- accepted or refused, never both and never neither ----------------------------------------------


@WIDE
@given(specs())
def test_every_combination_is_accepted_with_one_cuda_source_or_refused(
    tmp_path: Path, spec: dict[str, Any]
) -> None:
    matrix = expand(tmp_path, spec)
    everything: set[str] = set()
    skipped: set[str] = set()
    for row in spec["rows"]:
        for python in row["pythons"]:
            for kind in ("debian", "nvidia"):
                own = [base for base in row["bases"] if spec["bases"][base]["kind"] == kind]
                having = [base for base in own if _offers(spec["bases"][base], python)]
                for base in own:
                    name = row["cuda_set_on"].get(base, row["cuda_set"])
                    told = f"{row['tensorflow']}-{name}-py{python}-{base}"
                    (everything if base in (having or own[:1]) else skipped).add(told)
    accepted = [cell.name for cell in matrix.cells]
    refused = [name for name, _ in matrix.refused]
    assert sorted(accepted + refused) == sorted(everything)
    assert not skipped & {*accepted, *refused}
    assert all(why for _, why in matrix.refused)
    for cell in matrix.cells:
        assert not any("nvidia-" in requirement for requirement in cell.row.requirements)
        assert bool(cell.image) == (cell.base.kind == "nvidia")
        if cell.cuda_from == "base":
            assert "cudnn" in cell.image and cell.cuda_wheels == cell.cuda_set.tools
        else:
            assert cell.cuda_wheels == cell.cuda_set.wheels != () and "cudnn" not in cell.image
        assert cell.base.offers(cell.python)
        assert cell.python in made_up(cell.row.tensorflow).pythons
    for row in matrix.rows:
        assert any(
            (cell.python, cell.base.name) == (row.default_python, row.default_base)
            for cell in matrix.cells
            if cell.row.tensorflow == row.tensorflow
        )


UBUNTU_22 = NvidiaSpec(kind="nvidia", glibc="2.35", provided_pythons=["3.11"])


def _offers(base: dict[str, Any], python: str) -> bool:
    return python in base.get("pythons", {}) or python in base["provided_pythons"]


def _combination(**changes: Any) -> Combination:
    base = {
        "kind": "debian",
        "suite": "bookworm",
        "pythons": {"3.11": ["python3.11"]},
        "provided_pythons": ["3.10"],
        "epoch": "2023-06-10T00:00:00Z",
        "packages": ["apt"],
    }
    row = {
        "tensorflow": "2.15.1",
        "cuda_set": "cu12.2-cudnn8.9",
        "pythons": ["3.11"],
        "bases": ["debian12"],
        "requirements": changes.pop("requirements", []),
    }
    cuda_set = {"cuda": "12.2", "cudnn": "8.9", "epoch": "2024-03-20T00:00:00Z"}
    values: dict[str, Any] = {
        "row": RowSpec.model_validate(row),
        "python": "3.11",
        "base_name": "debian12",
        "base": DebianSpec.model_validate(base),
        "cuda_set": CudaSetSpec.model_validate(cuda_set),
        "cuda_from": "wheels",
        "facts": made_up("2.15.1"),
    }
    return Combination(**{**values, **changes})


def test_a_good_combination_is_not_refused() -> None:
    assert refusal(_combination()) is None


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"facts": "nothing is known"}, "nothing is known"),
        ({"python": "3.12"}, "TensorFlow 2.15.1 has no wheel for Python 3.12, only for 3.9, 3.10, 3.11"),
        ({"python": "3.9"}, "debian12 offers Python 3.10, 3.11, not 3.9"),
        (
            {"cuda_from": None},
            "no CUDA source: debian12 brings no CUDA, and there are no wheels of cu12.2-cudnn8.9",
        ),
        (
            {"cuda_from": None, "base": UBUNTU_22, "base_name": "ubuntu22.04"},
            "no CUDA source: cu12.2-cudnn8.9 names no nvidia/cuda image for ubuntu22.04",
        ),
        (
            {"requirements": ["six", "tensorflow[and-cuda]==2.15.1"]},
            "two CUDA sources: the row asks for tensorflow[and-cuda]==2.15.1 beside its CUDA set",
        ),
        (
            {"requirements": ["nvidia-nccl-cu12"], "cuda_from": "base"},
            "two CUDA sources: the row asks for nvidia-nccl-cu12 beside its CUDA set",
        ),
        (
            {"exclude": (ExcludeSpec(python="3.11", why="it has never been tested"),)},
            "it has never been tested",
        ),
    ],
)
def test_refusals(changes: dict[str, Any], why: str) -> None:
    assert refusal(_combination(**changes)) == why


@pytest.mark.parametrize("key", ["tensorflow", "python", "base"])
def test_an_exclude_of_something_else_refuses_nothing(key: str) -> None:
    other = {"tensorflow": "2.14.1", "python": "3.9", "base": "debian13"}[key]
    exclude = ExcludeSpec.model_validate({key: other, "why": "it has never been tested"})
    assert refusal(_combination(exclude=(exclude,))) is None


@pytest.mark.parametrize("python", ["3.10", "3.11"])
def test_pythons_of_base_and_provider_are_offered(python: str) -> None:
    assert refusal(_combination(python=python)) is None


@pytest.mark.parametrize(
    ("images", "wheels", "base", "source"),
    [
        ({}, [], "debian12", None),
        ({}, ["nvidia-x==1"], "debian12", "wheels"),
        ({"debian12": "nvidia/cuda:1-cudnn-runtime"}, ["nvidia-x==1"], "debian12", "wheels"),
        ({}, ["nvidia-x==1"], "ubuntu22.04", None),
        ({"ubuntu22.04": "nvidia/cuda:1-cudnn-runtime"}, [], "ubuntu22.04", "base"),
        ({"ubuntu22.04": "nvidia/cuda:1-cudnn8-runtime"}, ["nvidia-x==1"], "ubuntu22.04", "base"),
        ({"ubuntu22.04": "nvidia/cuda:1-base"}, ["nvidia-x==1"], "ubuntu22.04", "wheels"),
        ({"ubuntu22.04": "nvidia/cuda:1-base"}, [], "ubuntu22.04", None),
        ({"ubuntu20.04": "nvidia/cuda:1-cudnn-runtime"}, [], "ubuntu22.04", None),
        ({"ubuntu22.04": "cudnn/cuda:1-base"}, ["nvidia-x==1"], "ubuntu22.04", "wheels"),
    ],
)
def test_where_cuda_comes_from(
    images: dict[str, str], wheels: list[str], base: str, source: str | None
) -> None:
    cuda_set = CudaSetSpec(
        cuda="12.2", cudnn="8.9", epoch="2024-03-20T00:00:00Z", images=images, wheels=wheels
    )
    spec = UBUNTU_22 if base.startswith("ubuntu") else _combination().base
    assert cuda_source(cuda_set, base, spec) == source


def test_an_unknown_release_is_refused_with_what_to_type(tmp_path: Path) -> None:
    matrix = load(tmp_path, TEXT.replace("2.15.1", "2.98.0"))
    assert matrix.cells == ()
    ((name, why),) = matrix.refused
    assert name == "2.98.0-cu12.2-cudnn8.9-py3.11-debian12"
    assert "2.98.0 was compiled for is not known" in why
    assert why.endswith("tfenv facts audit --deep 2.98.0")


# --- mistakes: file, line, column, what was found, what was expected -------------------------------

A = "repository: tfenv\n"
EXCLUDE = 'exclude:\n  - {python: "%s", why: it has never been tested}\n'

MISTAKES: dict[str, tuple[str | bytes, list[str]]] = {
    "empty file": ("", ["1:1: found an empty file; expected the keys repository, defaults, bases"]),
    "only a comment": ("# nothing\n", ["1:1: found an empty file"]),
    "not a mapping": ("- a\n- b\n", ["1:1: matrix.yaml: found a list; expected a mapping"]),
    "only text": ("hello\n", ['1:1: matrix.yaml: found "hello"; expected a mapping']),
    "binary": (b"\x7fELF\x02\x01\x00", ["1:7: found a NUL byte; expected text"]),
    "not UTF-8": (b"repository: tfenv\nx: \xff\xfe\n", ["2:4: found the byte 0xff; expected UTF-8 text"]),
    "control character": ("repository: tf\x07env\n", ["1:1: not YAML: "]),
    "tab": (changed("  base: debian12\n", "\tbase: debian12\n"), ["3:1: not YAML: "]),
    "unclosed quote": (A + 'x: "\n', ["3:1: not YAML: "]),
    "two documents": (TEXT + "---\na: 1\n", ["23:1: not YAML: "]),
    "deep nesting": ("a: " + "[" * 1500, ["1:1: not YAML: nested too deeply"]),
    "duplicate key": (
        TEXT + "repository: other\n",
        ['23:1: found "repository" again; it stands in line 1 too'],
    ),
    "duplicate inner key": (
        changed("    suite: bookworm\n", "    suite: bookworm\n    suite: trixie\n"),
        ['8:5: found "suite" again; it stands in line 7 too'],
    ),
    "alias": (
        changed("    bases: [debian12]\n", "    bases: &b [debian12]\n    keep: *b\n"),
        ["22:11: found an alias; expected the value written out"],
    ),
    "merge key": (A + "<<: {a: b}\n", ["2:1: found a merge key (<<) as a key; expected a word"]),
    "number as key": (A + "12: x\n", ['2:1: found "12" as a key; expected a word']),
    "list as key": (A + "? [a]\n: b\n", ["2:3: found a sequence as a key; expected a word"]),
    "tag": (A + "x: !!python/object:os.system {}\n", ["2:4: found the tag "]),
    "unknown key": (
        changed("    cuda_set: cu12.2-cudnn8.9\n", "    cuda_sett: cu12.2-cudnn8.9\n"),
        [
            "18:5: rows[0]: found no cuda_set; expected one",
            '19:5: rows[0]: found the key "cuda_sett"; expected "cuda_set" (did you mean it?)',
        ],
    ),
    "unknown top key": (
        A + "zzz: 1\n" + TEXT[len(A) :],
        ['2:1: matrix.yaml: found the key "zzz"; expected one of'],
    ),
    "strange key": (
        A + '"a\\nRUN id": 1\n' + TEXT[len(A) :],
        ['2:1: matrix.yaml: found the key "a\\nRUN id"; expected one of'],
    ),
    "missing key": (
        changed("    suite: bookworm\n", ""),
        ["6:5: bases.debian12: found no suite; expected one"],
    ),
    "several missing": (
        A,
        ["1:1: matrix.yaml: found no bases; expected one", "1:1: matrix.yaml: found no cuda_sets"],
    ),
    "a number for text": (
        changed('    cuda: "12.2"', "    cuda: 12.2"),
        ['13:11: cuda_sets.cu12.2-cudnn8.9.cuda: found the number 12.2 (quote it to make it text: "12.2");'],
    ),
    "3.10 without quotes": (
        changed('    pythons: ["3.11"]\n    bases', "    pythons: [3.10]\n    bases"),
        ['20:15: rows[0].pythons[0]: found the number 3.10 (quote it to make it text: "3.10"); expected'],
    ),
    "a huge number": (
        changed('    cuda: "12.2"', "    cuda: " + "9" * 9000),
        ["13:11: cuda_sets.cu12.2-cudnn8.9.cuda: found the number 99999"],
    ),
    "a truth value": (
        changed("suite: bookworm", "suite: true"),
        ["7:12: bases.debian12.suite: found the truth value true (quote it"],
    ),
    "nothing": (
        changed("suite: bookworm", "suite:"),
        ["7:5: bases.debian12.suite: found nothing; expected text"],
    ),
    "text for a list": (
        changed("    bases: [debian12]", "    bases: debian12"),
        ['21:12: rows[0].bases: found "debian12"; expected a list'],
    ),
    "empty list": (
        changed("    bases: [debian12]", "    bases: []"),
        ["21:12: rows[0].bases: found a list; expected at least one entry"],
    ),
    "list for a mapping": (
        changed("  base: debian12", "  - debian12"),
        ["3:3: defaults: found a list; expected a mapping"],
    ),
    "wrong kind": (
        changed("kind: debian", "kind: fedora"),
        ["6:5: bases.debian12: found a mapping; expected the kind debian or nvidia"],
    ),
    "no kind": (
        changed("    kind: debian\n", ""),
        ["6:5: bases.debian12: found a mapping; expected a mapping with a kind: debian or nvidia"],
    ),
    "a kind that is no text": (
        changed("kind: debian", "kind: [debian]"),
        ["6:5: bases.debian12: found a mapping; expected the kind debian or nvidia"],
    ),
    "no mapping for a base": (
        changed("  base: debian12", "  base: ubuntu22.04").replace(
            "cuda_sets:\n", "  ubuntu22.04: x\ncuda_sets:\n"
        ),
        ['11:16: bases.ubuntu22.04: found "x"; expected a mapping'],
    ),
    "a wrong key of a Debian base": (
        changed("    suite: bookworm\n", "    suites: bookworm\n"),
        [
            "6:5: bases.debian12: found no suite; expected one",
            '7:5: bases.debian12: found the key "suites"; expected "suite" (did you mean it?)',
        ],
    ),
    "a key of the other kind": (
        changed("    suite: bookworm\n", '    suite: bookworm\n    glibc: "2.36"\n'),
        ['8:5: bases.debian12: found the key "glibc"; expected one of '],
    ),
    "a wrong key of an image": (
        with_ubuntu().replace("    glibc:", "    glibcc:"),
        [
            "12:5: bases.ubuntu22.04: found no glibc; expected one",
            '14:5: bases.ubuntu22.04: found the key "glibcc"; expected "glibc" (did you mean it?)',
        ],
    ),
    "Debian's key of an image": (
        with_ubuntu().replace('    glibc: "2.35"\n', '    glibc: "2.35"\n    suite: jammy\n'),
        ['15:5: bases.ubuntu22.04: found the key "suite"; expected one of '],
    ),
    "a C library that is none": (
        with_ubuntu().replace('glibc: "2.35"', 'glibc: "3.35"'),
        ['14:12: bases.ubuntu22.04.glibc: found "3.35"; expected a version of the GNU C library such as'],
    ),
    "a provided Python that is none": (
        with_ubuntu().replace('["3.10", "3.11"]', '["3.10", "3.11.2"]'),
        ['13:32: bases.ubuntu22.04.provided_pythons[1]: found "3.11.2"; expected a Python version'],
    ),
    "Pythons of a base as a list": (
        changed('pythons: {"3.11": [python3.11]}', 'pythons: ["3.11"]'),
        ["8:14: bases.debian12.pythons: found a list; expected a mapping"],
    ),
    "a package that is none": (
        changed("[python3.11]}", "[python 3.11]}"),
        ['8:24: bases.debian12.pythons.3.11[0]: found "python 3.11"; expected a Debian package name'],
    ),
    "an image without a tag": (
        with_ubuntu("nvidia/cuda"),
        ['22:20: cuda_sets.cu12.2-cudnn8.9.images.ubuntu22.04: found "nvidia/cuda"; expected an image'],
    ),
    "half a digest": (
        with_ubuntu(f"{IMAGE}@sha256:55"),
        [f'22:20: cuda_sets.cu12.2-cudnn8.9.images.ubuntu22.04: found "{IMAGE}@sha256:55"; expected an'],
    ),
    "an image for a Debian base": (
        with_ubuntu().replace("      ubuntu22.04: ", "      debian12: "),
        ['22:7: cuda_sets.cu12.2-cudnn8.9.images.debian12: found "debian12"; expected one of the nvidia'],
    ),
    "an image for a base that is not there": (
        with_ubuntu().replace("      ubuntu22.04: ", "      ubuntu26.04: "),
        ['22:7: cuda_sets.cu12.2-cudnn8.9.images.ubuntu26.04: found "ubuntu26.04"; expected one of the'],
    ),
    "a wheel without a version": (
        changed("[nvidia-cublas-cu12==12.2.5.6]", "[nvidia-cublas-cu12]"),
        ['16:14: cuda_sets.cu12.2-cudnn8.9.wheels[0]: found "nvidia-cublas-cu12"; expected a pinned wheel'],
    ),
    "a wheel of any newer version": (
        changed("[nvidia-cublas-cu12==12.2.5.6]", "['nvidia-cublas-cu12>=12.2.5.6']"),
        ['16:14: cuda_sets.cu12.2-cudnn8.9.wheels[0]: found "nvidia-cublas-cu12>=12.2.5.6"; expected a'],
    ),
    "a wheel of somebody else": (
        changed("[nvidia-cublas-cu12==12.2.5.6]", "[nvidia-cublas-cu12==12.2.5.6, numpy==1.26.4]"),
        ['16:44: cuda_sets.cu12.2-cudnn8.9.wheels[1]: found "numpy==1.26.4"; expected a pinned wheel'],
    ),
    "an image whose cuDNN is older than the set says": (
        with_ubuntu("nvidia/cuda:12.2.2-cudnn8-runtime-ubuntu22.04")
        .replace("cu12.2-cudnn8.9", "cu12.2-cudnn8.10")
        .replace('cudnn: "8.9"', 'cudnn: "8.10"')
        .replace("    requirements:", "    other_libraries: a newer one serves too\n    requirements:"),
        ["22:20: cuda_sets.cu12.2-cudnn8.10.images.ubuntu22.04: found an image with cuDNN 8.9.6.50"],
    ),
    "an image of another CUDA": (
        with_ubuntu("nvidia/cuda:12.3.2-base-ubuntu22.04"),
        ["22:20: cuda_sets.cu12.2-cudnn8.9.images.ubuntu22.04: found an image with CUDA 12.3.2"],
    ),
    "a cuDNN wheel of another version": (
        changed("[nvidia-cublas-cu12==12.2.5.6]", "[nvidia-cudnn-cu12==8.8.1.3]"),
        ['16:14: cuda_sets.cu12.2-cudnn8.9.wheels[0]: found "nvidia-cudnn-cu12==8.8.1.3"; expected 8.9'],
    ),
    "a CUDA runtime of another version": (
        changed("[nvidia-cublas-cu12==12.2.5.6]", "[nvidia-cuda-runtime-cu12==12.1.105]"),
        ['16:14: cuda_sets.cu12.2-cudnn8.9.wheels[0]: found "nvidia-cuda-runtime-cu12==12.1.105"'],
    ),
    "a tool without a version": (
        with_ubuntu().replace("[nvidia-cuda-nvcc-cu12==12.2.140]", "[nvidia-cuda-nvcc-cu12]"),
        ['23:13: cuda_sets.cu12.2-cudnn8.9.tools[0]: found "nvidia-cuda-nvcc-cu12"; expected a pinned wheel'],
    ),
    "a link of no library": (
        changed(
            "rows:\n", "    links: [{name: cupti, target: libcupti.so.11.8, why: it is opened so}]\nrows:\n"
        ),
        ['17:20: cuda_sets.cu12.2-cudnn8.9.links[0].name: found "cupti"; expected the soname of a library'],
    ),
    "a link without a reason": (
        changed("rows:\n", "    links: [{name: libx.so.1, target: libx.so.2}]\nrows:\n"),
        ["17:13: cuda_sets.cu12.2-cudnn8.9.links[0]: found no why; expected one"],
    ),
    "other libraries on a base that is not the row's": (
        with_ubuntu() + "    cuda_set_on: {debian13: cu12.2-cudnn8.9}\n",
        ['30:19: rows[0].cuda_set_on.debian13: found "debian13"; expected one of the row\'s bases:'],
    ),
    "other libraries that are not there": (
        with_ubuntu() + "    cuda_set_on: {debian12: cu12.3-cudnn8.9}\n",
        ['30:29: rows[0].cuda_set_on.debian12: found "cu12.3-cudnn8.9"; expected one of cuda_sets:'],
    ),
    "libraries that no base uses": (
        changed("rows:\n", OTHER) + ON + WHY,
        ["24:15: rows[0].cuda_set: found cu12.2-cudnn8.9, which no base of the row uses; expected one"],
    ),
    "other libraries without a reason": (
        with_ubuntu().replace("rows:\n", OTHER) + ON,
        [
            "35:29: rows[0].cuda_set_on.debian12: found cu12.3-cudnn8.9; expected cu12.2-cudnn8.9, or the "
            "reason in other_libraries: TensorFlow 2.15.1 was compiled for CUDA 12.2 and runs with CUDA 12.3"
        ],
    ),
    "a reason without other libraries": (
        TEXT + WHY,
        ["23:22: rows[0].other_libraries: found a reason for other libraries; expected none"],
    ),
    "no such day": (
        changed("2023-06-10T", "2023-06-31T"),
        ['9:12: bases.debian12.epoch: found "2023-06-31T00:00:00Z"; expected a real date and time'],
    ),
    "a bad name of a base": (
        changed("  debian12:\n", "  Debian 12:\n").replace("base: debian12", "base: debian13"),
        ['5:3: bases."Debian 12": found "Debian 12"; expected a name such as debian12'],
    ),
    "injection by line break": (
        changed("suite: bookworm", 'suite: "bookworm\\nRUN id"'),
        ['7:12: bases.debian12.suite: found "bookworm\\nRUN id"; expected a code name such as bookworm'],
    ),
    "injection by folding": (
        changed("suite: bookworm", "suite: |\n      bookworm\n      RUN id"),
        ['7:12: bases.debian12.suite: found "bookworm\\nRUN id\\n"; expected a code name'],
    ),
    "injection by backtick": (
        changed("packages: [apt]", "packages: [apt, 'x`id`']"),
        ['10:21: bases.debian12.packages[1]: found "x`id`"; expected a Debian package name'],
    ),
    "injection by substitution": (
        changed("repository: tfenv", "repository: tfenv$(id)"),
        ['1:13: repository: found "tfenv$(id)"; expected an image repository'],
    ),
    "injection by a line separator": (
        changed("cuda_set: cu12.2-cudnn8.9\n", 'cuda_set: "cu12.2-cudnn8.9\\u2028RUN id"\n'),
        ['19:15: rows[0].cuda_set: found "cu12.2-cudnn8.9\\u2028RUN id"; expected a name such as'],
    ),
    "injection in a reason": (
        TEXT + 'exclude: [{python: "3.11", why: "because\\nRUN rm -rf /"}]\n',
        ['23:33: exclude[0].why: found "because\\nRUN rm -rf /"; expected a reason in plain words'],
    ),
    "a path out of site-packages": (
        TEXT + "    trim: [{what: ../../etc/passwd, why: it is somebody else's file}]\n",
        ['23:19: rows[0].trim[0].what: found "../../etc/passwd"; expected a relative path or glob'],
    ),
    "no reason": (TEXT + 'exclude: [{python: "3.11"}]\n', ["23:11: exclude[0]: found no why; expected one"]),
    "a source archive without a reason": (
        TEXT + "    from_source: [{what: wrapt}]\n",
        ["23:19: rows[0].from_source[0]: found no why; expected one"],
    ),
    "a source archive that is none": (
        TEXT + "    from_source: [{what: 'wrapt==1.12.1', why: it has no wheel of that version}]\n",
        ['23:26: rows[0].from_source[0].what: found "wrapt==1.12.1"; expected a normalised distribution'],
    ),
    "duplicate row": (
        TEXT + TEXT[TEXT.index("  - tensorflow") :],
        ["23:17: rows[1].tensorflow: found TensorFlow 2.15.1 again; expected one row per release"],
    ),
    "repeated python": (
        changed('    pythons: ["3.11"]\n    bases', '    pythons: ["3.11", "3.11"]\n    bases'),
        ['20:23: rows[0].pythons[1]: found "3.11" again; expected it once'],
    ),
    "unknown base": (
        changed("    bases: [debian12]", "    bases: [debian12, debian14]"),
        ['21:23: rows[0].bases[1]: found "debian14"; expected one of bases: debian12'],
    ),
    "unknown default base": (
        changed("  base: debian12", "  base: debian14"),
        ['3:9: defaults.base: found "debian14"; expected one of bases: debian12'],
    ),
    "default base not of the row": (
        TEXT + "    default_base: debian14\n",
        ['23:19: rows[0].default_base: found "debian14"; expected one of the row\'s bases: debian12'],
    ),
    "default python not of the row": (
        TEXT + '    default_python: "3.9"\n',
        ['23:21: rows[0].default_python: found "3.9"; expected one of the row\'s pythons: 3.11'],
    ),
    "default python that is refused": (
        changed('    pythons: ["3.11"]\n    bases', '    pythons: ["3.11", "3.9"]\n    bases')
        + '    default_python: "3.9"\n',
        ['23:21: rows[0].default_python: found "3.9", of which no cell is accepted; "3.11" would do'],
    ),
    "unknown cuda set": (
        changed("cuda_set: cu12.2-cudnn8.9\n", "cuda_set: cu12.3-cudnn8.9\n"),
        ['19:15: rows[0].cuda_set: found "cu12.3-cudnn8.9"; expected one of cuda_sets: cu12.2-cudnn8.9'],
    ),
    "misnamed cuda set": (
        TEXT.replace("cu12.2-cudnn8.9", "cu12.2-cudnn8.8"),
        ['12:3: cuda_sets.cu12.2-cudnn8.8: found the name "cu12.2-cudnn8.8"; expected "cu12.2-cudnn8.9"'],
    ),
    "older libraries": (
        TEXT.replace("12.2", "12.1"),
        [
            "19:15: rows[0].cuda_set: found cu12.1-cudnn8.9; expected libraries that serve the release, "
            "best cu12.2-cudnn8.9: TensorFlow 2.15.1 was compiled for CUDA 12.2"
        ],
    ),
    "an older cuDNN": (
        TEXT.replace("8.9", "8.6"),
        ["19:15: rows[0].cuda_set: found cu12.2-cudnn8.6; expected libraries that serve the release, best"],
    ),
    "another major version of CUDA": (
        TEXT.replace("12.2", "11.8"),
        ["19:15: rows[0].cuda_set: found cu11.8-cudnn8.9; expected libraries that serve the release, best"],
    ),
    "another major version of cuDNN": (
        TEXT.replace("8.9", "9.3"),
        ["19:15: rows[0].cuda_set: found cu12.2-cudnn9.3; expected libraries that serve the release, best"],
    ),
    "TensorFlow among the requirements": (
        changed("[six]", '[six, "tensorflow==2.15.1"]'),
        ['22:25: rows[0].requirements[1]: found "tensorflow==2.15.1"; expected none: the row\'s release'],
    ),
    "pip among the requirements": (
        changed("[six]", "[pip]"),
        ['22:20: rows[0].requirements[0]: found "pip"; expected none: the row\'s release and pip are always'],
    ),
    "an exclude of nothing": (
        TEXT + EXCLUDE % "3.9",
        ["24:5: exclude[0]: found an exclude that matches no combination of the rows"],
    ),
    "an exclude without conditions": (
        TEXT + "exclude:\n  - why: it has never been tested\n",
        ["24:5: exclude[0]: found only a reason; expected tensorflow, python or base too"],
    ),
    "all at once": (
        changed("suite: bookworm", "suite: 7").replace("packages: [apt]", "packages: x") + "more: 1\n",
        [
            "7:12: bases.debian12.suite: found the number 7",
            '10:15: bases.debian12.packages: found "x"',
            '23:1: matrix.yaml: found the key "more"',
        ],
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_answered_with_line_and_column(tmp_path: Path, name: str) -> None:
    text, expected = MISTAKES[name]
    with pytest.raises(MatrixError) as caught:
        load(tmp_path, text)
    lines = caught.value.message.splitlines()
    path = tmp_path / "matrix.yaml"
    for want in expected:
        assert any(line.startswith(f"{path}:{want}") for line in lines), caught.value.message
    if name != "several missing":
        assert len(lines) == len(expected)
    assert caught.value.remedy
    assert caught.value.exit_code == EXIT_USAGE


def test_the_good_matrix_of_these_tests_is_good(tmp_path: Path) -> None:
    assert len(load(tmp_path, TEXT).cells) == 1


def test_an_exclude_refuses_its_combination(tmp_path: Path) -> None:
    matrix = load(tmp_path, TEXT + EXCLUDE % "3.11")
    assert matrix.cells == ()
    assert matrix.refused == (("2.15.1-cu12.2-cudnn8.9-py3.11-debian12", "it has never been tested"),)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(MatrixError, match="does not exist") as caught:
        load_matrix(tmp_path / "matrix.yaml")
    assert "TFENV_MATRIX" in caught.value.remedy


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(MatrixError, match="is not a file"):
        load_matrix(tmp_path)


def test_a_huge_file_is_not_parsed(tmp_path: Path) -> None:
    with pytest.raises(MatrixError, match="more than 1000000 bytes"):
        load(tmp_path, "#" * 1_000_001)


def test_a_path_longer_than_any_is_an_error_of_ours() -> None:
    with pytest.raises(MatrixError):
        load_matrix(Path("/" + "x" * 5000))


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    assert load(tmp_path, b"\xef\xbb\xbf" + TEXT.encode()).cells


@WIDE
@given(st.text(max_size=200))
def test_any_text_is_a_matrix_or_one_clear_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(MatrixError) as caught:
        load(tmp_path, text.encode("utf-8", "surrogatepass"))
    assert caught.value.message


@WIDE
@given(st.data())
def test_any_damage_to_a_good_matrix_is_answered(tmp_path: Path, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(TEXT)))
    length = data.draw(st.integers(0, 30))
    text = TEXT[:start] + data.draw(st.text(max_size=10)) + TEXT[start + length :]
    try:
        load(tmp_path, text.encode("utf-8", "surrogatepass"))
    except MatrixError as error:
        assert str(tmp_path) in error.message


@pytest.mark.parametrize(
    ("image", "brings"),
    [
        ("nvidia/cuda:12.2.2-cudnn8-runtime-ubuntu22.04", True),
        (f"mirror.example.com:5000/nvidia/cuda:12.6.3-cudnn-runtime-ubuntu22.04@sha256:{'a' * 64}", True),
        ("mirror.example.com:5000/cudnn/cuda:12.3.2-base-ubuntu22.04", False),
    ],
)
def test_an_image_brings_cuda_by_its_tag_alone(image: str, brings: bool) -> None:
    assert refusals.brings_cuda(image) is brings
