"""The generated files: what they are, that they are the same every time, and what cannot get into them."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import pytest
import small
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from matrices import load
from pydantic import TypeAdapter, ValidationError
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from tfenv import lockfile, render, resources, schema
from tfenv.errors import DriftError, UsageError
from tfenv.matrix import load_matrix
from tfenv.model import Cell, Lock, Rule

ROOT = Path(__file__).resolve().parent.parent


class Golden(SingleFileSnapshotExtension):
    """One file per snapshot, as it would be in images/."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"


@pytest.fixture
def golden(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(Golden)


@pytest.fixture
def cell(tmp_path: Path) -> Cell:
    return load(tmp_path, small.matrices.TEXT).cells[0]


def fixed(cell: Cell, **changes: Any) -> Lock:
    """A lock that does not follow the templates, so that its hash stays."""
    left_out = Rule(what="nvidia-nccl-cu12", why="NCCL is linked into TensorFlow, größer als nötig")
    return small.lock(
        cell,
        **{"template": "c" * 64, "trim": small.TRIM, "keep": small.KEEP, "without": (left_out,), **changes},
    )


@pytest.mark.parametrize("name", ["Dockerfile", "requirements.lock"])
def test_golden(cell: Cell, golden: SnapshotAssertion, name: str) -> None:
    assert render.render(cell, fixed(cell))[name] == golden


def test_golden_of_an_image_that_is_not_the_locked_one(cell: Cell, golden: SnapshotAssertion) -> None:
    bare = fixed(cell, trim=(), keep=(), without=())
    assert render.render(cell, bare, locked=False)["Dockerfile"] == golden


def test_the_same_bytes_twice(cell: Cell) -> None:
    first = render.render(cell, fixed(cell))
    render._environment.cache_clear()
    assert render.render(cell, fixed(cell)) == first


def test_regenerate_is_committed() -> None:
    cells = load_matrix(ROOT / "matrix.yaml").cells
    assert {path.name for path in (ROOT / "images").iterdir()} <= {cell.name for cell in cells}
    for cell in cells:
        folder = ROOT / "images" / cell.name
        lock = lockfile.read_lock(folder / lockfile.LOCK_NAME)
        render.require_current_template(cell, lock)
        assert render.drift(folder, render.render(cell, lock)) == ()


# What is in a Dockerfile, as the builder reads it.


def instructions(dockerfile: str) -> list[tuple[str, str]]:
    """Its instructions with their arguments: comments dropped, then continued lines joined."""
    lines = [line for line in dockerfile.split("\n") if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    found = (line.strip().partition(" ") for line in joined.split("\n") if line.strip())
    return [(word, rest) for word, _, rest in found]


def variables(dockerfile: str, instruction: str) -> dict[str, str]:
    """What the last ENV or LABEL sets."""
    text = [rest for word, rest in instructions(dockerfile) if word == instruction][-1]
    pairs = (word.partition("=") for word in shlex.split(text))
    return {name: value for name, _, value in pairs}


def test_every_step_runs_without_network(cell: Cell) -> None:
    runs = [
        rest for word, rest in instructions(render.render(cell, fixed(cell))["Dockerfile"]) if word == "RUN"
    ]
    assert runs
    assert all(run.startswith("--network=none ") for run in runs)


def test_nothing_is_fetched_from_a_registry(cell: Cell) -> None:
    stages = {"scratch"}
    for word, rest in instructions(render.render(cell, fixed(cell))["Dockerfile"]):
        assert word in {
            "FROM",
            "ADD",
            "COPY",
            "RUN",
            "ENV",
            "ARG",
            "LABEL",
            "VOLUME",
            "WORKDIR",
            "USER",
            "CMD",
        }
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            assert base in stages
            stages.add(name)
        if word == "ADD":
            assert "://" not in rest


def test_the_image_is_not_run_as_root(cell: Cell) -> None:
    dockerfile = render.render(cell, fixed(cell))["Dockerfile"]
    assert [rest for word, rest in instructions(dockerfile) if word == "USER"][-1] == "1000:1000"


def test_the_labels_tell_the_stack_and_the_lock(cell: Cell) -> None:
    lock = fixed(cell)
    labels = variables(render.render(cell, lock)["Dockerfile"], "LABEL")
    assert labels["org.opencontainers.image.version"] == "2.15.1"
    created = datetime.fromtimestamp(lock.epoch, timezone.utc)
    assert labels["org.opencontainers.image.created"] == f"{created:%Y-%m-%dT%H:%M:%SZ}"
    stack = {
        name: labels[f"{render.LABEL_PREFIX}.{name}"] for name in ("tensorflow", "cuda", "cudnn", "python")
    }
    assert stack == {"tensorflow": "2.15.1", "cuda": "12.2", "cudnn": "8.9", "python": "3.11"}
    assert labels["org.opencontainers.image.title"] == cell.name, "whatever the matrix calls its repository"
    assert labels[f"{render.LABEL_PREFIX}.lock"] == f"sha256:{lockfile.lock_hash(lock)}"


@pytest.mark.parametrize("locked", [True, False])
def test_an_image_says_whether_it_is_the_locked_one(cell: Cell, locked: bool) -> None:
    labels = variables(render.render(cell, fixed(cell), locked=locked)["Dockerfile"], "LABEL")
    assert labels[f"{render.LABEL_PREFIX}.locked"] == str(locked).lower()


def test_the_environment_is_right_for_the_row(cell: Cell) -> None:
    lock = fixed(cell, require_cuda="cuda>=12.3 brand=tesla,driver>=525,driver<526")
    env = variables(render.render(cell, lock)["Dockerfile"], "ENV")
    assert env["NVIDIA_REQUIRE_CUDA"] == lock.require_cuda, "as it was locked, whatever the facts say today"
    assert env["NVIDIA_VISIBLE_DEVICES"] == "all"
    assert set(env["NVIDIA_DRIVER_CAPABILITIES"].split(",")) >= {"compute", "utility"}
    assert env["CUDA_CACHE_PATH"].startswith(env["HOME"])
    assert env["PATH"].startswith("/opt/tfenv/venv/bin:")


# No value that the schema accepts can be more than a value.


def admitted(kind: Any, values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """The values that the schema accepts."""
    adapter: TypeAdapter[str] = TypeAdapter(kind)

    def accepts(value: str) -> bool:
        try:
            return adapter.validate_python(value) == value
        except ValidationError:
            return False

    return values.filter(accepts)


def words(alphabet: str, size: int = 12) -> st.SearchStrategy[str]:
    return st.text(alphabet, min_size=1, max_size=size)


ODD = "aZ0.-_+*?/ '\";:&|<>(){}[]#$`\\=,~!%^@\n"
GLOBS = admitted(Annotated[str, schema._text(schema._GLOB)], words("aZ0._-+*?/") | words(ODD))
NAMES = admitted(Annotated[str, schema._text(schema._WHEEL)], words("az0-"))
REASONS = admitted(schema.Reason, st.text(min_size=10, max_size=60) | st.text(ODD, min_size=10, max_size=40))
RULES = st.lists(st.builds(lambda what, why: Rule(what=what, why=why), GLOBS, REASONS), max_size=3).map(tuple)
WHEELS = st.lists(st.builds(lambda what, why: Rule(what=what, why=why), NAMES, REASONS), max_size=3).map(
    tuple
)
NUMBERS = st.integers(0, 9999)
RELEASES = admitted(
    schema.Release,
    st.builds(
        lambda n, end: f"{n}.{n}.{n}{end}", NUMBERS, st.sampled_from(["", "rc0", ".post1", "\n", " ", ";"])
    ),
)
PYTHONS = admitted(schema.Python, st.integers(0, 99).map(lambda minor: f"3.{minor}"))
BASES = admitted(schema.BaseName, st.builds(lambda a, b: a + b, words("azdebin", 20), words("0.9", 10)))
VERSIONS = admitted(schema.Version, st.lists(NUMBERS.map(str), min_size=2, max_size=4).map(".".join))


@cache
def plain_cell() -> Cell:
    return load_matrix(ROOT / "matrix.yaml").cells[0]


def operators(words: str) -> list[str]:
    """What the shell takes for more than words."""
    return [
        word for word in shlex.shlex(words, posix=True, punctuation_chars=True) if set(word) <= set("|;&<>()")
    ]


@settings(suppress_health_check=list(HealthCheck), deadline=None, max_examples=50)
@given(
    trim=RULES,
    keep=RULES,
    without=WHEELS,
    release=RELEASES,
    python=PYTHONS,
    base=BASES,
    cuda=VERSIONS,
    cudnn=VERSIONS,
)
def test_no_accepted_value_becomes_an_instruction_or_a_command(
    trim: tuple[Rule, ...],
    keep: tuple[Rule, ...],
    without: tuple[Rule, ...],
    release: str,
    python: str,
    base: str,
    cuda: str,
    cudnn: str,
) -> None:
    plain = plain_cell()
    cuda_set = replace(plain.row.cuda_set, cuda=cuda, cudnn=cudnn)
    row = replace(plain.row, tensorflow=release, cuda_set=cuda_set)
    cell = Cell(row=row, python=python, base=replace(plain.base, name=base))
    lock = fixed(cell, trim=trim, keep=keep, without=without)
    text = render.render(cell, lock)["Dockerfile"]
    expected = render.render(plain, fixed(plain))["Dockerfile"]
    assert text.splitlines() == text.split("\n")[:-1], "something else than a line break ends a line"
    assert [word for word, _ in instructions(text)] == [word for word, _ in instructions(expected)]
    assert variables(text, "LABEL") == render.image_labels(cell, lock, lockfile.lock_hash(lock), locked=True)
    wanted = [rule.what for rule in trim] + (["--keep", *(rule.what for rule in keep)] if keep else [])
    for (word, rest), (_, before) in zip(instructions(text), instructions(expected), strict=True):
        if word == "RUN":
            assert operators(rest) == operators(before)
            if "trim.py" in rest:
                assert _after_trim(shlex.split(rest)) == wanted


def _after_trim(words: list[str]) -> list[str]:
    """The globs given to trim.py."""
    start = next(n for n, word in enumerate(words) if word.endswith("/trim.py")) + 2
    rest = words[start:]
    return rest[: rest.index("&&")] if "&&" in rest else rest


# Drift.


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a").write_text("one\n")
    (tmp_path / "b").write_bytes("größer\n".encode())
    return tmp_path


def test_files_that_are_current_do_not_drift(folder: Path) -> None:
    assert render.drift(folder, {"a": "one\n", "b": "größer\n"}) == ()
    render.raise_drift({"cell": ()})


def _append(path: Path) -> None:
    path.write_text(path.read_text() + " ")


CHANGES: dict[str, Callable[[Path], object]] = {
    "changed": _append,
    "missing": lambda path: path.unlink(),
    "emptied": lambda path: path.write_text(""),
    "other line ends": lambda path: path.write_bytes(b"one\r\n"),
    "not UTF-8": lambda path: path.write_bytes(b"\xff"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_kind_of_drift_is_found_and_named(folder: Path, change: str) -> None:
    CHANGES[change](folder / "a")
    drifted = render.drift(folder, {"a": "one\n", "b": "größer\n"})
    assert drifted == ("a",)
    with pytest.raises(DriftError, match="images/cell/a") as caught:
        render.raise_drift({"cell": drifted})
    assert "tfenv render" in caught.value.remedy


def test_a_folder_that_is_missing_drifts_whole(tmp_path: Path) -> None:
    assert render.drift(tmp_path / "none", {"a": "", "b": ""}) == ("a", "b")


def test_a_lock_of_other_templates_is_refused(cell: Cell) -> None:
    render.require_current_template(cell, small.lock(cell))
    with pytest.raises(UsageError) as caught:
        render.require_current_template(cell, fixed(cell))
    assert f"tfenv lock {cell.name}" in caught.value.remedy


TEMPLATES: dict[str, Callable[[Path], object]] = {
    "a changed template": lambda root: _append(root / "Dockerfile.debian.j2"),
    "a changed tool": lambda root: _append(root / "tools" / "trim.py"),
    "a new file": lambda root: (root / "tools" / "new.sh").write_text(""),
    "a missing file": lambda root: (root / "tools" / "trim.py").unlink(),
    "another name": lambda root: (root / "tools" / "trim.py").rename(root / "tools" / "cut.py"),
}


@pytest.fixture
def templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(resources.templates_dir(), tmp_path / "templates")
    monkeypatch.setattr(resources, "templates_dir", lambda: tmp_path / "templates")
    return tmp_path / "templates"


@pytest.mark.parametrize("change", TEMPLATES)
def test_the_template_version_follows(templates: Path, change: str) -> None:
    before = render.template_version()
    TEMPLATES[change](templates)
    assert render.template_version() != before


@pytest.mark.parametrize(
    ("what", "value"),
    [
        ("tfenv.rootfs.recipe_version", lambda: "another"),
        ("tfenv.buildx.EXPORT", ("compression=zstd", "compression-level=8")),
    ],
)
def test_the_template_version_follows_what_else_writes_bytes(
    monkeypatch: pytest.MonkeyPatch, what: str, value: object
) -> None:
    before = render.template_version()
    with monkeypatch.context() as patch:
        patch.setattr(what, value)
        assert render.template_version() != before
    assert render.template_version() == before


def test_the_template_version_is_that_of_the_contents_alone(templates: Path) -> None:
    before = render.template_version()
    (templates / "tools" / "__pycache__").mkdir(exist_ok=True)
    (templates / "tools" / "__pycache__" / "trim.pyc").write_bytes(b"compiled")
    (templates / "tools" / "trim.py").chmod(0o700)
    (templates / "tools" / "trim.py").touch()
    assert render.template_version() == before
