"""Run the verification suite in an image and judge what it says. Fails closed.

The suite (verifier/) is mounted into the container, not baked into the image: any image can be
verified, and a new check changes no digest. Here is only the host's side of it.
"""

from .declaration import CUDA_FOLDERS, FOREIGN, declared_for
from .engine import expecting, on_engine
from .host import host_facts
from .image import verify_image
from .judging import AGAIN, NO_GPU, STATUS, judge
from .kit import kit_commands, write_kit
from .plan import Plan, plan_of
from .protocol import Outcome, take
from .running import FOLDER, Container, Job, Runner, Said, Start, commands, in_one
from .suite import SUITES, Suite, declared_hash, pack, suite_hash
from .told import driver_version, told_host
from .workers import WORKERS, in_network, joined, on_loopback

__all__ = [
    "AGAIN",
    "CUDA_FOLDERS",
    "FOLDER",
    "FOREIGN",
    "NO_GPU",
    "STATUS",
    "SUITES",
    "WORKERS",
    "Container",
    "Job",
    "Outcome",
    "Plan",
    "Runner",
    "Said",
    "Start",
    "Suite",
    "commands",
    "declared_for",
    "declared_hash",
    "driver_version",
    "expecting",
    "host_facts",
    "in_network",
    "in_one",
    "joined",
    "judge",
    "kit_commands",
    "on_engine",
    "on_loopback",
    "pack",
    "plan_of",
    "suite_hash",
    "take",
    "told_host",
    "verify_image",
    "write_kit",
]
