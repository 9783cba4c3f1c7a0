"""Real cases whose report describes a host or the inside of a container: what the doctor says of each."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from doctor_facts import NOTHING, READY, library
from doctor_fakes import host
from tfenv.doctor.judging import judge
from tfenv.doctor.reading import values
from tfenv_doctor import rules

CASES: dict[str, dict[str, Any]] = {
    case["id"]: case
    for case in json.loads(
        (Path(__file__).resolve().parents[1] / "fixtures" / "doctor_cases.json").read_text()
    )
}


def env_of(text: str) -> dict[str, str]:
    return dict(re.findall(r"^(?:\(in container\) )?([A-Z_]+)=(.*)$", text, re.MULTILINE))


def docker_info(text: str) -> dict[str, Any]:
    """The engine's answer, from what ``docker info`` prints for people."""
    fields = dict(re.findall(r"^ *([\w ]+): (.*)$", text, re.MULTILINE))
    told = {
        "ServerVersion": fields["Server Version"],
        "DockerRootDir": fields["Docker Root Dir"],
        "Runtimes": {name: {} for name in fields["Runtimes"].split()},
    }
    line = "/usr/bin/docker info --format {{json .}}"
    return {"commands": {line: {"status": 0, "out": json.dumps(told)}}, "drop": {"files": ["/etc/docker"]}}


def smi_list(text: str) -> dict[str, Any]:
    listed = "\n".join(line for line in text.splitlines() if line.lstrip().startswith(("GPU ", "MIG ")))
    return {
        "commands": {"nvidia-smi -L": {"status": 0, "out": listed}, "nvidia-smi -q -x": {"status": 127}},
        "env": env_of(text),
    }


def probed(text: str) -> dict[str, Any]:
    said = {"status": 18, "out": re.findall(r"host nvidia-smi: (.*)", text)[0]}
    running = re.findall(r"NVRM version ([\d.]+)", text)[0]
    packages = "\n".join(f"ii  {line}" for line in re.findall(r"dpkg: (.*)", text))
    return {
        "drop": {"links": ["/usr"], "files": ["/sys/module"], "commands": ["modinfo", "dkms"]},
        "files": {
            "/proc/driver/nvidia/version": f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {running}  Tue"
        },
        "commands": {
            "nvidia-smi -L": said,
            "nvidia-smi -q -x": said,
            "dpkg-query": {"status": 0, "out": packages},
        },
    }


def container(text: str) -> dict[str, Any]:
    """Facts from inside, from what was seen of host and container."""
    facts: dict[str, Any] = {"env": env_of(text)}
    if driver := re.findall(r"Driver Version: ([\d.]+)", text):
        facts["module"] = driver[0]
    if found := re.findall(r"NVML library version: ([\d.]+)", text):
        facts["injected"] = []
        facts["libraries"] = [library(f"/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.{found[0]}", found[0])]
        facts["driver"] = {"cuda": {"error": 803, "count": 0}, "nvml": {"error": 18}, "files": []}
    if python := re.findall(r"python: (\d\.\d+)", text):
        facts["python"] = python[0]
    return facts


def on_host(case: dict[str, Any]) -> list[dict[str, str]]:
    text = case["repro_input"]["content"]
    kind = case["repro_input"]["type"]
    if "not find any NVIDIA" in text:
        evidence = host("laptop")
    elif kind == "docker-info":
        evidence = host("server", docker_info(text))
    elif kind in ("nvidia-smi", "env+nvidia-smi"):
        evidence = host("server", smi_list(text))
    elif kind == "env":
        evidence = host("server", {"env": env_of(text)})
    else:
        evidence = host("server", probed(text))
    return [vars(one) for one in judge(values(evidence)).found]


@pytest.mark.parametrize(
    ("case", "finding"),
    [
        ("C02", "host-docker-snap"),
        ("C15", "mig-legacy-device-id"),
        ("C16", "mig-no-multi-gpu"),
        ("C18", "cuda-visible-devices-invalid"),
        ("C20", "driver-needs-reboot"),
        ("C29", "no-gpu"),
    ],
)
def test_case_of_a_host(case: str, finding: str) -> None:
    check(CASES[case], on_host(CASES[case]), finding)


@pytest.mark.parametrize(
    ("case", "finding"), [("C21", "driver-libs-baked-into-image"), ("C28", "host-env-leak-possible")]
)
def test_case_from_inside(case: str, finding: str) -> None:
    facts = {**READY, **container(CASES[case]["repro_input"]["content"])}
    check(CASES[case], rules.judge(facts), finding)


def check(case: dict[str, Any], found: list[dict[str, str]], finding: str) -> None:
    assert found[0]["id"] == finding, [one["id"] for one in found]
    said = " ".join(found[0][key] for key in ("title", "cause", "remedy"))
    expected = case["expected_verdict"]
    assert [word for word in expected["must_mention"] if word not in said] == []
    assert [word for word in expected.get("must_not", ()) if word in said] == []


def test_look_alikes_of_a_snap() -> None:
    case = CASES["C02"]
    plain = json.loads(json.dumps(case).replace("/var/snap/docker/common/var-lib-docker", "/var/lib/docker"))
    without = docker_info(plain["repro_input"]["content"])
    without["commands"] |= {
        f"nvidia-{name} --version": {"status": 127} for name in ("ctk", "container-cli", "container-runtime")
    }
    assert judge(values(host("server", without))).found[0].id == "toolkit-missing"


def test_no_gpu_was_asked_for() -> None:
    assert rules.judge({**READY, **NOTHING})[0]["id"] == "container-without-gpu"
