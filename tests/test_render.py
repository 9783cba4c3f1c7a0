"""The generated files: what they are, that they are the same every time, and what cannot get into them."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import matrices
import pytest
import small
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from matrices import load
from pydantic import TypeAdapter, ValidationError
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from tfenv import lockfile, patterns, render, resources, schema
from tfenv.errors import DriftError, UsageError
from tfenv.matrix import load_matrix
from tfenv.model import BaseKind, Cell, Link, Lock, Rule, Wheel

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
    return load(tmp_path, matrices.TEXT).cells[0]


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


def ubuntu(folder: Path, image: str = f"{matrices.IMAGE}@{matrices.DIGEST}") -> Cell:
    return load(folder, matrices.with_ubuntu(image, only=True)).cells[0]


LINKS = (Link(name="libcupti.so.11.2", target="libcupti.so.11.8", why="it is opened by this name"),)


def test_golden_of_an_image_with_cuda(tmp_path: Path, golden: SnapshotAssertion) -> None:
    cell = ubuntu(tmp_path)
    assert render.render(cell, fixed(cell))["Dockerfile"] == golden


def test_golden_of_an_image_without_cuda_and_without_its_digest(
    tmp_path: Path, golden: SnapshotAssertion
) -> None:
    cell = ubuntu(tmp_path, "nvidia/cuda:12.2.2-base-ubuntu22.04")
    assert render.render(cell, fixed(cell, links=LINKS))["Dockerfile"] == golden


def test_golden_of_a_bootstrap_with_a_python_of_the_provider(cell: Cell, golden: SnapshotAssertion) -> None:
    cell = replace(cell, python="3.10")
    assert render.render(cell, fixed(cell))["Dockerfile"] == golden


def test_the_same_bytes_twice(cell: Cell) -> None:
    first = render.render(cell, fixed(cell))
    render.templating.cache_clear()
    assert render.render(cell, fixed(cell)) == first


def test_regenerate_is_committed() -> None:
    """The one test that reads every lock of the repository."""
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


def images_of(dockerfile: str) -> list[str]:
    """What is not a stage of the file itself: all that a registry could be asked for."""
    stages, found = {"scratch"}, []
    for word, rest in instructions(dockerfile):
        assert word in {
            "FROM",
            "ADD",
            "COPY",
            "RUN",
            "ENTRYPOINT",
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
            if base not in stages:
                found.append(base)
            stages.add(name)
        if word == "COPY" and "--from=" in rest:
            assert rest.partition("--from=")[2].partition(" ")[0] in stages
        if word == "ADD":
            assert "://" not in rest
    return found


def test_nothing_is_fetched_from_a_registry_for_a_bootstrap(cell: Cell) -> None:
    for some in (cell, replace(cell, python="3.10")):
        assert images_of(render.render(some, fixed(some))["Dockerfile"]) == []


def test_only_the_locked_image_is_fetched_by_its_digest(tmp_path: Path) -> None:
    cell = ubuntu(tmp_path)
    assert images_of(render.render(cell, fixed(cell))["Dockerfile"]) == [
        f"{matrices.IMAGE}@{matrices.DIGEST}"
    ]


def test_an_image_without_a_digest_says_so_and_how_to_lock_it(tmp_path: Path) -> None:
    cell = ubuntu(tmp_path, matrices.IMAGE)
    text = render.render(cell, fixed(cell))["Dockerfile"]
    assert images_of(text) == [matrices.IMAGE]
    assert "# UNLOCKED: " in text and f"tfenv lock {cell.name} --upgrade base" in text
    assert variables(text, "LABEL")[f"{render.LABEL_PREFIX}.locked"] == "false"
    locked = render.render(ubuntu(tmp_path), fixed(ubuntu(tmp_path)))["Dockerfile"]
    assert "UNLOCKED" not in locked
    assert variables(locked, "LABEL")[f"{render.LABEL_PREFIX}.locked"] == "true"


def test_every_step_of_an_image_runs_without_network(tmp_path: Path) -> None:
    cell = ubuntu(tmp_path)
    text = render.render(cell, fixed(cell))["Dockerfile"]
    runs = [rest for word, rest in instructions(text) if word == "RUN"]
    assert len(runs) == 4 and all(run.startswith("--network=none ") for run in runs)


def test_a_python_of_the_provider_is_unpacked_and_used(cell: Cell) -> None:
    provided = replace(cell, python="3.10")
    text = render.render(provided, fixed(provided))["Dockerfile"]
    assert "from=interpreter,target=/run/interpreter" in text
    # 2025-10-31, the day of the build, is the date of its layer.
    assert "sh /run/tools/python.sh /opt/tfenv/python/bin/python3.10 1761868800" in text
    assert "/opt/tfenv/python/bin/python3.10 -m venv" in text
    own = render.render(cell, fixed(cell))["Dockerfile"]
    assert "interpreter" not in own and "/opt/tfenv/python" not in own


def test_second_names_of_libraries_are_made_where_the_loader_searches(cell: Cell) -> None:
    text = render.render(cell, fixed(cell, links=LINKS))["Dockerfile"]
    assert "sh /run/tools/join.sh /usr/local/cuda libcupti.so.11.2=libcupti.so.11.8 \\\n" in text
    assert "join.sh /usr/local/cuda \\\n" in render.render(cell, fixed(cell))["Dockerfile"]


SOURCE = Wheel(
    name="wrapt",
    version="1.12.1",
    filename="wrapt-1.12.1.tar.gz",
    size=1,
    sha256="a" * 64,
    layer="source",
)


def test_source_archives_are_installed_after_the_wheels_and_only_where_there_are_some(cell: Cell) -> None:
    lock = fixed(cell)
    text = render.render(cell, replace(lock, wheels=(*lock.wheels, SOURCE)))["Dockerfile"]
    first, second = (text.index(f"install-wheels.sh python3.11 {layer} ") for layer in ("python", "source"))
    assert first < second
    assert "install-wheels.sh python3.11 source" not in render.render(cell, lock)["Dockerfile"]


# Cells of one CUDA set share its layer: its stage is the same text.


def stage(dockerfile: str, name: str) -> str:
    """One stage, from its FROM to the next comment that begins another."""
    start = re.search(rf"^FROM \S+ AS {name}$", dockerfile, re.MULTILINE)
    assert start is not None
    return dockerfile[start.start() :].partition("\n# ----")[0]


def test_rows_of_one_set_share_the_cuda_stage_whatever_else_they_leave_out(cell: Cell) -> None:
    more = Rule(what="tensorflow/include/**", why="headers, and nothing compiles here")
    kept = Rule(what="tensorflow/include/tf.h", why="one that somebody wants")
    other = replace(cell, row=replace(cell.row, tensorflow="2.15.0.post1"))
    one = render.render(cell, fixed(cell))["Dockerfile"]
    two = render.render(
        other,
        fixed(other, trim=(*small.TRIM, more), keep=(*small.KEEP, kept), epoch=1900000000),
    )["Dockerfile"]
    assert stage(one, "cuda") == stage(two, "cuda")
    assert stage(one, "venv") != stage(two, "venv")
    assert more.what in stage(two, "venv") and kept.what in stage(two, "venv")
    assert small.TRIM[0].what in stage(one, "cuda") and small.TRIM[0].what not in stage(one, "venv")


@pytest.mark.parametrize(
    "change",
    [
        {"cuda_epoch": 1},
        {"trim": (Rule(what="nvidia/*/bin/**", why="programs that nobody runs"),)},
        {"keep": (Rule(what="nvidia/*/include/cudnn.h", why="one that somebody wants"),)},
    ],
)
def test_another_set_has_another_cuda_stage(cell: Cell, change: dict[str, Any]) -> None:
    one, two = (render.render(cell, fixed(cell, **more))["Dockerfile"] for more in ({}, change))
    assert stage(one, "cuda") != stage(two, "cuda")


def test_rows_of_the_repository_share_the_stage_of_their_set() -> None:
    """All rows leave the same of NVIDIA's files out, else each would have a CUDA layer of its own."""
    stages: dict[tuple[str, str, str, str], set[str]] = {}
    for cell in load_matrix(ROOT / "matrix.yaml").cells:
        lock = fixed(cell, trim=cell.row.trim, keep=cell.row.keep)
        key = (cell.cuda_set.name, cell.cuda_from, cell.base.name, cell.python)
        text = stage(render.render(cell, lock)["Dockerfile"], "cuda")
        stages.setdefault(key, set()).add(text)
    assert {key: len(texts) for key, texts in stages.items() if len(texts) > 1} == {}


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
GLOBS = admitted(Annotated[str, schema._text(patterns.GLOB)], words("aZ0._-+*?/") | words(ODD))
GLOBS = GLOBS | admitted(Annotated[str, schema._text(patterns.GLOB)], words("aZ0.*/").map("nvidia/".__add__))
NAMES = admitted(Annotated[str, schema._text(patterns.WHEEL)], words("az0-"))
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
def plain_cell(kind: str) -> Cell:
    """A cell of the repository on a Debian bootstrap, or on an image whose digest is known."""
    names = {
        "debian": "2.15.1-cu12.2-cudnn8.9-py3.11-debian12",
        "nvidia": "2.15.1-cu12.2-cudnn8.9-py3.11-ubuntu22.04",
    }
    return next(c for c in load_matrix(ROOT / "matrix.yaml").cells if c.name == names[kind])


def operators(words: str) -> list[str]:
    """What the shell takes for more than words."""
    return [
        word for word in shlex.shlex(words, posix=True, punctuation_chars=True) if set(word) <= set("|;&<>()")
    ]


@settings(suppress_health_check=list(HealthCheck), deadline=None, max_examples=50)
@given(
    kind=st.sampled_from(["debian", "nvidia"]),
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
    kind: str,
    trim: tuple[Rule, ...],
    keep: tuple[Rule, ...],
    without: tuple[Rule, ...],
    release: str,
    python: str,
    base: str,
    cuda: str,
    cudnn: str,
) -> None:
    plain = plain_cell(kind)
    cuda_set = replace(plain.cuda_set, cuda=cuda, cudnn=cudnn)
    row = replace(plain.row, tensorflow=release)
    images = tuple((base, image) for _, image in plain.cuda_set.images)
    cell = replace(
        plain,
        row=row,
        python=python,
        base=replace(plain.base, name=base),
        cuda_set=replace(cuda_set, images=images),
    )
    same = fixed(plain)
    lock = replace(fixed(cell, trim=trim, keep=keep, without=without), interpreter=same.interpreter)
    text = render.render(cell, lock)["Dockerfile"]
    expected = render.render(plain, same)["Dockerfile"]
    assert text.splitlines() == text.split("\n")[:-1], "something else than a line break ends a line"
    assert [word for word, _ in instructions(text)] == [word for word, _ in instructions(expected)]
    assert images_of(text) == images_of(expected)
    labels = render.image_labels(cell, lock, lockfile.lock_hash(lock), locked=True)
    assert variables(text, "LABEL") == labels
    for (word, rest), (_, before) in zip(instructions(text), instructions(expected), strict=True):
        if word == "RUN":
            assert operators(rest) == operators(before)
            if "trim.py" in rest:
                of_cuda = "/layer/opt/tfenv/cuda" in rest
                own, kept = (
                    [rule.what for rule in rules if rule.what.startswith("nvidia/") == of_cuda]
                    for rules in (trim, keep)
                )
                assert _after_trim(shlex.split(rest)) == own + (["--keep", *kept] if kept else [])


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
    "a changed part of all templates": lambda root: _append(root / "parts.j2"),
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


@pytest.mark.parametrize("kind", ["debian", "nvidia"])
@pytest.mark.parametrize("change", TEMPLATES)
def test_the_template_version_follows(
    templates: Path, fresh_templates: None, change: str, kind: BaseKind
) -> None:
    before = render.template_version(kind)
    TEMPLATES[change](templates)
    assert render.template_version(kind) != before


@pytest.mark.parametrize(("kind", "other"), [("debian", "nvidia"), ("nvidia", "debian")])
def test_each_kind_of_base_has_a_template_version_of_its_own(
    templates: Path, fresh_templates: None, kind: BaseKind, other: BaseKind
) -> None:
    before, same = render.template_version(kind), render.template_version(other)
    assert before != same
    _append(templates / f"Dockerfile.{kind}.j2")
    assert render.template_version(kind) != before
    assert render.template_version(other) == same, "its images do not change"


@pytest.mark.parametrize(
    ("what", "value", "kinds"),
    [
        ("tfenv.rootfs.recipe_version", lambda: "another", ["debian"]),
        ("tfenv.buildx.EXPORT", ("compression=zstd", "compression-level=8"), ["debian", "nvidia"]),
    ],
)
def test_the_template_version_follows_what_else_writes_bytes(
    monkeypatch: pytest.MonkeyPatch, fresh_templates: None, what: str, value: object, kinds: list[str]
) -> None:
    def versions() -> dict[str, str]:
        return {"debian": render.template_version("debian"), "nvidia": render.template_version("nvidia")}

    before = versions()
    with monkeypatch.context() as patch:
        patch.setattr(what, value)
        assert [kind for kind, version in versions().items() if version != before[kind]] == kinds
    assert versions() == before


@pytest.mark.parametrize("kind", ["debian", "nvidia"])
def test_the_template_version_is_that_of_the_contents_alone(
    templates: Path, fresh_templates: None, kind: BaseKind
) -> None:
    before = render.template_version(kind)
    (templates / "tools" / "__pycache__").mkdir(exist_ok=True)
    (templates / "tools" / "__pycache__" / "trim.pyc").write_bytes(b"compiled")
    (templates / "tools" / "trim.py").chmod(0o700)
    (templates / "tools" / "trim.py").touch()
    assert render.template_version(kind) == before


def test_a_program_reads_the_templates_once(templates: Path) -> None:
    """There are more than a hundred cells, and none of the files changes while a command runs."""
    render.template_version.cache_clear()
    try:
        before = render.template_version("debian")
        _append(templates / "parts.j2")
        assert render.template_version("debian") == before
    finally:
        render.template_version.cache_clear()
