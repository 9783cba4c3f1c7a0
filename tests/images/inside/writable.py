"""Who we are and where we can write."""

import json
import os
import tempfile
from pathlib import Path


def writes(folder):
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder) as stream:
            return stream.write(b"x") == 1
    except OSError as error:
        return str(error)


with tempfile.TemporaryFile() as stream:
    stream.write(b"x")
print(
    json.dumps(
        {
            "uid": os.getuid(),
            "home": writes(os.environ["HOME"]),
            "temporary": writes(tempfile.gettempdir()),
            "cuda_cache": writes(os.environ["CUDA_CACHE_PATH"]),
            "root": writes("/opt/tfenv"),
        }
    )
)
