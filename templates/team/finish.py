"""Ends a layer of a team's packages: it may replace nothing, its byte code is never stale, pip is told of it.

usage: finish.py LAYER SITE_PACKAGES

LAYER is a folder whose content will be copied over the image; SITE_PACKAGES a path in the image. Standard
library only, Python 3.8 and newer.
"""

from __future__ import annotations

import filecmp
import os
import py_compile
import re
import shutil
import subprocess
import sys
from pathlib import Path

CUDA = "opt/tfenv/cuda"
CONSTRAINTS = "opt/tfenv/constraints.txt"
LOADER = "etc/ld.so.conf.d/00-tfenv-cuda.conf"


def files(top: Path) -> list[Path]:
    """All files and links below a folder, sorted."""
    found = []
    for folder, inner, names in os.walk(top):
        found += [Path(folder, name) for name in names]
        found += [Path(folder, name) for name in inner if Path(folder, name).is_symlink()]
    return sorted(found)


def clashes(layer: Path, root: Path) -> list[str]:
    """Paths of the image that the layer would give another content; what is the same leaves the layer."""
    bad = []
    for path in files(layer):
        there = root / path.relative_to(layer)
        if not os.path.lexists(there):
            continue
        plain = path.is_file() and there.is_file() and not (path.is_symlink() or there.is_symlink())
        if plain and filecmp.cmp(path, there, shallow=False):
            path.unlink()  # as nvidia/__init__.py, which each of NVIDIA's wheels brings
        else:
            bad.append(str(there))
    # A folder of the layer over a link of the image would hide what the link leads to.
    for folder, inner, _ in os.walk(layer):
        bad += [
            str(root / Path(folder, name).relative_to(layer))
            for name in inner
            if (root / Path(folder, name).relative_to(layer)).is_symlink()
        ]
    return sorted(set(bad))


def compile_all(layer: Path, root: Path) -> None:
    """Byte code with the source's hash in it, and the path that the source will have."""
    for source in files(layer):
        if source.suffix == ".py" and not source.is_symlink():
            try:
                py_compile.compile(
                    str(source),
                    dfile=str(root / source.relative_to(layer)),
                    doraise=True,
                    invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
                    quiet=1,
                )
            except (py_compile.PyCompileError, ValueError, RecursionError):
                continue  # a template, or code for another Python: it is not imported here


def constrain(layer: Path, root: Path, wheels: Path) -> None:
    """What is installed later on top moves the team's packages as little as the row's."""
    lines = (root / CONSTRAINTS).read_text().splitlines()
    for part in ("python", "cuda"):
        text = (wheels / part / "requirements.txt").read_text()
        lines += [line.split()[0] for line in text.splitlines() if line]
    kept = sorted({line for line in lines if not re.match(r"(pip|setuptools|wheel)==", line)})
    (layer / CONSTRAINTS).parent.mkdir(parents=True, exist_ok=True)
    (layer / CONSTRAINTS).write_text("".join(f"{line}\n" for line in kept))


def link_libraries(layer: Path, root: Path) -> None:
    """Make new folders of CUDA libraries known to the loader, as templates/tools/join.sh does."""
    new = sorted((layer / CUDA / "nvidia").glob("*/lib"))
    if not new:
        return
    folders = {*(root / CUDA / "nvidia").glob("*/lib"), *(root / p.relative_to(layer) for p in new)}
    shutil.copytree(layer / CUDA, root / CUDA, dirs_exist_ok=True, copy_function=os.link)
    (root / LOADER).write_text("".join(f"{folder}\n" for folder in sorted(folders)))
    subprocess.run(["ldconfig", "-X"], check=True)
    for name in (LOADER, "etc/ld.so.cache"):
        (layer / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / name, layer / name)


def main(layer: Path, site: Path, root: Path = Path("/"), wheels: Path = Path("/run/wheels")) -> None:
    """Check, compile, constrain and link."""
    for lock in (layer / "opt/tfenv/venv/.lock", layer / CUDA / ".lock"):
        lock.unlink(missing_ok=True)
    if bad := clashes(layer, root):
        shown = "\n  ".join(bad[:20])
        raise SystemExit(f"the team's packages would replace {len(bad)} files of the cell's:\n  {shown}")
    compile_all(layer / site.relative_to("/"), root / site.relative_to("/"))
    compile_all(layer / CUDA, root / CUDA)
    link_libraries(layer, root)
    constrain(layer, root, wheels)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
