"""Run the verification suite in an image and judge what it says. Fails closed.

The suite (verifier/) is mounted into the container, not baked into the image: any image can be
verified, and a new check changes no digest. Here is only the host's side of it.
"""

from .declaration import CUDA_FOLDERS, declared_for
from .host import host_facts
from .image import verify_image
from .judging import NO_GPU, judge
from .plan import Plan, plan_of
from .protocol import Outcome, take
from .running import FOLDER, Container, Start, commands
from .suite import Suite, pack, suite_hash

__all__ = [
    "CUDA_FOLDERS",
    "FOLDER",
    "NO_GPU",
    "Container",
    "Outcome",
    "Plan",
    "Start",
    "Suite",
    "commands",
    "declared_for",
    "host_facts",
    "judge",
    "pack",
    "plan_of",
    "suite_hash",
    "take",
    "verify_image",
]
