"""Drive `docker buildx build`: the argument list, the running process, and what went wrong.

The Docker SDK cannot speak to BuildKit: https://github.com/docker/docker-py/issues/2230
"""

from .argv import EXPORT, PLATFORM, PROXY_ARGS, build_argv, client_env
from .diagnosis import BuildError, explain
from .run import BuildResult, run_build

__all__ = [
    "EXPORT",
    "PLATFORM",
    "PROXY_ARGS",
    "BuildError",
    "BuildResult",
    "build_argv",
    "client_env",
    "explain",
    "run_build",
]
