"""Time of `tfenv diff` of two images, against what one does without it, in one run on this machine.

usage: .venv/bin/python bench/diff.py [IMAGE IMAGE]

The peers: `docker save` of both and a listing of every layer (names, sizes and times: no contents), and
`sha256sum` of all files in a container of each. tfenv compares contents, packages and configuration.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, cast

from tfenv.diff import sides
from tfenv.diff.places import Part, archive
from tfenv.workspace import here
from zstandard import ZstdDecompressor

TFENV = str(Path(sys.executable).parent / "tfenv")
DOCKER = os.environ.get("TFENV_DOCKER") or "docker"


def seconds(*actions: Callable[[], None]) -> float:
    """Wall time of all of them."""
    begun = time.perf_counter()
    for action in actions:
        action()
    return time.perf_counter() - begun


def tfenv(cache: Path, *names: str) -> None:
    """`tfenv diff` with a store of its own; 0 and 1 are answers."""
    done = subprocess.run(
        [TFENV, "diff", *names, "--json"],
        env={**os.environ, "TFENV_CACHE": str(cache)},
        stdout=subprocess.DEVNULL,
    )
    if done.returncode not in (0, 1):
        raise SystemExit(f"tfenv diff ended with {done.returncode}")


def listed(image: str, folder: Path) -> None:
    """`docker save`, and `tar -tv` of every layer in it."""
    file = folder / "saved.tar"
    subprocess.run([DOCKER, "save", "-o", str(file), image], check=True)
    with archive(file) as opened, file.open("rb") as stream:
        for name, member in opened.members.items():
            stream.seek(member.offset_data)
            magic = stream.read(4)
            if not name.startswith("blobs/") or magic[:1] == b"{":
                continue
            stream.seek(member.offset_data)
            lister = subprocess.Popen(
                ["tar", "-tv", *(["-z"] if magic[:2] == b"\x1f\x8b" else [])],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
            )
            assert lister.stdin is not None
            part = cast("IO[bytes]", Part(stream, member.size))
            if magic == b"\x28\xb5\x2f\xfd":
                part = cast("IO[bytes]", ZstdDecompressor().stream_reader(part, read_across_frames=True))
            while chunk := part.read(1 << 20):
                lister.stdin.write(chunk)
            lister.stdin.close()
            if lister.wait():
                raise SystemExit(f"tar could not list {name}")
    file.unlink()


def hashed(image: str) -> None:
    """sha256sum of every file, in a container."""
    script = "find / -xdev -type f -print0 2>/dev/null | xargs -0 sha256sum"
    argv = [DOCKER, "run", "--rm", "--network=none", "--user=0", "--entrypoint=sh", image, "-c", script]
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    """Print one line per way, with its ratio to the listing."""
    images = tuple(sys.argv[1:3]) or ("tfenv:2.15-cu12", "tfenv:2.15-cu12")
    cells = [cell.name for cell in here().matrix.cells if here().is_locked(cell)][:2]
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        peer = seconds(*(partial(listed, image, work) for image in images))
        told = {
            "docker save, and tar -tv of all layers": peer,
            "sha256sum of all files in containers": seconds(*(partial(hashed, image) for image in images)),
            "tfenv diff, by docker save": seconds(lambda: tfenv(work / "one", *images)),
            "tfenv diff, the same again": seconds(lambda: tfenv(work / "one", *images)),
        }
        room = sides.here(os.environ, here())
        kept = [sides.kept_archive(image, room) for image in images]
        if all(kept):
            paths = [str(path) for path in kept]
            told["tfenv diff, of archives"] = seconds(lambda: tfenv(work / "two", *paths))
        told["tfenv diff, of two locks"] = seconds(lambda: tfenv(work / "three", *cells))
    print(f"{images[0]} and {images[1]}")
    for what, spent in told.items():
        print(f"{what}: {spent:.2f} s, {spent / peer:.2f} of the listing")


if __name__ == "__main__":
    main()
