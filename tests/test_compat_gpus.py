"""Names of GPUs as people and nvidia-smi write them."""

from __future__ import annotations

import pytest
from tfenv import gpus


@pytest.mark.parametrize(
    ("name", "capability", "kind"),
    [
        ("RTX 5090", "12.0", "geforce"),
        ("NVIDIA GeForce RTX 5090", "12.0", "geforce"),
        ("rtx5090", "12.0", "geforce"),
        ("RTX 5090 Laptop GPU", "12.0", "geforce"),
        ("H100", "9.0", "data-centre"),
        ("NVIDIA H100 80GB HBM3", "9.0", "data-centre"),
        ("NVIDIA H100 PCIe", "9.0", "data-centre"),
        ("NVIDIA H100 NVL", "9.0", "data-centre"),
        ("NVIDIA H200", "9.0", "data-centre"),
        ("NVIDIA H200 NVL", "9.0", "data-centre"),
        ("NVIDIA GH200 480GB", "9.0", "data-centre"),
        ("Tesla V100-SXM2-16GB", "7.0", "data-centre"),
        ("Tesla V100S-PCIE-32GB", "7.0", "data-centre"),
        ("A100 80GB PCIe", "8.0", "data-centre"),
        ("NVIDIA A100-SXM4-80GB", "8.0", "data-centre"),
        ("A100-PCIE-40GB", "8.0", "data-centre"),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "8.0", "data-centre"),
        ("GeForce GTX 1080 Ti", "6.1", "geforce"),
        ("gtx1080ti", "6.1", "geforce"),
        ("GTX 1650 SUPER", "7.5", "geforce"),
        ("NVIDIA GeForce RTX 4070 Ti SUPER", "8.9", "geforce"),
        ("NVIDIA GeForce RTX 3080 Laptop GPU", "8.6", "geforce"),
        ("GeForce RTX 2080 with Max-Q Design", "7.5", "geforce"),
        ("RTX 2050", "8.6", "geforce"),
        ("Tesla T4", "7.5", "data-centre"),
        ("GRID T4-16Q", "7.5", "data-centre"),
        ("NVIDIA A10G", "8.6", "data-centre"),
        ("L40S", "8.9", "data-centre"),
        ("NVIDIA L4", "8.9", "data-centre"),
        ("Tesla K80", "3.7", "data-centre"),
        ("Tesla P100-PCIE-16GB", "6.0", "data-centre"),
        ("Quadro RTX 6000", "7.5", "workstation"),
        ("NVIDIA RTX 6000 Ada Generation", "8.9", "workstation"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "12.0", "workstation"),
        ("NVIDIA RTX A6000", "8.6", "workstation"),
        ("A6000", "8.6", "workstation"),
        ("Quadro P4000", "6.1", "workstation"),
        ("NVIDIA TITAN Xp", "6.1", "geforce"),
        ("TITAN RTX", "7.5", "geforce"),
        ("NVIDIA TITAN V", "7.0", "geforce"),
        ("GeForce GTX TITAN X", "5.2", "geforce"),
        ("NVIDIA B200", "10.0", "data-centre"),
        ("GB300", "10.3", "data-centre"),
        ("NVIDIA GB10", "12.1", "workstation"),
        ("DGX Spark", "12.1", "workstation"),
        ("sm_120", "12.0", ""),
        ("sm_90a", "9.0", ""),
        ("compute_75", "7.5", ""),
        ("9.0", "9.0", ""),
        ("cc 8.6", "8.6", ""),
    ],
)
def test_known(name: str, capability: str, kind: str) -> None:
    gpu = gpus.find(name)
    assert gpu
    assert (gpu.capability, gpu.kind) == (capability, kind)


@pytest.mark.parametrize(
    "name",
    [
        "RTX 6000", "RTX 4000", "TITAN X", "RTX", "5090 Super", "RTX 6090", "GTX 9999", "H1000", "V1000",
        "NVIDIA Graphics Device", "Radeon RX 7900", "Intel Arc A770", "MI300X", "", "sm_131", "4.2",
        "A101", "GTX 960M", "RTX 5090 D v9", "T40", "K8", "A", "1080", "NVIDIA",
    ],
)  # fmt: skip
def test_unknown(name: str) -> None:
    assert gpus.find(name) is None


def test_ambiguous_names_say_what_they_could_mean() -> None:
    assert "RTX 6000 Ada" in gpus.ambiguous("NVIDIA RTX 6000")
    assert gpus.ambiguous("RTX 6000 Ada") == ()
    for name in gpus._data()["ambiguous"]["rows"]:
        meant = [gpus.find(one.split(" (")[0]) for one in gpus.ambiguous(name)]
        assert gpus.find(name) is None
        assert len({gpu.capability for gpu in meant if gpu}) > 1, name


def test_every_name_is_found_as_itself_and_as_shown() -> None:
    for gpu, names in gpus.all_capabilities():
        for name in names:
            for written in (name, name.lower(), f"NVIDIA {name}"):
                found = gpus.find(written)
                assert found, written
                assert found.capability == gpu.capability, written


@pytest.mark.parametrize(
    "name", ["GH200", "NVIDIA GH200 144G HBM3e", "GB200", "GB300", "GB10", "DGX Spark", "12.1"]
)
def test_gpus_that_are_made_with_an_arm_cpu(name: str) -> None:
    gpu = gpus.find(name)
    assert gpu and gpu.host == "linux/arm64"
    assert gpus.host_source()


@pytest.mark.parametrize(
    "name", ["H100", "H200", "NVIDIA H200", "H20", "B200", "B300", "RTX 5090", "9.0", "10.3"]
)
def test_gpus_that_look_like_them_are_for_any_host(name: str) -> None:
    gpu = gpus.find(name)
    assert gpu and gpu.host == ""


def test_what_is_known_of_a_capability() -> None:
    volta, hopper = gpus.find("V100"), gpus.find("H100")
    assert volta and hopper
    assert (volta.last_driver, hopper.last_driver) == ("580", "")
    assert hopper.target == "sm_90"
    assert gpus.near("RTX 5091")
    assert gpus.near("5090") == ("RTX 5090",)
    assert gpus.near("1080 Ti") == ("GTX 1080 Ti",)
    assert gpus.source().startswith("https://")
