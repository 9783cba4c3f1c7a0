"""What the user's requirements resolve to at a moment, and one package at one version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tfenv.bisect.model import Pin, PinSet
from tfenv.errors import UsageError
from tfenv.index import IndexSettings
from tfenv.model import Wheel
from tfenv.uv import compile_pylock
from tfenv.wheels import Measure, resolve_wheels

_NEVER = "2999-01-01T00:00:00Z"


@dataclass(frozen=True, kw_only=True)
class Resolver:
    """uv, for one Python and platform.

    Args:
        measure: (size in bytes, sha256) of a URL, for indexes that do not tell.
    """

    python: str
    platform: str
    index: IndexSettings
    uv: str
    env: Mapping[str, str]
    measure: Measure | None = None

    def resolve(self, requirements: tuple[str, ...], from_source: tuple[str, ...], when: str) -> PinSet:
        """All packages, as of a moment (RFC 3339).

        Raises:
            UsageError: the requirements cannot be met. NotReadyError: the index cannot be reached.
        """
        wheels, _ = resolve_wheels(
            requirements,
            python=self.python,
            platform=self.platform,
            exclude_newer=when,
            # A cell's CUDA set is pinned and may be younger than the cell's own day.
            exempt=[text for text in requirements if text.startswith("nvidia-") and "==" in text],
            from_source=from_source,
            index=self.index,
            uv=self.uv,
            env=self.env,
            measure=self.measure,
        )
        return PinSet.of(_pin(wheel) for wheel in wheels if wheel.layer != "tool")

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


def _pin(wheel: Wheel) -> Pin:
    return Pin(
        name=wheel.name,
        version=wheel.version,
        hashes=(wheel.sha256,),
        file=wheel.filename,
        source=wheel.layer == "source",
    )
