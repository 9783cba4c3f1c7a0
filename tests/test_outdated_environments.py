"""What is outdated of a team's environment: its own packages, and whether its row has moved on."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import small
import teams
from small import Place
from tfenv import cli
from tfenv.lock import write_lock
from tfenv.model import Environment, Wheel
from tfenv.outdated import Finding, Offer, Probes, Refused, Result, Subject, look
from tfenv.outdated.host import resolve_today
from tfenv.outdated.life import EndOfLife
from tfenv.outdated.rules import ENVIRONMENT_RULES, RULES
from tfenv.simple_index import ProjectFile
from tfenv.team import flow
from tfenv.team.behind import Behind, behind, behind_now
from tfenv.team.render import template_version

TODAY = date(2026, 11, 30)
TEXT = teams.TEXT.replace("[pandas, six]", '[pandas, "six<1.17"]')


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    place = small.place(tmp_path, monkeypatch, TEXT)
    teams.lock(place.workspace)
    return place


def file_of(of: Wheel, **changes: Any) -> ProjectFile:
    values: dict[str, Any] = {"filename": of.filename, "url": "x:/", "hashes": {"sha256": of.sha256}}
    return ProjectFile(**{**values, **changes})


def world(here: Place, *more: Wheel, yanked: str | None = None, **changes: Any) -> Probes:
    """A world in which nothing has changed, but for what is named."""
    lock = here.workspace.find_lock(teams.environment(here.workspace))
    assert lock is not None
    wheels = (*lock.wheels, *more)

    def files(name: str) -> tuple[ProjectFile, ...]:
        return tuple(
            file_of(one, yanked="bad" if name == yanked else None) for one in wheels if one.name == name
        )

    values: dict[str, Any] = {
        "files": files,
        "local": lambda wheel: False,
        "debian": lambda suite, names: {
            package.name: (Offer(package.version, "debian"),) for package in lock.debian
        },
        "digest": lambda image: "",
        "end_of_life": EndOfLife,
    }
    return Probes(**{**values, **changes})


def subjects(here: Place) -> list[Subject]:
    from tfenv.commands._environments import subjects

    return subjects(here.workspace, teams.environment(here.workspace))


def found(here: Place, *more: Wheel, **changes: Any) -> list[Finding]:
    result = look(subjects(here), here.workspace.matrix, world(here, *more, **changes), TODAY)
    return [finding for finding in result.findings if finding.cell == "vision"]


def move_row(here: Place, **changes: Any) -> Environment:
    cell = teams.environment(here.workspace)
    write_lock(replace(here.workspace.lock(cell.start), **changes), here.workspace.images)
    return cell


def test_where_nothing_has_changed_there_is_nothing_to_do(here: Place) -> None:
    assert found(here) == []


def test_an_environment_is_looked_at_with_its_row_and_for_what_it_adds(here: Place) -> None:
    row, own = subjects(here)
    assert own.cell.name == "vision" and own.lock is not None
    assert [wheel.name for wheel in own.lock.wheels] == ["pandas", "pytz", "six"]
    assert [package.name for package in own.lock.debian] == ["libgl1"]
    assert (row.cell.name, row.lock) == (teams.environment(here.workspace).start.name, own.row)


def test_every_rule_of_environments_is_in_the_table() -> None:
    assert len(set(ENVIRONMENT_RULES.values())) == len(ENVIRONMENT_RULES) == 6
    assert ENVIRONMENT_RULES["the locked wheels"] is RULES["the locked wheels"]


def test_what_the_row_brings_is_told_of_the_row(here: Place) -> None:
    probes = world(here, yanked="tensorflow")
    result = look(subjects(here), here.workspace.matrix, probes, TODAY)
    yanked = [finding.cell for finding in result.findings if finding.kind == "yanked"]
    assert yanked == [teams.environment(here.workspace).start.name]


def test_a_withdrawn_wheel_of_the_teams(here: Place) -> None:
    (finding,) = found(here, yanked="pytz")
    assert finding.severity == "act" and "tfenv lock vision --upgrade-package pytz" in finding.remedy


def test_newer_versions_that_the_requirements_allow_and_those_that_they_exclude(here: Place) -> None:
    more = [teams.wheel("pandas", "2.3.0"), teams.wheel("pandas", "3.1rc1"), teams.wheel("six", "1.18")]
    allowed, held = sorted(found(here, *more), key=lambda finding: finding.kind, reverse=True)
    assert (allowed.kind, allowed.details) == ("newer packages", ("pandas 2.2.0 -> 2.3.0",))
    assert allowed.message.startswith("one of its packages has")
    assert "tfenv lock vision --upgrade-package" in allowed.remedy
    assert (held.kind, held.details) == ("held back", ("six 1.16.0 -> 1.18 (asked for is <1.17)",))
    assert {allowed.severity, held.severity} == {"info"}


def test_an_older_version_is_no_news(here: Place) -> None:
    assert found(here, teams.wheel("pandas", "2.1.0"), teams.wheel("six", "1.15")) == []


def test_what_the_resolver_does_not_take_is_held_back(here: Place) -> None:
    own = subjects(here)[1].lock
    assert own is not None
    newer = teams.wheel("pandas", "2.3.0")
    (held,) = found(here, newer, resolve=lambda cell, lock: own.wheels)
    assert held.details == ("pandas 2.2.0 -> 2.3.0 (beside the others)",)


def test_what_the_resolver_would_lock_today(here: Place) -> None:
    own = subjects(here)[1].lock
    assert own is not None
    newer = teams.wheel("pandas", "2.3.0")
    asked: list[tuple[str, bool]] = []

    def resolve(cell: Any, lock: Any) -> tuple[Wheel, ...]:
        asked.append((cell.name, any(wheel.name == "tensorflow" for wheel in lock.wheels)))
        return (newer, *own.wheels[2:]) if cell.name == "vision" else lock.wheels

    (finding,) = found(here, newer, resolve=resolve)
    assert finding.kind == "resolves differently"
    assert finding.details == ("pandas 2.2.0 -> 2.3.0", "pytz 2.0 -> gone")
    assert ("vision", True) in asked  # it gets the row's lock: beside that it has to stand


def test_what_no_longer_resolves(here: Place) -> None:
    (finding,) = found(here, resolve=lambda cell, lock: Refused("no"))
    assert (finding.kind, finding.severity) == ("does not resolve", "act")


def test_a_row_that_has_moved_on_with_the_same_packages(here: Place) -> None:
    move_row(here, epoch=1_800_000_000)
    (finding,) = found(here)
    assert (finding.kind, finding.severity) == ("behind its row", "act")
    assert "has moved on" in finding.message and "sha256:" in finding.message
    assert finding.remedy.startswith("tfenv lock vision   (keeps every pin)")


def test_a_row_with_other_packages(here: Place) -> None:
    row = here.workspace.lock(teams.environment(here.workspace).start)
    wheels = tuple(teams.wheel("pip", "24.1") if w.name == "pip" else w for w in row.wheels)
    move_row(here, wheels=wheels)
    (finding,) = found(here)
    assert "other packages than when it was locked" in finding.message
    assert finding.remedy == "tfenv lock vision --upgrade all"


def test_a_row_that_cannot_be_rendered_is_told_as_that(here: Place) -> None:
    cell = move_row(here, template="0" * 64)
    team = flow.team_lock(here.workspace, cell)
    assert team is not None
    found = behind_now(here.workspace, cell, team)
    assert found is not None and cell.start.name in found.message and found.remedy


def test_what_else_a_lock_can_be_behind(here: Place) -> None:
    cell = teams.environment(here.workspace)
    team = flow.team_lock(here.workspace, cell)
    assert team is not None
    now, template = flow.pin(here.workspace, cell), template_version()

    def told(**changes: Any) -> Behind | None:
        return behind(cell, team, replace(now, **changes), template)

    assert told() is None
    other = told(manifest="sha256:" + "a" * 64)
    assert other is not None and "another digest" in other.message
    late = behind(replace(cell, apt=()), team, now, template)
    assert late is not None and "libgl1" in late.message and late.remedy.endswith("--upgrade all")
    old = behind(cell, team, now, "0" * 64)
    assert old is not None and "templates" in old.message


def test_an_environment_without_a_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = small.place(tmp_path, monkeypatch, TEXT)
    row, own = subjects(place)
    assert row.lock is not None and own.lock is None
    probes = Probes(
        files=lambda name: (),
        local=lambda wheel: False,
        debian=lambda suite, names: {},
        digest=lambda image: "",
        end_of_life=EndOfLife,
    )
    result = look([own], place.workspace.matrix, probes, TODAY)
    assert [(f.cell, f.kind) for f in result.findings if f.cell] == [("vision", "not locked")]


@pytest.mark.parametrize(
    ("offered", "severity", "said"),
    [
        (("2.15.1", "2.16.1"), "info", "tfenv new NAME --from 2.16.1"),
        (("2.15.1",), "info", "no row of it"),
        (None, "act", "tfenv facts audit"),
    ],
)
def test_a_later_minor_release_is_news_to_a_team(
    here: Place, offered: tuple[str, ...] | None, severity: str, said: str
) -> None:
    probes = world(here, teams.wheel("tensorflow", "2.16.1"))
    result = look(subjects(here), here.workspace.matrix, probes, TODAY, offered)
    (finding,) = (finding for finding in result.findings if not finding.cell)
    assert (finding.kind, finding.severity) == ("minor", severity) and said in finding.remedy


@pytest.mark.parametrize(
    ("offered", "said"), [(("2.15.2",), "tfenv new NAME --from 2.15.2"), ((), "add a row")]
)
def test_a_later_patch_release_for_a_team(here: Place, offered: tuple[str, ...], said: str) -> None:
    probes = world(here, teams.wheel("tensorflow", "2.15.2"))
    result = look(subjects(here), here.workspace.matrix, probes, TODAY, offered)
    (finding,) = (finding for finding in result.findings if finding.kind == "patch")
    assert finding.severity == "act" and said in finding.remedy


def tell(here: Place, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.chdir(here.workspace.matrix_path.parent)
    monkeypatch.setattr("tfenv.outdated.host.host_probes", lambda env, *, resolve: world(here))
    return cli.run(("outdated", *arguments))


@pytest.mark.parametrize("arguments", [("vision",), ("--all",)])
def test_the_command_tells_it_with_its_row_once(
    here: Place,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
) -> None:
    assert tell(here, monkeypatch, *arguments) == 0
    assert "cells: 2," in capsys.readouterr().out


def test_the_command_fails_where_the_row_has_moved_on(
    here: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    move_row(here, epoch=1_800_000_000)
    assert tell(here, monkeypatch, "vision", "--json") == 1
    told: Result = json.loads(capsys.readouterr().out)
    assert [f["kind"] for f in told["findings"]] == ["behind its row"]  # type: ignore[index]


def test_the_resolver_of_this_host_is_asked_as_for_a_lock(
    here: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = teams.Index()
    monkeypatch.setattr("tfenv.team.resolvers.host_resolvers", lambda env: teams.resolvers(index))
    cell = teams.environment(here.workspace)
    row = here.workspace.lock(cell.start)
    now = resolve_today(cell, row, {})
    assert isinstance(now, tuple)
    assert [(wheel.name, wheel.version) for wheel in now] == [
        ("pandas", "2.2.0"),
        ("pytz", "2.0"),
        ("six", "1.16.0"),
    ]
    ((asked, constraints),) = index.asked
    assert asked == ("pandas", "six<1.17") and "tensorflow==2.15.1" in constraints
    assert isinstance(resolve_today(replace(cell, asked=("nothing",)), row, {}), Refused)
    assert resolve_today(replace(cell, asked=()), row, {}) == ()
