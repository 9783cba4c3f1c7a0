"""Read what zstd has compressed: with the Python package, or where it is not, with the program."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, cast

from tfenv.errors import IntegrityError, NotReadyError

_CHUNK = 1 << 20


def _package() -> bool:
    try:
        import zstandard  # noqa: F401
    except ImportError:
        return False
    return True


@contextmanager
def unzstd(
    blob: IO[bytes],
    has_package: Callable[[], bool] = _package,
    which: Callable[[str], str | None] = shutil.which,
) -> Iterator[IO[bytes]]:
    """``blob`` uncompressed, to be read from the front.

    Raises:
        NotReadyError: neither is here. IntegrityError: the program says that the data is damaged; the
            package raises its own error.
    """
    if has_package():
        import zstandard

        with zstandard.ZstdDecompressor().stream_reader(blob, read_across_frames=True) as reader:
            yield cast(IO[bytes], reader)
    elif program := which("zstd"):
        with _decompressed(program, blob) as stream:
            yield stream
    else:
        raise NotReadyError(
            "the image's layers are compressed by zstd, which nothing here can read",
            remedy="install the program zstd, or the Python package zstandard",
        )


@contextmanager
def _decompressed(program: str, blob: IO[bytes]) -> Iterator[IO[bytes]]:
    process = subprocess.Popen(
        [program, "-d", "-q", "-c", "--long=31"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
    assert stdin is not None and stdout is not None and stderr is not None
    said: list[bytes] = []
    feeding = threading.Thread(target=_feed, args=(blob, stdin), daemon=True)
    listening = threading.Thread(target=lambda: said.append(stderr.read()), daemon=True)
    try:
        feeding.start()
        listening.start()
        yield stdout
        # A reader that wants no more is no fault of the data.
        if not stdout.read(1) and process.wait():
            listening.join()
            told = b"".join(said).decode("utf-8", "replace").strip()
            raise IntegrityError(
                f"a layer does not decompress: {told}", remedy="get the archive again; it is damaged"
            )
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        feeding.join()
        listening.join()
        stdout.close()
        stderr.close()


def _feed(blob: IO[bytes], into: IO[bytes]) -> None:
    # Whoever reads may have had enough.
    with contextlib.suppress(BrokenPipeError), into:
        shutil.copyfileobj(blob, into, _CHUNK)
