"""What files of others say: requirement lists, Dockerfiles and lists of cells -> questions and findings."""

from .cells import read_cells
from .question import DOCKERFILE_RULES, lint_dockerfile
from .requirements import lint_requirements

__all__ = ["DOCKERFILE_RULES", "lint_dockerfile", "lint_requirements", "read_cells"]
