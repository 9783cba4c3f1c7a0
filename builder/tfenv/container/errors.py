"""What the engine and the SDK say when something fails, and what it means."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from tfenv.engine import not_reached
from tfenv.errors import NotReadyError, TfenvError


class ContainerError(TfenvError):
    """The engine refused something, for a reason that is not the host's readiness."""


class ProgramMissingError(ContainerError):
    """The image has no such program."""


@contextmanager
def explained(keep: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Turn the SDK's errors, but those of ``keep``, into the project's."""
    import docker.errors
    import requests

    try:
        yield
    except keep:
        raise
    except docker.errors.APIError as error:
        raise explain_api(str(error.explanation or error)) from error
    except (docker.errors.DockerException, requests.RequestException) as error:
        raise not_reached(str(error), os.environ.get("DOCKER_HOST", "")) from error


def explain_api(said: str) -> TfenvError:
    """The project's error for what the engine ``said``."""
    low = said.lower()
    if "could not select device driver" in low or "nvidia-container-cli" in low:
        return NotReadyError(
            f"the engine cannot give a GPU to a container: {said.strip()}",
            remedy="install nvidia-container-toolkit, run `sudo nvidia-ctk runtime configure\n"
            "--runtime=docker` and `sudo systemctl restart docker`; `nvidia-smi` must work first",
        )
    if "no space left on device" in low:
        return NotReadyError(
            f"the engine's disk is full: {said.strip()}",
            remedy="free some: `tfenv gc`, `docker image prune`, `docker builder prune`",
        )
    if "bind source path does not exist" in low:
        return NotReadyError(
            f"the engine does not see this machine's files: {said.strip()}",
            remedy="it runs elsewhere: set TMPDIR to a folder that both see, or run tfenv there",
        )
    missing = ("executable file not found", "no such file or directory: unknown")
    if any(sign in low for sign in missing):
        return ProgramMissingError(
            f"the image lacks a program: {said.strip()}", remedy="use an image that has it"
        )
    return ContainerError(
        f"the engine refused: {said.strip()}",
        remedy="see the engine's log: journalctl -u docker, or where dockerd writes it",
    )
