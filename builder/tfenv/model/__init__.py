"""The nouns of the design as frozen dataclasses: row, cell, lock and what they are made of."""

from .lock import DebianPackage, Lock, Wheel
from .matrix import Base, Cell, CudaSet, Environment, Matrix, Row
from .parts import BaseKind, CudaFrom, Interpreter, Layer, Link, Rule

__all__ = [
    "Base",
    "BaseKind",
    "Cell",
    "CudaFrom",
    "CudaSet",
    "DebianPackage",
    "Environment",
    "Interpreter",
    "Layer",
    "Link",
    "Lock",
    "Matrix",
    "Row",
    "Rule",
    "Wheel",
]
