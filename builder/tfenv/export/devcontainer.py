"""devcontainer.json: the image as an editor's container, set up as `tfenv run` does."""

from __future__ import annotations

import json

from tfenv.render import VENV
from tfenv.runline import CACHE_FOLDER, CACHE_VOLUME, SHM_SIZE, STACK, WORKSPACE

from .subject import Subject


def devcontainer(of: Subject) -> str:
    """A dev container on the image, with the host's GPUs where there are some."""
    data = {
        "name": of.cell.name,
        "image": of.image,
        "hostRequirements": {"gpu": "optional"},
        "runArgs": [f"--shm-size={SHM_SIZE}", "--ulimit", f"stack={STACK}"],
        "remoteUser": "tfenv",
        "updateRemoteUserUID": True,
        "workspaceMount": f"source=${{localWorkspaceFolder}},target={WORKSPACE},type=bind",
        "workspaceFolder": WORKSPACE,
        # Kernels compiled at first use are kept there.
        "mounts": [f"source={CACHE_VOLUME},target={CACHE_FOLDER},type=volume"],
        "forwardPorts": [8888] if of.jupyter else [],
        "customizations": {
            "vscode": {
                "extensions": ["ms-python.python", *(["ms-toolsai.jupyter"] if of.jupyter else [])],
                "settings": {"python.defaultInterpreterPath": f"{VENV}/bin/python"},
            }
        },
    }
    return json.dumps({key: value for key, value in data.items() if value != []}, indent=2) + "\n"
