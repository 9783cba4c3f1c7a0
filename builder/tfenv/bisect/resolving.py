"""What the user's requirements resolve to at a moment, and one package at one version."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tfenv.bisect.locating import Located, best_file
from tfenv.bisect.model import Endpoint, Pin, PinSet
from tfenv.errors import UsageError
from tfenv.index import IndexSettings
from tfenv.uv import compile_pylock
from tfenv.wheel_tags import supported_tags
from tfenv.wheels import sources

if TYPE_CHECKING:
    from packaging.tags import Tag

_NEVER = "2999-01-01T00:00:00Z"


@dataclass(frozen=True, kw_only=True)
class Resolver:
    """uv, for one Python and platform.

    Args:
        left_out: beginnings of the names of packages that are not installed.
        note: gets each pin with its file, which need not be looked for again.
    """

    python: str
    platform: str
    index: IndexSettings
    uv: str
    env: Mapping[str, str]
    left_out: tuple[str, ...] = ()
    note: Callable[[Pin, Located], None] = lambda _pin, _file: None

    def resolve(self, end: Endpoint, lines: tuple[str, ...], when: str) -> PinSet:
        """All packages that an end's requirements and these lines ask for, as of a moment (RFC 3339).

        Raises:
            UsageError: the requirements cannot be met. NotReadyError: the index cannot be reached.
        """
        requirements = (*end.requirements, *lines)
        # A cell's CUDA set is pinned and may be younger than the cell's own day.
        exempt = [text.partition("==")[0] for text in requirements if text.startswith("nvidia-")]
        document = compile_pylock(
            requirements,
            python=self.python,
            platform=self.platform,
            options=(
                *("--exclude-newer", when),
                *(option for name in exempt for option in ("--exclude-newer-package", f"{name}=false")),
                *sources(end.from_source),
            ),
            overrides=[f"{name} ; python_version < '0'" for name in sorted(end.without)],
            index=self.index,
            uv=self.uv,
            env=self.env,
        )
        tags = supported_tags(self.python, self.platform)
        packages = (p for p in document.get("packages", []) if not p["name"].startswith(self.left_out))
        return PinSet.of(self._pin(package, tags) for package in packages)

    def pin(self, name: str, version: str, when: str) -> Pin:
        """One package at one version; ``when`` may be empty.

        Raises:
            UsageError: there is no such wheel.
        """
        document = compile_pylock(
            [f"{name}=={version}"],
            python=self.python,
            platform=self.platform,
            options=("--no-deps", "--exclude-newer", when or _NEVER),
            index=self.index,
            uv=self.uv,
            env=self.env,
        )
        for package in document.get("packages", []):
            if package["name"] == name:
                hashes = (entry.get("hashes", {}).get("sha256") for entry in package.get("wheels", []))
                return Pin(name=name, version=package["version"], hashes=tuple(sha for sha in hashes if sha))
        raise UsageError(f"there is no {name} {version}", remedy="see the index")

    def _pin(self, package: Mapping[str, Any], tags: Mapping[Tag, int]) -> Pin:
        """The pin of a package in a pylock document: of the file that an installer would take."""
        name, version = package["name"], package["version"]
        pin = Pin(name=name, version=version, source=not package.get("wheels"))
        found = best_file(pin, package, tags)
        if found is None:
            raise UsageError(f"{name} {version} has no wheel for this Python", remedy="choose another Python")
        exact = replace(pin, hashes=(found.sha256,) if found.sha256 else (), file=found.filename)
        self.note(exact, found)
        return exact
