"""An environment through its stages: locked, rendered, built on its row, named, found again."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import small
import teams
from small import Place
from tfenv import build, cli, oci, pipeline
from tfenv.buildx import BuildError
from tfenv.commands import up
from tfenv.errors import DriftError, IntegrityError, TfenvError, UsageError
from tfenv.fetch import MissingInputs
from tfenv.files import write_all
from tfenv.lock import write_lock
from tfenv.model import Environment
from tfenv.team import flow, joined, layout
from tfenv.team.inputs import TeamInputs, on
from tfenv.team.model import Layer
from tfenv.team.render import template_version


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    place = small.place(tmp_path, monkeypatch, teams.TEXT)
    teams.lock(place.workspace)
    return place


@pytest.fixture
def inputs(here: Place, monkeypatch: pytest.MonkeyPatch) -> TeamInputs:
    """Inputs whose files are all in the store, under names that the lock gives them."""
    cell = teams.environment(here.workspace)
    lock = flow.team_lock(here.workspace, cell)
    assert lock is not None
    wheels = tuple(
        replace(w, sha256=small.put(here.store, w.name.encode()), size=len(w.name)) for w in lock.wheels
    )
    debs = tuple(
        replace(p, sha256=small.put(here.store, p.name.encode()), size=len(p.name)) for p in lock.debian
    )
    flow.write_lock(here.workspace, cell, replace(lock, wheels=wheels, debian=debs))
    write_all(here.workspace.folder(cell), here.workspace.rendered(cell))
    made = pipeline.committed(here.workspace, cell)
    assert isinstance(made, TeamInputs)
    return made


def test_all_of_the_image_is_in_one_lock(inputs: TeamInputs) -> None:
    names = [wheel.name for wheel in inputs.lock.wheels]
    assert {"tensorflow", "pandas", "uv"} <= set(names) and names == sorted(names)
    assert "libgl1" in [package.name for package in inputs.lock.debian]
    assert inputs.lock.cell == "vision" and inputs.lock.suite == "bookworm"
    assert "libgl1" in inputs.lock.debian_packages


def test_a_build_takes_only_the_teams_part_and_the_rows_installer(inputs: TeamInputs) -> None:
    own = inputs.own
    assert isinstance(own, Layer) and own.python == "3.11"
    assert [wheel.name for wheel in own.wheels] == ["pandas", "pytz", "six", "uv"]
    assert [package.name for package in own.debian] == ["libgl1"]
    assert own.interpreter is None and own.epoch == inputs.cell.epoch


def test_the_python_of_an_environment_is_known_without_its_name(inputs: TeamInputs) -> None:
    from tfenv.fetch import python_of

    assert python_of(inputs.own) == "3.11"
    with pytest.raises(TfenvError):
        python_of(inputs.lock)


def test_an_upgraded_debian_package_replaces_the_rows(here: Place) -> None:
    cell = teams.environment(here.workspace)
    team, row = flow.team_lock(here.workspace, cell), here.lock
    assert team is not None
    newer = replace(team, debian=(teams.deb("libc6", "2.37"),))
    versions = {p.name: p.version for p in joined.whole(cell, row, newer).debian}
    assert versions["libc6"] == "2.37"


def test_a_team_lock_that_brings_what_the_row_has_is_refused(here: Place) -> None:
    cell = teams.environment(here.workspace)
    team = flow.team_lock(here.workspace, cell)
    assert team is not None
    with pytest.raises(TfenvError, match="does not go with"):
        joined.whole(cell, here.lock, replace(team, wheels=(teams.wheel("tensorflow", "2.15.1"),)))


# The Dockerfile.


def test_its_layers_are_on_top_of_the_rows_image(inputs: TeamInputs) -> None:
    text = inputs.files["Dockerfile"]
    assert [line for line in text.splitlines() if line.startswith("FROM")] == [
        "FROM row AS packages",
        "FROM packages AS installed",
        "FROM packages",
    ]
    assert text.count("RUN --network=none") == text.count("RUN ") == 2
    assert "USER 1000:1000" in text and 'dev.tfenv.cell="vision"' in text
    assert f'dev.tfenv.row="{small.CELL}"' in text and f'dev.tfenv.lock="sha256:{inputs.lock_hash}"' in text


def test_its_linter_takes_it(here: Place, inputs: TeamInputs) -> None:
    program = Path(sys.executable).with_name("hadolint")
    rules = Path(__file__).resolve().parent.parent / ".hadolint.yaml"
    file = here.workspace.folder(inputs.cell) / "Dockerfile"
    done = subprocess.run([program, "-c", rules, file], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_without_packages_of_a_kind_there_is_no_step_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = small.place(tmp_path, monkeypatch, teams.TEXT.replace("    apt: [libgl1]\n", ""))
    cell = teams.lock(place.workspace)
    text = (place.workspace.folder(cell) / "Dockerfile").read_text()
    assert "packages.sh" not in text and "FROM row AS installed" in text and "USER 1000" not in text


def test_an_environment_to_develop_in_keeps_headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = teams.TEXT.replace("    apt: [libgl1]\n", "    extras: [devel]\n")
    place = small.place(tmp_path, monkeypatch, text)
    cell = teams.lock(place.workspace)
    assert isinstance(cell, Environment) and joined.development(cell)
    assert "**" in [rule.what for rule in place.workspace.lock(cell).keep]
    assert "'**.h'" not in (place.workspace.folder(cell) / "Dockerfile").read_text()


def test_the_rows_own_templates_do_not_know_of_it(inputs: TeamInputs) -> None:
    from tfenv import render, resources

    root = resources.templates_dir()
    assert "team" not in "".join(path.read_text() for path in sorted((root / "tools").glob("*.sh")))
    assert render.template_version("debian") != template_version()


# Whether what is committed belongs together.


def test_what_is_committed_is_proved(here: Place, inputs: TeamInputs) -> None:
    cell = teams.environment(here.workspace)
    (here.workspace.folder(cell) / "Dockerfile").write_text("FROM scratch\n")
    with pytest.raises(DriftError, match="images/vision/Dockerfile"):
        pipeline.committed(here.workspace, cell)


def test_a_row_that_was_locked_anew_is_followed(here: Place, inputs: TeamInputs) -> None:
    from tfenv import render

    row = replace(here.lock, debian_locked_at="2025-12-30T11:00:00Z")
    write_lock(row, here.workspace.images)
    write_all(here.workspace.folder(here.cell), render.render(here.cell, row))
    cell = teams.environment(here.workspace)
    with pytest.raises(UsageError, match="does not follow") as error:
        pipeline.committed(here.workspace, cell)
    assert "tfenv lock vision" in error.value.remedy
    teams.lock(here.workspace)
    again = pipeline.committed(here.workspace, cell)
    assert again.hash != inputs.hash


def test_another_template_is_another_lock(
    here: Place, inputs: TeamInputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfenv.team.committed.template_version", lambda: "0" * 64)
    with pytest.raises(UsageError, match="another version of the templates"):
        here.workspace.rendered(inputs.cell)


# The build.


def test_the_row_is_built_first_where_it_never_was(here: Place, inputs: TeamInputs) -> None:
    pipeline.make(here.workspace, inputs, here.host)
    assert here.docker.builds == 2
    assert build.find(inputs.below, here.store) and build.find(inputs, here.store)
    lines = [line for line in here.docker.asked if line.startswith("buildx build")]
    assert "row=oci-layout://" not in lines[0]
    assert f"@{here.docker.manifest}" in lines[1] and "--build-context team=" in lines[1]
    assert f"SOURCE_DATE_EPOCH={inputs.cell.epoch}" in lines[1]
    assert here.leftovers() == []


def test_what_was_built_is_not_built_again(here: Place, inputs: TeamInputs) -> None:
    pipeline.make(here.workspace, inputs, here.host)
    assert pipeline.make(here.workspace, inputs, here.host).built.reused
    assert here.docker.builds == 2


def test_its_tag_is_its_name(here: Place, inputs: TeamInputs) -> None:
    made = pipeline.make(here.workspace, inputs, here.host)
    assert pipeline.tag(here.workspace, made, here.host) == ("tfenv:vision",)
    assert here.images.labels[here.docker.manifest]["dev.tfenv.cell"] == "vision"
    image = made.image
    assert pipeline.lock_of(here.workspace, inputs.cell, image, here.host) == inputs.lock


def test_its_identity_is_of_the_rows_content_and_of_no_folder(here: Place, inputs: TeamInputs) -> None:
    built = build.build(inputs.below, here.host)
    placed = on(inputs, built, "oci-layout:///anywhere@sha256:x")
    assert placed.hash == inputs.hash and placed.contexts["row"] == "oci-layout:///anywhere@sha256:x"


def test_another_rows_image_is_refused(here: Place, inputs: TeamInputs) -> None:
    built = build.build(inputs.below, here.host)
    other = replace(inputs, team=replace(inputs.team, row=replace(inputs.team.row, inputs="0" * 64)))
    with pytest.raises(IntegrityError, match="was locked on another"):
        on(other, built, "")


def test_the_rows_layers_are_unpacked_only_where_the_engine_lacks_them(
    here: Place, inputs: TeamInputs
) -> None:
    built = build.build(inputs.below, here.host)
    described = oci.describe(built.archive)
    for layers in (False, True):
        with layout.unpacked(built.archive, here.store, layers=layers) as context:
            folder = Path(context.removeprefix("oci-layout://").rpartition("@")[0])
            names = {path.name for path in (folder / "blobs/sha256").iterdir()}
            expected = {described.manifest_digest[7:], described.config_digest[7:]}
            if layers:
                expected |= {layer.digest[7:] for layer in described.layers}
            assert names == expected
            (entry,) = json.loads((folder / "index.json").read_text())["manifests"]
            assert entry["digest"] == built.digest.manifest and context.endswith(f"@{entry['digest']}")
        assert not folder.exists()


def test_there_is_no_stand_in_below_an_environment(here: Place, inputs: TeamInputs) -> None:
    with pytest.raises(UsageError, match="not built on a stand-in"):
        pipeline.on_stand_in(inputs, here.host)


def gone(*_: object, **__: object) -> None:
    raise MissingInputs(small.CELL, debian=["libc6.deb"])


def test_a_row_whose_inputs_are_gone_is_not_replaced_by_another(
    here: Place, inputs: TeamInputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfenv.fetch.fetch", gone)
    monkeypatch.setattr(flow, "host_resolvers", lambda env: teams.resolvers())
    here.store.path(here.lock.debian[0].sha256).unlink()
    with pytest.raises(MissingInputs, match=r"libc6\.deb") as error:
        up._make(here.workspace, inputs, here.host)
    assert f"tfenv lock {small.CELL} --upgrade debian" in error.value.remedy
    assert here.docker.builds == 0


def test_the_teams_packages_of_today_are_taken_and_the_image_says_so(
    here: Place, inputs: TeamInputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = replace(teams.deb("libgl1", "2.0"), sha256=small.put(here.store, b"new"), size=3)
    found = teams.resolvers(debian=lambda *_: ((newer,), "2025-12-02T00:00:00Z"))
    monkeypatch.setattr("tfenv.fetch.fetch", gone)
    monkeypatch.setattr(flow, "host_resolvers", lambda env: found)
    for package in inputs.own.debian:
        here.store.path(package.sha256).unlink()
    made, image, _ = up._make(here.workspace, inputs, here.host)
    assert made.ending == "-unlocked" and 'dev.tfenv.locked="false"' in made.files["Dockerfile"]
    assert ("libgl1", "2.0") in [(p.name, p.version) for p in made.lock.debian]
    assert pipeline.lock_of(here.workspace, inputs.cell, image, here.host) == made.lock


@pytest.mark.parametrize(("said", "tries"), [("failed to solve: not found", 2), ("exit code: 7", 1)])
def test_an_engine_that_loses_a_layer_of_the_rows_gets_all_of_them(
    here: Place, inputs: TeamInputs, monkeypatch: pytest.MonkeyPatch, said: str, tries: int
) -> None:
    row = build.build(inputs.below, here.host)
    seen: list[int] = []

    def fail(placed: TeamInputs, *_: object, **__: object) -> build.Built:
        folder = Path(placed.contexts["row"].removeprefix("oci-layout://").rpartition("@")[0])
        seen.append(len(list((folder / "blobs/sha256").iterdir())))
        raise BuildError(said, remedy="repeat it")

    monkeypatch.setattr(build, "build", fail)
    with pytest.raises(BuildError, match=said):
        flow.build_on_row(inputs, here.host, no_cache=False, archive_only=False)
    layers = len(oci.describe(row.archive).layers)
    assert seen == [2, 2 + layers][:tries]


# The commands.


def test_commands_take_it_as_a_cell(
    here: Place, inputs: TeamInputs, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["lock", "vision", "--check"]) == 0
    assert cli.run(["render", "--check"]) == 0
    assert cli.run(["build", "vision"]) == 0
    assert cli.run(["list"]) == 0
    said = capsys.readouterr().out
    assert "vision: unchanged" in said and f"vision  locked, on {small.CELL}" in said
    assert "tfenv:vision" in said
    assert cli.run(["list", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["cell"] for one in told if one["row"] == small.CELL] == ["vision"]
    assert cli.run(["list", "--format", "github"]) == 0
    assert "vision" in capsys.readouterr().out
    assert cli.run(["run", "--print", "vision", "python"]) == 0
    assert "tfenv:vision python" in capsys.readouterr().out


def test_a_lock_out_of_date_fails_the_check(here: Place, capsys: pytest.CaptureFixture[str]) -> None:
    path = here.workspace.matrix_path
    path.write_text(path.read_text().replace("[pandas, six]", "[pandas]"))
    assert cli.run(["lock", "vision", "--check"]) == 2
    assert cli.run(["list"]) == 0
    assert "lock out of date" in capsys.readouterr().out


def test_single_packages_of_a_row_are_not_upgraded(here: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["lock", small.CELL, "--upgrade-package", "numpy"]) == 2
    assert "no team's environment" in capsys.readouterr().err


def test_orphans_are_told_and_environments_are_none(here: Place, capsys: pytest.CaptureFixture[str]) -> None:
    path = here.workspace.matrix_path
    path.write_text(path.read_text().partition("environments:")[0])
    assert cli.run(["render", "--check"]) == 1
    assert "images/vision" in capsys.readouterr().err


def test_what_an_environment_needs_is_not_garbage(
    here: Place, inputs: TeamInputs, capsys: pytest.CaptureFixture[str]
) -> None:
    built = pipeline.make(here.workspace, inputs, here.host).built
    stray = here.store.path(small.put(here.store, b"nobody's"))
    assert cli.run(["gc"]) == 0
    assert not stray.exists() and built.archive.exists()
    assert all(here.store.path(wheel.sha256).exists() for wheel in inputs.own.wheels)
    assert all(here.store.path(package.sha256).exists() for package in inputs.own.debian)


def test_a_build_by_hand_is_staged_with_the_row(
    here: Place, inputs: TeamInputs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["build", "vision", "--stage", str(tmp_path / "hand")]) == 0
    assert f"row=oci-layout://{tmp_path}/hand/row@sha256:" in capsys.readouterr().out
    assert (tmp_path / "hand/row/index.json").is_file()
