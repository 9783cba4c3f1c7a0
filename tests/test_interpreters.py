"""Pythons that no base brings: which, and from where."""

from __future__ import annotations

import json
import re

import pytest
from tfenv import interpreters
from tfenv.errors import UsageError
from tfenv.resources import facts_dir
from tfenv.versions import order

FACTS = json.loads((facts_dir() / "pythons.json").read_text(encoding="utf-8"))


def test_what_is_offered_comes_in_order() -> None:
    offered = interpreters.offered()
    assert list(offered) == sorted(offered, key=order)
    assert offered.index("3.9") < offered.index("3.10"), "as versions, not as text"


@pytest.mark.parametrize("python", interpreters.offered())
def test_every_build_is_pinned_and_says_which_python_it_is(python: str) -> None:
    found = interpreters.interpreter(python)
    assert re.fullmatch(r"[0-9a-f]{64}", found.sha256)
    assert found.provider == FACTS["provider"]
    assert found.version.startswith(f"{python}.")
    assert f"cpython-{found.version}+" in found.filename and "x86_64-unknown-linux-gnu" in found.filename
    build = found.path.partition("/")[0]
    assert found.path == f"{build}/{found.filename}" and f"+{build}-" in found.filename
    assert found.released.replace("-", "").startswith(build)


def test_no_two_pythons_are_one_file() -> None:
    hashes = [interpreters.interpreter(python).sha256 for python in interpreters.offered()]
    assert len(set(hashes)) == len(hashes)


def test_a_python_that_the_provider_has_not_is_refused_with_those_it_has() -> None:
    with pytest.raises(UsageError, match=r"has no Python 3\.7") as caught:
        interpreters.interpreter("3.7")
    assert "3.8" in caught.value.remedy and "pythons.json" in caught.value.remedy


def test_the_facts_say_their_source() -> None:
    assert FACTS["source"] and FACTS["mirror_variable"].startswith("UV_")


@pytest.mark.parametrize("mirror", ["https://mirror.example/python", "https://mirror.example/python/"])
def test_the_users_mirror_comes_instead_of_the_provider(mirror: str) -> None:
    found = interpreters.interpreter("3.10")
    (url,) = interpreters.urls(found, {"UV_PYTHON_INSTALL_MIRROR": mirror})
    # As uv asks for it: the plus sign is quoted.
    assert url == f"https://mirror.example/python/{found.path.replace('+', '%2B')}"


@pytest.mark.parametrize("env", [{}, {"UV_PYTHON_INSTALL_MIRROR": ""}, {"UV_DEFAULT_INDEX": "https://x"}])
def test_without_a_mirror_the_provider_is_asked(env: dict[str, str]) -> None:
    (url,) = interpreters.urls(interpreters.interpreter("3.10"), env)
    assert url.startswith(f"{FACTS['at']}/")
