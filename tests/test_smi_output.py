"""What nvidia-smi prints, as people paste it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tfenv import cli, gpus
from tfenv.smi_output import Seen, seen

LISTED = """\
GPU 0: NVIDIA H200 (UUID: GPU-3d5a1c2e-0000-1111-2222-333344445555)
GPU 1: NVIDIA H200 (UUID: GPU-4d5a1c2e-0000-1111-2222-333344445555)
"""
MIG = """\
GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-3d5a1c2e-0000-1111-2222-333344445555)
  MIG 1g.10gb     Device  0: (UUID: MIG-7089d0f3-293f-58c9-8f8c-5ea666eedbde)
  MIG 2g.20gb+me  Device  1: (UUID: MIG-GPU-3d5a/1/0)
"""
TABLE = """\
Mon Nov 30 21:35:29 2026
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 580.159.04             Driver Version: 580.159.04     CUDA Version: 13.0     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA H200                    On  |   00000000:19:00.0 Off |                    0 |
| N/A   33C    P0             77W /  700W |       0MiB / 143771MiB |      0%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA GeForce RTX 4090       WDDM |   00000000:5B:00.0  On |                  N/A |
|  0%   33C    P8             12W /  450W |       0MiB /  24564MiB |      0%      Default |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  No running processes found                                                             |
+-----------------------------------------------------------------------------------------+
"""
OLD = """\
$ nvidia-smi
| NVIDIA-SMI 470.57.02    Driver Version: 470.57.02    CUDA Version: 11.4     |
|   0  Tesla V100-SXM2...  Off  | 00000000:00:04.0 Off |                    0 |
"""
LOG = """\
==============NVSMI LOG==============

Timestamp                                 : Mon Nov 30 21:35:29 2026
Driver Version                            : 580.159.04
CUDA Version                              : 13.0

Attached GPUs                             : 1
GPU 00000000:19:00.0
    Product Name                          : NVIDIA H200
    MIG Mode
        Current                           : Disabled
"""


@pytest.mark.parametrize(
    ("text", "names", "driver"),
    [
        (LISTED, ["NVIDIA H200"], ""),
        (f"user@host:~$ nvidia-smi -L\n{LISTED}", ["NVIDIA H200"], ""),
        (MIG, ["NVIDIA A100-SXM4-80GB"], ""),
        (TABLE, ["NVIDIA H200", "NVIDIA GeForce RTX 4090"], "580.159.04"),
        (TABLE.replace("\n", "\r\n") + LISTED, ["NVIDIA H200", "NVIDIA GeForce RTX 4090"], "580.159.04"),
        (OLD, ["Tesla V100-SXM2"], "470.57.02"),
        (LOG, ["NVIDIA H200"], "580.159.04"),
        ("name, driver_version\nNVIDIA H200, 580.159.04\n", ["NVIDIA H200"], "580.159.04"),
    ],
)
def test_gpus_and_driver_are_read(text: str, names: list[str], driver: str) -> None:
    assert seen(text) == Seen(tuple(names), driver)
    assert all(gpus.find(name) for name in names)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "No devices were found\n",
        f"{LISTED}RuntimeError: no kernel image is available\n",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n",
        "GPU 0: it is on fire\n",
        "| a | table |\n+---+-------+\n",
        f"epoch 1/5\n{TABLE}",
    ],
)
def test_what_is_not_nvidia_smis_alone_is_left_to_the_rules(text: str) -> None:
    assert seen(text) is None


def test_a_name_as_it_is_listed() -> None:
    listed = LISTED.splitlines()[0]
    assert gpus.as_named(listed) == "NVIDIA H200" and gpus.as_named("NVIDIA H200") == "NVIDIA H200"
    found = gpus.find(listed)
    assert found and found.capability == "9.0"
    assert gpus.as_named("GPU 3: RTX 4090") == "RTX 4090"
    assert gpus.find("GPU 0: Banana 9 (UUID: GPU-1)") is None


def told(capsys: pytest.CaptureFixture[str], *line: str) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = cli.run(["explain", *line, "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("text", "driver"), [(LISTED, ""), (TABLE.replace("GeForce RTX 4090", "H200"), "580")]
)
def test_explain_answers_as_for_the_options(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, driver: str
) -> None:
    path = tmp_path / "smi.txt"
    path.write_text(text)
    code, found = told(capsys, str(path))
    again = [] if not driver else ["--driver", "580.159.04"]
    assert (code, found) == told(capsys, "--gpu", "NVIDIA H200", *again)
    assert code == 0 and found["choices"]
    code, found = told(capsys, str(path), "--tf", "2.15", "--driver", "470.57.02")
    assert (code, found["outcome"]) == (1, "refused")


def test_a_cause_in_it_is_told_before(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "smi.txt"
    path.write_text("Failed to initialize NVML: Driver/library version mismatch\n")
    code, found = told(capsys, str(path))
    assert code == 0 and found["causes"]
    path.write_text(f"{LISTED}nothing that anybody knows\n")
    assert told(capsys, str(path))[0] == 3


def test_the_option_takes_a_listed_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "--gpu", LISTED.splitlines()[0]) == told(capsys, "--gpu", "NVIDIA H200")
