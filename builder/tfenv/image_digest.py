"""What digest a tag has in its registry today."""

from __future__ import annotations

import os
import re

from tfenv.engine import Run
from tfenv.errors import NotReadyError


def registry_digest(image: str, run: Run, client: str = "") -> str:
    """Ask an image's registry, with the user's own login, through buildx.

    Args:
        image: with a tag, e.g. ``nvidia/cuda:12.2.2-cudnn8-runtime-ubuntu22.04``.
        client: the docker client; empty for the one that ``$TFENV_DOCKER`` names, or ``docker``.

    Returns:
        ``sha256:...`` of the manifest or the index of manifests.

    Raises:
        NotReadyError: the registry does not answer, or has no such image.
    """
    client = client or os.environ.get("TFENV_DOCKER") or "docker"
    argv = [client, "buildx", "imagetools", "inspect", image, "--format", "{{json .Manifest}}"]
    done = run(argv)
    found = re.search(r'"digest": *"(sha256:[0-9a-f]{64})"', done.stdout)
    if done.returncode or found is None:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise NotReadyError(
            f"the registry does not tell the digest of {image}: {said[-1] if said else 'no answer'}",
            remedy="check the network and `docker login`; or write the digest into matrix.yaml: "
            f"{image}@sha256:...; or do without that image: tfenv up CELL --stand-in",
        )
    return found[1]
