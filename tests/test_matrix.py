"""matrix.yaml: what is read, what is refused, and what each mistake is answered with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from matrices import TEXT, changed, expand, load, made_up, specs
from tfenv import facts
from tfenv.errors import EXIT_USAGE, MatrixError
from tfenv.matrix import load_matrix
from tfenv.refusals import Combination, refusal
from tfenv.schema import BaseSpec, ExcludeSpec, RowSpec
from tfenv.workspace import find_matrix

ROOT = Path(__file__).resolve().parent.parent
WIDE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


# --- what is read --------------------------------------------------------------------------------


def test_the_committed_matrix_holds_the_cell_of_the_readme() -> None:
    matrix = load_matrix(ROOT / "matrix.yaml")
    assert [cell.name for cell in matrix.cells] == ["2.15.1-cu12.2-cudnn8.9-py3.11-debian12"]
    assert matrix.refused == ()
    row = matrix.cells[0].row
    assert row.requirements == ("tensorflow[and-cuda]==2.15.1", "pip")
    assert [rule.what for rule in row.cuda_set.without] == ["nvidia-nccl-cu12"]
    assert row.exclude_newer == "2024-03-20T00:00:00Z"


def test_every_file_left_out_has_a_reason() -> None:
    for cell in load_matrix(ROOT / "matrix.yaml").cells:
        for rule in (*cell.row.trim, *cell.row.keep, *cell.row.cuda_set.without):
            assert len(rule.why.split()) > 3


def test_times_become_seconds(tmp_path: Path) -> None:
    matrix = load(tmp_path, TEXT)
    assert matrix.bases[0].epoch == 1686355200
    assert matrix.rows[0].cuda_set.epoch == 1710892800


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
    text = TEXT.replace('pythons: ["3.11"]', 'pythons: ["3.9", "3.10"]')
    assert load(tmp_path, text).rows[0].default_python == "3.10"
    text = text.replace("  base: debian12\n", '  base: debian12\n  python: "3.9"\n')
    assert load(tmp_path, text).rows[0].default_python == "3.9"
    text += '    default_python: "3.10"\n'
    assert load(tmp_path, text).rows[0].default_python == "3.10"


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
    everything = {
        f"{row['tensorflow']}-{row['cuda_set']}-py{python}-{base}"
        for row in spec["rows"]
        for python in row["pythons"]
        for base in row["bases"]
    }
    accepted = [cell.name for cell in matrix.cells]
    refused = [name for name, _ in matrix.refused]
    assert sorted(accepted + refused) == sorted(everything)
    assert all(why for _, why in matrix.refused)
    for cell in matrix.cells:
        asked = [r for r in cell.row.requirements if "nvidia-" in r or "[and-cuda]" in r]
        assert cell.base.cuda_from == "wheels"
        assert asked
        assert cell.python in cell.base.pythons
        assert cell.python in made_up(cell.row.tensorflow).pythons
        assert len({r.split("=")[0].split("[")[0] for r in cell.row.requirements}) == len(
            cell.row.requirements
        )
    for row in matrix.rows:
        assert any(
            (cell.python, cell.base.name) == (row.default_python, row.default_base)
            for cell in matrix.cells
            if cell.row.tensorflow == row.tensorflow
        )


def _combination(**changes: Any) -> Combination:
    base = {
        "kind": "debian",
        "suite": "bookworm",
        "pythons": ["3.11"],
        "cuda_from": changes.pop("cuda_from", "wheels"),
        "epoch": "2023-06-10T00:00:00Z",
        "packages": ["apt"],
    }
    row = {
        "tensorflow": "2.15.1",
        "cuda_set": "cu12.2-cudnn8.9",
        "pythons": ["3.11"],
        "bases": ["debian12"],
        "requirements": ["pip"],
    }
    values: dict[str, Any] = {
        "row": RowSpec.model_validate(row),
        "python": "3.11",
        "base_name": "debian12",
        "base": BaseSpec.model_validate(base),
        "requirements": ("tensorflow[and-cuda]==2.15.1",),
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
        ({"python": "3.9"}, "debian12 brings Python 3.11, not 3.9"),
        (
            {"requirements": ("tensorflow==2.15.1",)},
            "no CUDA source: the row asks for no CUDA wheels; add them to its cuda_wheels",
        ),
        ({"cuda_from": "base"}, "no CUDA source: debian12 brings no CUDA; say cuda_from: wheels"),
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


def test_two_cuda_sources_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfenv.refusals.BRINGS_CUDA", {"debian": True})
    why = refusal(_combination(cuda_from="base"))
    assert why is not None
    assert why.startswith("two CUDA sources: debian12 brings CUDA")
    assert refusal(_combination(cuda_from="base", requirements=("tensorflow==2.15.1",))) is None


def test_cuda_wheels_are_not_asked_for_on_a_base_with_cuda(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfenv.refusals.BRINGS_CUDA", {"debian": True})
    matrix = load(tmp_path, changed("cuda_from: wheels", "cuda_from: base"))
    assert matrix.cells[0].row.requirements == ("tensorflow==2.15.1", "pip")


def test_an_unknown_release_is_refused_with_what_to_type(tmp_path: Path) -> None:
    matrix = load(tmp_path, TEXT.replace("2.15.1", "2.98.0"))
    assert matrix.cells == ()
    ((name, why),) = matrix.refused
    assert name == "2.98.0-cu12.2-cudnn8.9-py3.11-debian12"
    assert "2.98.0 was compiled for is not known" in why
    assert "facts/tensorflow.json" in why


# --- mistakes: file, line, column, what was found, what was expected -------------------------------

A, Z = "repository: tfenv\n", "    cuda_wheels: ["
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
    "two documents": (TEXT + "---\na: 1\n", ["24:1: not YAML: "]),
    "deep nesting": ("a: " + "[" * 1500, ["1:1: not YAML: nested too deeply"]),
    "duplicate key": (
        TEXT + "repository: other\n",
        ['24:1: found "repository" again; it stands in line 1 too'],
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
        ['14:11: cuda_sets.cu12.2-cudnn8.9.cuda: found the number 12.2 (quote it to make it text: "12.2");'],
    ),
    "3.10 without quotes": (
        changed('    pythons: ["3.11"]\n    bases', "    pythons: [3.10]\n    bases"),
        ['20:15: rows[0].pythons[0]: found the number 3.10 (quote it to make it text: "3.10"); expected'],
    ),
    "a huge number": (
        changed('    cuda: "12.2"', "    cuda: " + "9" * 9000),
        ["14:11: cuda_sets.cu12.2-cudnn8.9.cuda: found the number 99999"],
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
    "wrong word": (
        changed("cuda_from: wheels", "cuda_from: both"),
        ['9:16: bases.debian12.cuda_from: found "both"; expected base or wheels'],
    ),
    "wrong kind": (
        changed("kind: debian", "kind: fedora"),
        ['6:11: bases.debian12.kind: found "fedora"; expected debian'],
    ),
    "no such day": (
        changed("2023-06-10T", "2023-06-31T"),
        ['10:12: bases.debian12.epoch: found "2023-06-31T00:00:00Z"; expected a real date and time'],
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
        changed("[apt, python3.11]", "[apt, 'x`id`']"),
        ['11:21: bases.debian12.packages[1]: found "x`id`"; expected a Debian package name'],
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
        ['24:33: exclude[0].why: found "because\\nRUN rm -rf /"; expected a reason in plain words'],
    ),
    "a path out of site-packages": (
        TEXT + "    trim: [{what: ../../etc/passwd, why: it is somebody else's file}]\n",
        ['24:19: rows[0].trim[0].what: found "../../etc/passwd"; expected a relative path or glob'],
    ),
    "no reason": (TEXT + 'exclude: [{python: "3.11"}]\n', ["24:11: exclude[0]: found no why; expected one"]),
    "duplicate row": (
        TEXT + TEXT[TEXT.index("  - tensorflow") :],
        ["24:17: rows[1].tensorflow: found TensorFlow 2.15.1 again; expected one row per release"],
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
        ['24:19: rows[0].default_base: found "debian14"; expected one of the row\'s bases: debian12'],
    ),
    "default python not of the row": (
        TEXT + '    default_python: "3.9"\n',
        ['24:21: rows[0].default_python: found "3.9"; expected one of the row\'s pythons: 3.11'],
    ),
    "default python that is refused": (
        changed('    pythons: ["3.11"]\n    bases', '    pythons: ["3.11", "3.9"]\n    bases')
        + '    default_python: "3.9"\n',
        ['24:21: rows[0].default_python: found "3.9", of which no cell is accepted; "3.11" would do'],
    ),
    "unknown cuda set": (
        changed("cuda_set: cu12.2-cudnn8.9\n", "cuda_set: cu12.3-cudnn8.9\n"),
        ['19:15: rows[0].cuda_set: found "cu12.3-cudnn8.9"; expected one of cuda_sets: cu12.2-cudnn8.9'],
    ),
    "misnamed cuda set": (
        TEXT.replace("cu12.2-cudnn8.9", "cu12.2-cudnn8.8"),
        ['13:3: cuda_sets.cu12.2-cudnn8.8: found the name "cu12.2-cudnn8.8"; expected "cu12.2-cudnn8.9"'],
    ),
    "declared is not compiled": (
        TEXT.replace("12.2", "12.1"),
        [
            "19:15: rows[0].cuda_set: found CUDA 12.1 and cuDNN 8.9; expected what TensorFlow 2.15.1 was "
            "compiled for: CUDA 12.2 and cuDNN 8.9.4, so cu12.2-cudnn8.9"
        ],
    ),
    "another cuDNN": (
        TEXT.replace("8.9", "8.6"),
        ["19:15: rows[0].cuda_set: found CUDA 12.2 and cuDNN 8.6; expected what TensorFlow 2.15.1"],
    ),
    "no TensorFlow": (
        changed('["tensorflow==2.15.1", pip]', "[pip]"),
        ['22:19: rows[0].requirements: found no TensorFlow; expected "tensorflow==2.15.1"'],
    ),
    "another TensorFlow": (
        changed('["tensorflow==2.15.1", pip]', '[pip, "tensorflow==2.15.10"]'),
        ['22:25: rows[0].requirements[1]: found "tensorflow==2.15.10"; expected the row\'s own release'],
    ),
    "TensorFlow without a version": (
        changed('"tensorflow[and-cuda]==2.15.1"', '"tensorflow[and-cuda]"'),
        ['23:19: rows[0].cuda_wheels[0]: found "tensorflow[and-cuda]"; expected the row\'s own release'],
    ),
    "an exclude of nothing": (
        TEXT + EXCLUDE % "3.9",
        ["25:5: exclude[0]: found an exclude that matches no combination of the rows"],
    ),
    "an exclude without conditions": (
        TEXT + "exclude:\n  - why: it has never been tested\n",
        ["25:5: exclude[0]: found only a reason; expected tensorflow, python or base too"],
    ),
    "all at once": (
        changed("suite: bookworm", "suite: 7").replace("cuda_from: wheels", "cuda_from: x") + "more: 1\n",
        [
            "7:12: bases.debian12.suite: found the number 7",
            '9:16: bases.debian12.cuda_from: found "x"',
            '24:1: matrix.yaml: found the key "more"',
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
