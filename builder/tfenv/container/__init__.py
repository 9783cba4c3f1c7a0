"""The only place that runs containers and moves tags: the Docker SDK, with its errors explained."""

from .connect import connect
from .errors import ContainerError, ProgramMissingError, explain_api, explained
from .images import split_name
from .running import Containers, Output, Running
from .spec import Bind, Ended, Spec

__all__ = [
    "Bind",
    "ContainerError",
    "Containers",
    "Ended",
    "Output",
    "ProgramMissingError",
    "Running",
    "Spec",
    "connect",
    "explain_api",
    "explained",
    "split_name",
]
