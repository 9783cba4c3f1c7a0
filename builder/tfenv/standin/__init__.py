"""Stand-ins for nvidia/cuda images, for where these cannot be pulled.

A stand-in has the image's library layout and environment, made from NVIDIA's wheels of the versions that
its tag carries, on a Debian whose C library is no older. A verdict on a cell that was built on one is a
verdict on the recipe, not on NVIDIA's image: labels and reports say so.
"""

from .make import StandIn, interpreter, make_standin
from .parts import LABEL, Parts, parts_of
from .python import write_python_tar

__all__ = ["LABEL", "Parts", "StandIn", "interpreter", "make_standin", "parts_of", "write_python_tar"]
