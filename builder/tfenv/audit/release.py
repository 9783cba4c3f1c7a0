"""A release's facts from what its wheels say: each with how it was read, none without having been read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tfenv.audit.headers import dotted
from tfenv.audit.kernels import kernel_facts, nccl_sass
from tfenv.audit.shallow import BUILD_INFO
from tfenv.audit.survey import Outcome
from tfenv.errors import IntegrityError
from tfenv.versions import agrees, is_final, order


def gathered(version: str, outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """All that is kept of a release's wheels: once what they agree in, beside each where it differs.

    The wheel for the newest Python speaks for the release; its libraries are the ones that are read.
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
        "pythons": sorted({wheel["python"] for wheel in wheels if wheel["python"]}, key=order),
    }
    source = {
        "released": "upload time that the package index gives for the first of the release's wheels",
        "prerelease": "the version says so, by the rules for versions of Python packages",
        "yanked": "what the package index says of the release's wheels",
        "pythons": "cp tags of the release's manylinux x86_64 wheels on the package index",
    }
    libraries = kept.get("deep", {}).get("libraries", {})
    told = {"cuda": _cuda(read), "cudnn": _cudnn(read, libraries), "nccl": _nccl(read, libraries)}
    if libraries:
        told |= {"opens": _opens(read, libraries), "runpath": _runpath(libraries)}
    for name, (value, how) in told.items():
        facts[name], source[name] = value, f"wheel: {how}"
    if libraries:
        found, how_found = kernel_facts(libraries)
        facts |= found
        where = f"wheel for Python {python}" if (python := _python_of(kept)) else "libraries"
        source |= {name: f"{where}: {how}" for name, how in how_found.items()}
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


def _cudnn(read: Mapping[str, Any], libraries: Mapping[str, Any]) -> tuple[str, str]:
    header, config = read["headers"].get("cudnn_version.h", {}), read["headers"].get("cuda_config.h", {})
    places = [
        (
            _joined(header, "CUDNN_MAJOR", "CUDNN_MINOR", "CUDNN_PATCHLEVEL"),
            f"CUDNN_MAJOR, _MINOR, _PATCHLEVEL in {header.get('path')}",
        ),
        (config.get("TF_CUDNN_VERSION"), f"TF_CUDNN_VERSION in {config.get('path')}"),
        (read["build_info"].get("cudnn_version"), f"cudnn_version in {BUILD_INFO}"),
    ]
    for name, library in libraries.items():
        told = "the version that its code gives as 'source was compiled with'"
        places.append((library["cudnn"], f"{told} in {_file(name)}"))
    return _most_exact("cuDNN", places)


def _nccl(read: Mapping[str, Any], libraries: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    header = read["headers"].get("nccl.h", {})
    exact = _joined(header, "NCCL_MAJOR", "NCCL_MINOR", "NCCL_PATCH")
    places = [(exact, f"NCCL_MAJOR, _MINOR, _PATCH in {header.get('path')}")]
    for name, library in libraries.items():
        places += [(version, f"'NCCL version {version}' in {_file(name)}") for version in library["nccl"]]
    version, source = _most_exact("NCCL", places)
    if not libraries:
        return {"version": version, "how": ""}, f"{source}; whether it is linked in was not read"
    sass = nccl_sass(libraries)
    if sass is not None:
        said = f"its kernels are in a fatbin of TensorFlow's own, with machine code for {', '.join(sass)}"
        return {"version": version, "how": "linked", "sass": sass}, f"{source}; {said}"
    if any("Nccl" in library["opens"] for library in libraries.values()):
        said = "its kernels are in no library of TensorFlow, which has code that opens it"
        return {"version": version, "how": "loaded"}, f"{source}; {said}"
    return {"version": version, "how": ""}, f"{source}; neither its kernels nor code that opens it was found"


#: What TensorFlow's loader opens, by the name of the function that does: the library, and the macro of
#: cuda_config.h with its version. The first that is defined counts.
_LOADERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "CudaRuntime": ("cudart", ("TF_CUDART_VERSION",)),
    "Cublas": ("cublas", ("TF_CUBLAS_VERSION",)),
    "CublasLt": ("cublasLt", ("TF_CUBLAS_VERSION",)),
    "Cufft": ("cufft", ("TF_CUFFT_VERSION",)),
    "Curand": ("curand", ("TF_CURAND_VERSION",)),
    "Cusolver": ("cusolver", ("TF_CUSOLVER_VERSION",)),
    "Cusparse": ("cusparse", ("TF_CUSPARSE_VERSION",)),
    "Cupti": ("cupti", ("TF_CUPTI_VERSION", "TF_CUDA_VERSION")),
    "Cudnn": ("cudnn", ("TF_CUDNN_VERSION",)),
}


def _opens(read: Mapping[str, Any], libraries: Mapping[str, Any]) -> tuple[list[str], str]:
    config = read["headers"].get("cuda_config.h", {})
    found = {handle for library in libraries.values() for handle in library["opens"]}
    sonames = []
    for handle, (name, macros) in _LOADERS.items():
        version = next((config[macro] for macro in macros if config.get(macro)), "")
        if handle in found and version:
            sonames.append(f"lib{name}.so.{version}")
    if "Nccl" in found and nccl_sass(libraries) is None:
        major = read["headers"].get("nccl.h", {}).get("NCCL_MAJOR", "")
        sonames += [f"libnccl.so.{major}"] if major else []
    return sonames, (
        "functions Get...DsoHandle of its loader, in "
        + ", ".join(_file(name) for name, library in libraries.items() if library["opens"])
        + f", with the versions in {config.get('path')}; TensorRT's are left out"
    )


def _runpath(libraries: Mapping[str, Any]) -> tuple[dict[str, list[str]], str]:
    """A library that is opened is looked for in the RUNPATH of the one that opens it."""
    found = {
        _file(name): library["nvidia_folders"] for name, library in libraries.items() if library["opens"]
    }
    return found, "nvidia/*/lib in RPATH or RUNPATH of the libraries that have the loader's functions"


def _python_of(kept: Mapping[str, Any]) -> str:
    deep = kept["deep"]["wheel"]
    return next(str(wheel["python"]) for wheel in kept["wheels"] if wheel["filename"] == deep)


def _file(name: str) -> str:
    return name.rsplit("/", 1)[-1]


def _joined(header: Mapping[str, str], *macros: str) -> str:
    parts = [header.get(macro, "") for macro in macros]
    return ".".join(parts) if all(parts) else ""


def _most_exact(what: str, places: Iterable[tuple[str | None, str]]) -> tuple[str, str]:
    """The longest of the answers, if the others agree as far as they go."""
    told = [(value, place) for value, place in places if value]
    if not told:
        return "", f"nothing that it ships tells the {what}"
    best = max((value for value, _ in told), key=lambda value: value.count("."))
    for value, place in told:
        if not agrees(value, best):
            raise IntegrityError(
                f"{what}: {best} and {value} ({place}) contradict each other",
                remedy="please report it: neither is taken before a person has looked",
            )
    return best, "; ".join(f"{value} by {place}" for value, place in told)
