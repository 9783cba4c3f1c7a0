"""A release's facts from what its wheels say: each with how it was read, none without having been read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tfenv.audit.headers import dotted
from tfenv.audit.shallow import BUILD_INFO
from tfenv.audit.survey import Outcome
from tfenv.errors import IntegrityError
from tfenv.versions import agrees, is_final, order


def gathered(version: str, outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """All that is kept of a release's wheels: once what they agree in, beside each where it differs.

    The wheel for the newest Python speaks for the release.
    """
    found = sorted((o for o in outcomes if o.found), key=lambda o: (order(o.wheel.python), o.wheel.filename))
    gpu = [o for o in found if is_gpu(o.found or {})]
    read = (gpu or found)[-1].found or {}
    return {
        "prerelease": not is_final(version),
        "read": read,
        "wheels": [_wheel(o, read) for o in gpu],
        "cpu_only": [o.wheel.filename for o in found if o not in gpu],
    }


def is_gpu(read: Mapping[str, Any]) -> bool:
    """Whether a wheel was built with CUDA."""
    return read.get("build_info", {}).get("is_cuda_build") is True


def _wheel(outcome: Outcome, common: Mapping[str, Any]) -> dict[str, Any]:
    wheel, read = outcome.wheel, outcome.found or {}
    kept: dict[str, Any] = {
        "filename": wheel.filename,
        "python": wheel.python,
        "size": wheel.size,
        "sha256": wheel.sha256,
        "uploaded": wheel.uploaded,
        "yanked": wheel.yanked,
        "bytes_read": outcome.fetched,
    }
    differs = {key: read.get(key) for key in sorted({*read, *common}) if read.get(key) != common.get(key)}
    return {**kept, "differs": differs} if differs else kept


def facts_of(kept: Mapping[str, Any]) -> dict[str, Any]:
    """The entry of tensorflow.json: facts, and under ``source`` how each was read.

    Raises:
        IntegrityError: two places of one wheel contradict each other.
    """
    wheels, read = kept["wheels"], kept["read"]
    times = [wheel["uploaded"] for wheel in wheels if wheel["uploaded"]]
    yanked = sorted({wheel["yanked"] for wheel in wheels if wheel["yanked"]})
    facts: dict[str, Any] = {
        "released": min(times, default=""),
        "prerelease": kept["prerelease"],
        "yanked": "; ".join(yanked),
        "pythons": sorted({wheel["python"] for wheel in wheels}, key=order),
    }
    source = {
        "released": "upload time that the package index gives for the first of the release's wheels",
        "prerelease": "the version says so, by the rules for versions of Python packages",
        "yanked": "what the package index says of the release's wheels",
        "pythons": "cp tags of the release's manylinux x86_64 wheels on the package index",
    }
    for name, (value, how) in (
        ("cuda", _cuda(read)),
        ("cudnn", _cudnn(read)),
        ("nccl", _nccl(read)),
    ):
        facts[name], source[name] = value, how
    return {**facts, "source": source}


def _cuda(read: Mapping[str, Any]) -> tuple[str, str]:
    """TF_CUDA_VERSION is the most exact, CUDA_VERSION has no patch level, build_info.py may be silent."""
    config, driver = read["headers"].get("cuda_config.h", {}), read["headers"].get("cuda.h", {})
    places = [
        (config.get("TF_CUDA_VERSION"), f"TF_CUDA_VERSION in {config.get('path')}"),
        (
            dotted(driver["CUDA_VERSION"]) if "CUDA_VERSION" in driver else None,
            f"CUDA_VERSION {driver.get('CUDA_VERSION')} in {driver.get('path')}",
        ),
        (read["build_info"].get("cuda_version"), f"cuda_version in {BUILD_INFO}"),
    ]
    return _most_exact("CUDA", places)


def _cudnn(read: Mapping[str, Any]) -> tuple[str, str]:
    header, config = read["headers"].get("cudnn_version.h", {}), read["headers"].get("cuda_config.h", {})
    parts = [header.get(f"CUDNN_{part}") for part in ("MAJOR", "MINOR", "PATCHLEVEL")]
    places = [
        (
            ".".join(parts) if all(parts) else None,
            f"CUDNN_MAJOR, _MINOR, _PATCHLEVEL in {header.get('path')}",
        ),
        (config.get("TF_CUDNN_VERSION"), f"TF_CUDNN_VERSION in {config.get('path')}"),
        (read["build_info"].get("cudnn_version"), f"cudnn_version in {BUILD_INFO}"),
    ]
    return _most_exact("cuDNN", places)


def _nccl(read: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    header = read["headers"].get("nccl.h", {})
    version = _joined(header, "NCCL_MAJOR", "NCCL_MINOR", "NCCL_PATCH")
    how = f"NCCL_MAJOR, _MINOR, _PATCH in {header['path']}" if version else "no nccl.h is shipped"
    return {"version": version, "how": ""}, f"wheel: {how}; whether it is linked in was not read"


def _joined(header: Mapping[str, str], *macros: str) -> str:
    parts = [header.get(macro, "") for macro in macros]
    return ".".join(parts) if all(parts) else ""


def _most_exact(what: str, places: Iterable[tuple[str | None, str]]) -> tuple[str, str]:
    """The longest of the answers, if the others agree as far as they go."""
    told = [(value, place) for value, place in places if value]
    if not told:
        return "", f"wheel: nothing that it ships tells the {what}"
    best = max((value for value, _ in told), key=lambda value: value.count("."))
    for value, place in told:
        if not agrees(value, best):
            raise IntegrityError(
                f"{what}: {best} and {value} ({place}) contradict each other",
                remedy="please report it: neither is taken before a person has looked",
            )
    return best, "wheel: " + "; ".join(f"{value} by {place}" for value, place in told)
