"""What is exported: a cell, all that its lock holds, and the name of its image."""

from __future__ import annotations

from dataclasses import dataclass

from tfenv import factfiles
from tfenv.model import Cell, Environment, Lock, Wheel


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What an export is made from.

    Args:
        lock: all that is in the image; an environment's holds its row's too.
        image: its name in the engine; manifest: its digest, empty where none is recorded.
    """

    cell: Cell
    lock: Lock
    image: str
    manifest: str

    @property
    def wheels(self) -> tuple[Wheel, ...]:
        """What is installed, by name; the installer is not."""
        return tuple(wheel for wheel in self.lock.wheels if wheel.layer != "tool")

    @property
    def runpath(self) -> bool:
        """Whether the wheel of TensorFlow looks for NVIDIA's libraries beside itself, as was read from it."""
        told = factfiles.read("tensorflow").get(self.cell.row.tensorflow, {}).get("runpath") or {}
        return any(told.values())

    @property
    def jupyter(self) -> bool:
        """Whether it is meant to be opened in a browser."""
        return isinstance(self.cell, Environment) and "jupyter" in self.cell.extras

    @property
    def described(self) -> str:
        """The stack in words."""
        cell = self.cell
        return (
            f"TensorFlow {cell.row.tensorflow}, CUDA {cell.cuda_set.cuda}, cuDNN {cell.cuda_set.cudnn}, "
            f"Python {cell.python}"
        )
