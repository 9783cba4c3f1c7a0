"""What a tag of nvidia/cuda consists of: read from the tag and from data files."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tfenv import factfiles
from tfenv.errors import UsageError
from tfenv.versions import major, minor, order

LABEL = "dev.tfenv.stand-in"
_TAG = re.compile(
    r"(?P<cuda>\d+\.\d+\.\d+)-(?:(?P<cudnn>cudnn\d*)-)?(?P<flavour>base|runtime)-ubuntu(?P<ubuntu>\d+\.\d+)"
)


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What a stand-in is made of.

    Args:
        tag: of nvidia/cuda, e.g. ``12.2.2-cudnn8-runtime-ubuntu22.04``.
        cuda: ``12.2.2``; cudnn: the exact version in the image, None for none.
        wheels: pinned, the libraries of the image.
        suite: of Debian; packages: wanted of it; python: the version that they bring.
        epoch: Unix seconds; upper bound of file times.
    """

    tag: str
    cuda: str
    cudnn: str | None
    flavour: str
    wheels: tuple[str, ...]
    suite: str
    packages: tuple[str, ...]
    python: str
    epoch: int

    @property
    def image(self) -> str:
        """The image that is stood in for."""
        return f"nvidia/cuda:{self.tag}"

    @property
    def folder(self) -> str:
        """Where the image has its CUDA, e.g. ``/usr/local/cuda-12.2``."""
        return f"/usr/local/cuda-{minor(self.cuda)}"

    @property
    def environment(self) -> dict[str, str]:
        """The image's environment variables, as NVIDIA's Dockerfiles set them."""
        return {
            "NVARCH": "x86_64",
            "NVIDIA_REQUIRE_CUDA": f"cuda>={minor(self.cuda)}",
            "CUDA_VERSION": self.cuda,
            "PATH": "/usr/local/nvidia/bin:/usr/local/cuda/bin:"
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "LD_LIBRARY_PATH": "/usr/local/nvidia/lib:/usr/local/nvidia/lib64",
            "NVIDIA_VISIBLE_DEVICES": "all",
            "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
        }

    @property
    def labels(self) -> dict[str, str]:
        """What the stand-in says of itself."""
        return {
            LABEL: self.image,
            f"{LABEL}.base": f"Debian {self.suite}, not Ubuntu",
            f"{LABEL}.libraries": " ".join(self.wheels),
            f"{LABEL}.python": f"the Python that goes with it is a link to this base's own {self.python}",
        }


def parts_of(tag: str, *, cuda: str = "", cudnn: str | None = None, flavour: str = "") -> Parts:
    """Of what a stand-in for a tag is made.

    Args:
        tag: with or without ``nvidia/cuda:`` before and a digest after it.
        cuda, cudnn, flavour: what the caller takes the tag for; checked if given.

    Raises:
        UsageError: nothing is known of that tag, it is not what the caller takes it for, or there are no
            wheels with the libraries that it carries.
    """
    tag = tag.partition("@")[0].rpartition(":")[2]
    found = _TAG.fullmatch(tag)
    facts = factfiles.read("standins")
    if found is None or f"ubuntu{found['ubuntu']}" not in facts["bases"]:
        raise _unknown(tag, "base and runtime images on Ubuntu are known")
    if found["cuda"] not in facts["cuda"]:
        known = ", ".join(sorted(facts["cuda"], key=order))
        raise _unknown(tag, f"there are wheels with the libraries of CUDA {known}")
    exact = _cudnn(tag, found)
    for what, given, real in (
        ("CUDA", cuda, found["cuda"]),
        ("cuDNN", cudnn, exact or "none"),
        ("flavour", flavour, found["flavour"]),
    ):
        if given and not (f"{real}.".startswith(f"{given}.")):
            raise UsageError(f"{tag} has {what} {real}, not {given}", remedy="name the tag that has it")
    base = facts["bases"][f"ubuntu{found['ubuntu']}"]
    known = facts["cuda"][found["cuda"]]
    wheels = [*known["base"], *(known["runtime"] if found["flavour"] == "runtime" else ())]
    if exact:
        wheels.append(f"nvidia-cudnn-cu{major(found['cuda'])}=={exact}")
    return Parts(
        tag=tag,
        cuda=found["cuda"],
        cudnn=exact,
        flavour=found["flavour"],
        wheels=tuple(wheels),
        suite=base["suite"],
        packages=tuple(base["packages"]),
        python=base["python"],
        epoch=base["epoch"],
    )


def _cudnn(tag: str, found: re.Match[str]) -> str | None:
    """The exact cuDNN of the tag, as NVIDIA's Dockerfile for it names it."""
    if not found["cudnn"]:
        return None
    images = factfiles.read("nvidia_images")["tags"].get(found["cuda"], {}).get("cudnn", {})
    exact = images.get(found["ubuntu"], {}).get(found["cudnn"])
    if exact is None:
        raise _unknown(tag, "see builder/tfenv/facts/nvidia_images.json for the tags that exist")
    return str(exact)


def _unknown(tag: str, what: str) -> UsageError:
    return UsageError(
        f"no stand-in can be made for nvidia/cuda:{tag}",
        remedy=f"{what}; else build where nvidia/cuda:{tag} can be pulled",
    )
