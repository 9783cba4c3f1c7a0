"""The Dockerfile of a stand-in: hermetic, as those of cells are."""

from __future__ import annotations

import json

from .parts import Parts

_DOCKERFILE = """\
# A stand-in for {image}: made by tfenv, not by NVIDIA.

FROM scratch AS bootstrap
ADD essential.tar /
RUN --network=none \\
    --mount=type=bind,from=debs,target=/run/debs \\
    --mount=type=bind,source=tools,target=/run/tools \\
    ["/bin/sh", "/run/tools/bootstrap.sh", "{python}", "{epoch}"]

FROM scratch AS base
COPY --from=bootstrap /layer/ /

FROM base AS cuda
RUN --network=none \\
    --mount=type=bind,from=wheels,target=/run/wheels \\
    --mount=type=bind,source=tools,target=/run/tools \\
    --mount=type=bind,source=place.py,target=/run/place.py \\
    python{python} /run/place.py /run/wheels/cuda {folder} /layer \\
 && sh /run/tools/settle.sh /layer {epoch}

FROM base
COPY --link --from=cuda /layer/ /
{environment}
{labels}
"""


def dockerfile(parts: Parts) -> str:
    """The text of the Dockerfile; its contexts are those that ``tfenv.context.stage`` lays out."""
    return _DOCKERFILE.format(
        image=parts.image,
        python=parts.python,
        epoch=parts.epoch,
        folder=parts.folder,
        environment=_lines("ENV", parts.environment),
        labels=_lines("LABEL", parts.labels),
    )


def _lines(word: str, pairs: dict[str, str]) -> str:
    return "\n".join(f"{word} {name}={json.dumps(value)}" for name, value in pairs.items())
