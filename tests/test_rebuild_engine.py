"""A snapshot rebuilt by the real engine, ten times in ten ways, with the network cut."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tiny
from snapshots import SNAPSHOT, bundle
from tfenv import build, buildx, oci
from tfenv.engine import Engine, run_command
from tfenv.snapshot import archive, base, tree
from tfenv.snapshot.archive import write
from tfenv.snapshot.format import Context, Expected, load
from tfenv.snapshot.layout import Layout
from tfenv.snapshot.parts import Item

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench"))

from varied import WAYS, Way, command, possible

pytestmark = pytest.mark.engine

DOCKERFILE = """\
FROM scratch AS made
ADD essential.tar /
RUN --network=none --mount=type=bind,from=wheels,target=/run/wheels ["/say.bin", "the", "environment"]
FROM scratch
ADD essential.tar /
COPY --from=made /say.bin /again
ENV A=1
LABEL test="tfenv"
"""
EPOCH = 1_700_000_000


def essential() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as files:
        for name, content, mode in (("say.bin", tiny.program(), 0o755), ("say", b"hello\n", 0o644)):
            info = tarfile.TarInfo(name)
            info.size, info.mode, info.mtime = len(content), mode, 1
            files.addfile(info, io.BytesIO(content))
    return out.getvalue()


@pytest.fixture(scope="module")
def engine() -> Engine:
    return build.ready_engine(os.environ)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, engine: Engine) -> Path:
    """A snapshot of what the engine builds of a small Dockerfile."""
    return make(tmp_path_factory.mktemp("snapshot"), engine, DOCKERFILE)


def make(root: Path, engine: Engine, dockerfile: str, **changes: Any) -> Path:
    """Build once, and archive inputs and result; ``changes`` are of the document."""
    files = {"context/Dockerfile": dockerfile.encode(), "context/essential.tar": essential()}
    for name, content in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(content)
    (root / "wheels").mkdir()
    bases = {c.name: f"oci-layout://{root / c.folder}@{c.digest}" for c in changes.get("contexts", ())}
    argv = buildx.build_argv(
        engine,
        context=root / "context",
        dockerfile=root / "context" / "Dockerfile",
        named_contexts={"wheels": root / "wheels", **bases},
        epoch=EPOCH,
        output=root / "image.tar",
        metadata=root / "metadata.json",
        no_cache=True,
    )
    buildx.run_build(argv, os.environ, root / "log", metadata=root / "metadata.json")
    image = oci.describe(root / "image.tar")
    found = tree.read_tree(root / "image.tar")
    expected = Expected(
        tree=found.digest,
        diff_ids=image.diff_ids,
        config=image.config_digest,
        manifest=image.manifest_digest,
        layer_bytes=tuple(layer.size for layer in image.layers),
    )
    manifest, config = oci.documents(root / "image.tar", image.manifest_digest, image.config_digest)
    snapshot = replace(
        SNAPSHOT,
        epoch=EPOCH,
        export=buildx.EXPORT,
        builder=archive.identity(engine, build.builder_name(engine)),
        expected=expected,
        **changes,
    )
    items = [Item(name, content) for name, content in files.items()]
    items += [Item(str(p.relative_to(root)), p) for p in sorted((root / "base").rglob("*")) if p.is_file()]
    items += [
        Item("expected/manifest.json", manifest),
        Item("expected/config.json", config),
        Item("expected/tree.jsonl.zst", tree.dump(found)),
    ]
    write(Layout(root / "kept"), snapshot, items)
    return root / "kept"


def rebuild(way: Way, kept: Path, root: Path, *more: str) -> tuple[int, dict[str, Any]]:
    tfenv = str(Path(sys.executable).with_name("tfenv"))
    argv, env, place = command(
        way, [tfenv, "rebuild", str(kept), "--offline", "--json", *more], root, network=False
    )
    kept.chmod(0o755)
    done = subprocess.run(argv, env=env, cwd=place, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.mark.skipif(bool(possible()), reason=possible())
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_the_same_digest_in_every_way_without_a_network(kept: Path, way: Way, tmp_path: Path) -> None:
    code, told = rebuild(way, kept, tmp_path)
    assert (code, told.get("outcome")) == (0, "identical"), told
    assert told["manifest"] == told["expected"]
    log = Path(told["log"]).read_text()
    assert "[made 2/2] RUN" in log and "CACHED" not in log
    assert not list((tmp_path / "store" / "stage").iterdir())


def test_a_changed_input_gives_a_difference_that_is_named(kept: Path, tmp_path: Path) -> None:
    """The engine really builds from the bundle's files: others give another image."""
    layout, manifest = bundle(kept)
    document = json.loads(layout.read(manifest.document))
    other = [Item(f.title, layout.read(f)) for f in manifest.files if f.title != "context/Dockerfile"]
    other.append(Item("context/Dockerfile", DOCKERFILE.replace("A=1", "A=2").encode()))
    write(Layout(tmp_path / "other"), load(json.dumps(document).encode(), where="here"), other)
    code, told = rebuild(WAYS[0], tmp_path / "other", tmp_path / "run")
    assert (code, told["outcome"]) == (1, "different")
    assert told["levels"] == {"files": True, "layers": True, "configuration": False, "manifest": False}
    unexplained = {d["path"] for d in told["differences"] if d["unexplained"]}
    assert "config.Env[1]" in unexplained


def test_another_compression_level_is_the_same_content(kept: Path, tmp_path: Path) -> None:
    layout, manifest = bundle(kept)
    snapshot = load(layout.read(manifest.document), where="here")
    export = tuple(o.replace("compression=zstd", "compression=gzip") for o in snapshot.export)
    items = [Item(f.title, layout.read(f)) for f in manifest.files]
    write(Layout(tmp_path / "other"), replace(snapshot, export=export), items)
    code, told = rebuild(WAYS[0], tmp_path / "other", tmp_path / "run")
    assert (code, told["outcome"], list(told["causes"])) == (0, "same content", ["compressor"])


def test_a_base_image_comes_from_the_bundle_alone(engine: Engine, tmp_path: Path) -> None:
    """It is taken out of the engine into the bundle; then the engine forgets it, and the network is cut."""
    image, client = tiny.name(), engine.client or "docker"
    context = tiny.context(tmp_path / "of-base", "FROM scratch\nCOPY say.bin /\n")
    argv = buildx.build_argv(
        engine,
        context=context,
        dockerfile=context / "Dockerfile",
        epoch=EPOCH,
        output=tmp_path / "base.tar",
        metadata=tmp_path / "base.json",
        image=image,
    )
    digest = buildx.run_build(argv, os.environ, tmp_path / "log", metadata=tmp_path / "base.json").digest
    (tmp_path / "base" / "0").mkdir(parents=True)
    try:
        base.save(f"{image}@{digest}", digest, run_command, client, tmp_path / "base" / "0")
    finally:
        run_command([client, "image", "rm", image])
    name = f"{image}@{digest}"
    dockerfile = f"FROM {name}\nADD essential.tar /\n"
    kept = make(tmp_path, engine, dockerfile, contexts=(Context(name=name, folder="base/0", digest=digest),))
    code, told = rebuild(WAYS[0], kept, tmp_path / "run")
    assert (code, told.get("outcome")) == (0, "identical"), told


def test_the_engine_gets_the_image_that_was_rebuilt(engine: Engine, tmp_path: Path) -> None:
    cell = tiny.name().partition(":")[0]
    kept = make(tmp_path, engine, DOCKERFILE, cell=cell)
    name, client = f"tfenv-rebuilt:{cell}", engine.client or "docker"
    try:
        code, told = rebuild(WAYS[0], kept, tmp_path / "run", "--load")
        assert code == 0, told
        found = run_command([client, "image", "inspect", "--format", "{{.Id}}", name])
        assert found.stdout.strip() == told["expected"]
    finally:
        run_command([client, "image", "rm", name])
