"""Inside the build of a stand-in: put the libraries of wheels where NVIDIA's packages for Linux put them.

usage: place.py WHEELS CUDA_FOLDER LAYER

They are put in place first, so that ldconfig sees them, and then moved to LAYER, which becomes a layer.
Standard library only; it imports nothing of tfenv.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

SYSTEM = Path("/usr/lib/x86_64-linux-gnu")  # cuDNN and NCCL come as packages of their own
_LIBRARY = re.compile(r"nvidia/(?P<part>\w+)/lib/(?P<stem>lib(?:cu|nv|nccl)[\w-]*\.so)(?:\.[\d.]+)?")
_OWN = ("cudnn", "nccl")


def full_name(stem: str, version: str, part: str) -> str:
    """The file's name in NVIDIA's packages: ``libcudart.so.12.2.140``, ``libcudnn.so.8.9.6``."""
    numbers = version.split(".")
    return f"{stem}.{'.'.join(numbers[:3] if part in _OWN else numbers)}"


def place(wheel: Path, toolkit: Path, system: Path) -> list[Path]:
    """Unpack the libraries of one wheel, each with a link of the soname; return what was made."""
    version = wheel.name.split("-")[1]
    made: list[Path] = []
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            found = _LIBRARY.fullmatch(member.filename)
            if found is None:
                continue
            folder = system if found["part"] in _OWN else toolkit
            file = folder / full_name(found["stem"], version, found["part"])
            with archive.open(member) as source, file.open("wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
            file.chmod(0o644)
            made.append(file)
            soname = folder / member.filename.rpartition("/")[2]
            if soname != file:
                soname.symlink_to(file.name)
                made.append(soname)
    if not made:
        raise SystemExit(f"{wheel.name} holds no library")
    return made


def lay_out(cuda: Path, root: Path) -> tuple[Path, list[Path]]:
    """Folders, links and loader settings of NVIDIA's packages: the libraries' folder, and what was made."""
    toolkit = cuda / "targets/x86_64-linux/lib"
    toolkit.mkdir(parents=True)
    (cuda / "lib64").symlink_to("targets/x86_64-linux/lib")
    made = []
    major = cuda.name.partition(".")[0]  # cuda-12
    alternatives = root / "etc/alternatives"
    for name in ("cuda", major):
        (alternatives / name).symlink_to(f"/usr/local/{cuda.name}")
        (root / "usr/local" / name).symlink_to(f"/etc/alternatives/{name}")
        made += [alternatives / name, root / "usr/local" / name]
    for name, lines in (
        ("000_cuda.conf", "/usr/local/cuda/targets/x86_64-linux/lib\n"),
        (f"987_{major}.conf", f"/usr/local/{major}/targets/x86_64-linux/lib\n"),
        ("nvidia.conf", "/usr/local/nvidia/lib\n/usr/local/nvidia/lib64\n"),
    ):
        file = root / "etc/ld.so.conf.d" / name
        file.write_text(lines)
        made.append(file)
    return toolkit, made


def main(wheels: Path, cuda: Path, layer: Path) -> None:
    """Place, let ldconfig see it, and move it all to ``layer``."""
    toolkit, made = lay_out(cuda, Path("/"))
    for wheel in sorted(wheels.glob("*.whl")):
        made += [path for path in place(wheel, toolkit, SYSTEM) if path.parent == SYSTEM]
    subprocess.run(["ldconfig", "-X"], check=True)
    for path in [cuda, *made, Path("/etc/ld.so.cache")]:
        target = layer / path.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(path, target)


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:4]))
