"""With a real engine: an environment's image is always the same, the row's layers are in it bit for bit."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import small
import teams
import tiny
from tfenv import build, buildx, digest, images, oci
from tfenv.build import Host
from tfenv.console import Console
from tfenv.container import connect
from tfenv.store import Store
from tfenv.team import flow
from tfenv.team.inputs import TeamInputs, row_of

pytestmark = pytest.mark.engine
ROW = "FROM scratch\nCOPY say say.bin /\nLABEL of=row\n"
OWN = """\
FROM row AS installed
RUN --network=none ["/say.bin"]
FROM row
COPY --link --from=installed /say /own
LABEL of=team
"""


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.setenv("TFENV_CACHE", str(tmp_path / "store"))
    return Host(Store(tmp_path / "store", say=lambda _: None), Console(os.environ), os.environ)


@pytest.fixture
def row(tmp_path: Path, host: Host) -> digest.Digest:
    """A tiny image in place of the row's, built as rows are; what it is of is said by ``inputs``."""
    engine = build.ready_engine(os.environ)
    context = tiny.context(tmp_path / "row", ROW)
    for name in ("say", "say.bin"):
        os.utime(context / name, (1, 1))
    archive, metadata = tmp_path / "row.tar", tmp_path / "row.json"
    argv = buildx.build_argv(
        engine,
        context=context,
        dockerfile=context / "Dockerfile",
        epoch=1,
        output=archive,
        metadata=metadata,
    )
    buildx.run_build(argv, buildx.client_env(os.environ), tmp_path / "log", metadata=metadata)
    described = oci.describe(archive)
    return digest.Digest(
        inputs="",
        lock="",
        manifest=described.manifest_digest,
        config=described.config_digest,
        diff_ids=described.diff_ids,
        layer_bytes=tuple(layer.size for layer in described.layers),
        builder="x",
    )


@pytest.fixture
def inputs(tmp_path: Path, host: Host, row: digest.Digest) -> TeamInputs:
    """An environment with a Dockerfile that needs no shell, on the tiny row in the store."""
    place = small.workspace(tmp_path / "team", teams.TEXT)
    cell = teams.lock(place)
    made = flow.uncommitted(place, cell)
    assert made is not None
    small.fill(host.store, made.row)
    team = replace(made.team, wheels=(), debian=())
    made = replace(made, team=team, files={"Dockerfile": OWN})
    record = json.loads(digest.dump(row))
    archive = host.store.adopt(tmp_path / "row.tar")
    size = archive.stat().st_size
    told = {**record, "inputs": made.below.hash, "archive": archive.name, "archive_bytes": size}
    host.store.write_record(made.below.hash, told)
    return made


@pytest.fixture
def loaded(host: Host) -> Iterator[list[str]]:
    """Images that the engine was given, removed afterwards."""
    names: list[str] = []
    yield names
    with connect(os.environ) as containers:
        for name in names:
            containers.remove(name)


def again(inputs: TeamInputs, host: Host) -> build.Built:
    return flow.build_on_row(inputs, host, no_cache=True, archive_only=True)


def test_two_builds_give_one_digest_and_the_rows_layers_are_in_it(
    inputs: TeamInputs, host: Host, row: digest.Digest, loaded: list[str]
) -> None:
    first = again(inputs, host)
    described, below = oci.describe(first.archive), oci.describe(row_of(inputs, host).archive)
    assert described.layers[: len(below.layers)] == below.layers
    assert (
        described.diff_ids[: len(row.diff_ids)] == row.diff_ids
        and len(described.layers) == len(below.layers) + 1
    )
    assert described.labels["of"] == "team"
    assert again(inputs, host).digest.manifest == first.digest.manifest

    # With the row's image in the engine its layers are not even unpacked; that is no other image.
    images.settle(row_of(inputs, host), os.environ)
    name = tiny.name()
    images.tag(row.manifest, (name,), os.environ)
    loaded.append(name)
    assert again(inputs, host).digest.manifest == first.digest.manifest
    assert not list((host.store.root / "stage").iterdir())


def test_a_failed_step_leaves_what_repeats_it(inputs: TeamInputs, host: Host) -> None:
    bad = replace(
        inputs, files={**inputs.files, "Dockerfile": 'FROM row\nRUN --network=none ["/say.bin", "!"]\n'}
    )
    with pytest.raises(buildx.BuildError) as error:
        again(bad, host)
    folder = error.value.remedy.partition("row=oci-layout://")[2].partition("@")[0]
    assert (Path(folder) / "index.json").is_file()


def test_a_build_by_hand_has_the_row_beside_it(inputs: TeamInputs, host: Host, tmp_path: Path) -> None:
    argv = flow.stage_for_hand(inputs, host, tmp_path / "hand")
    assert (tmp_path / "hand/row/index.json").is_file()
    buildx.run_build(
        argv, buildx.client_env(os.environ), tmp_path / "log", metadata=tmp_path / "hand/metadata.json"
    )
    made = oci.describe(tmp_path / "hand/image.oci.tar")
    assert made.manifest_digest == again(inputs, host).digest.manifest


def test_a_row_that_only_the_engine_has_is_taken_from_there(
    inputs: TeamInputs, host: Host, row: digest.Digest, loaded: list[str]
) -> None:
    built = row_of(inputs, host)
    images.settle(built, os.environ)
    name = tiny.name()
    images.tag(row.manifest, (name,), os.environ)
    loaded.append(name)
    built.archive.unlink()
    known = replace(inputs, team=replace(inputs.team, row=replace(inputs.team.row, manifest=row.manifest)))
    found = row_of(known, host)
    assert (found.digest.manifest, found.digest.diff_ids) == (row.manifest, row.diff_ids)
    assert found.digest.layer_bytes == row.layer_bytes
    oci.verify_blobs(found.archive)
    assert again(known, host).digest.diff_ids[: len(row.diff_ids)] == row.diff_ids
