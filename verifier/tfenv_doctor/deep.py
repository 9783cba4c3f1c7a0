"""TensorFlow's own view, in a process of its own: what it was built with, what it sees, what it misses."""

from __future__ import annotations

import json
import re
import sys
from typing import Any, Dict, List

from .sources import Sources

_LIMIT = 240
_PROGRAM = r"""
import json, sys
import tensorflow as tf
print("TFENV " + json.dumps({
    "version": tf.__version__,
    "cuda": bool(tf.test.is_built_with_cuda()),
    "gpus": len(tf.config.list_physical_devices("GPU")),
}))
"""
_MISSING = re.compile(
    r"Could not load dynamic library '([^']+)'|[Cc]ould not find or load (?:dynamic )?library '?(lib[\w.+-]+)"
    r"|(lib[\w+-]+\.so(?:\.[\d.]+)?): cannot open shared object"
)
#: Everybody misses these, and nothing needs them.
_HARMLESS = ("libnvinfer", "libnvonnx", "libnvparsers")


def ask(sources: Sources) -> Dict[str, Any]:
    """``version``, ``cuda``, ``gpus``, ``missing``, or ``error``."""
    env = {
        **sources.env,
        "TF_CPP_MIN_LOG_LEVEL": "0",
        "TF_CPP_MAX_VLOG_LEVEL": "1",
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
    }
    status, out, err = sources.run([sys.executable, "-c", _PROGRAM], _LIMIT, env)
    said = re.search(r"^TFENV (\{.*\})$", out, re.MULTILINE)
    if not said:
        last = [line for line in err.strip().splitlines() if line.strip()]
        why = (
            "it did not end in time"
            if status == 124
            else last[-1][:400]
            if last
            else f"it ended with status {status}"
        )
        return {"error": why}
    found: Dict[str, Any] = json.loads(said.group(1))
    found["missing"] = missing(err)
    return found


def missing(text: str) -> List[str]:
    """Libraries that TensorFlow says it cannot load, but those that nothing needs."""
    names = [next(filter(None, match)) for match in _MISSING.findall(text)]
    return [name for name in dict.fromkeys(names) if not name.startswith(_HARMLESS)]
