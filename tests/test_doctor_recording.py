"""Recordings: nothing of whose machine it was is in them, and what is no recording is refused calmly."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from doctor_fakes import host
from hypothesis import given, settings
from hypothesis import strategies as st
from tfenv.commands.doctor import command
from tfenv.doctor import careful, looking, sources, table
from tfenv.doctor.evidence import Evidence, NotARecordingError, Ran, dump, load
from tfenv.doctor.judging import judge
from tfenv.doctor.reading import values
from tfenv.doctor.scrub import Scrubber, scrubbed
from tfenv.doctor.sources import Sources, read_file, run

OURS = Scrubber(names=("deepthought", "arthur"), home="/home/arthur")
SECRETS = (
    "GPU-4f9b1c2d-aaaa-bbbb-cccc-0123456789ab",
    "MIG-7e1c2d3f-1111-2222-3333-0123456789ab",
    "1322621049382",
    "deepthought",
    "arthur",
    "52:54:00:12:34:56",
    "10.17.3.99",
    "2001:db8:85a3::8a2e:370:7334",
    "arthur@example.org",
    "https://arthur:secret@index.example.org/simple",
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "/home/ford/data",
)


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("before", ["", "x=", '"', " (", "<uuid>"])
def test_what_is_of_a_machine_is_replaced(secret: str, before: str) -> None:
    text = (
        f"<serial>1322621049382</serial> {before}{secret} end"
        if secret.isdigit()
        else f"{before}{secret} end"
    )
    said = OURS.text(text)
    core = secret.split("//")[-1].split("@")[-1].split("/")[0] if "://" in secret else secret
    assert secret not in said and "ford" not in said
    assert secret.isdigit() or core not in said


@pytest.mark.parametrize(
    "kept",
    [
        "550.127.05",
        "NVRM: Xid (PCI:0000:3b:00): 79",
        "00000000:3B:00.0",
        "96.00.74.00.01",
        "26.1.5+dfsg1",
        "unix:///var/run/docker.sock",
        "/usr/lib/x86_64-linux-gnu/libcuda.so.550.127.05",
        "[ 9.123456] nvidia",
        "5.15.0-125-generic",
        "MIG 1g.10gb     Device  0:",
        "tfenv:2.15.1-cu12.2",
    ],
)
def test_what_decides_is_kept(kept: str) -> None:
    assert OURS.text(kept) == kept


def test_the_same_number_gets_the_same_other_one() -> None:
    one, two = "4f9b1c2d-aaaa-bbbb-cccc-0123456789ab", "5f9b1c2d-aaaa-bbbb-cccc-0123456789ab"
    said = Scrubber().text(f"GPU-{one} GPU-{two} GPU-{one.upper()}").split()
    assert said[0] == said[2] != said[1]
    assert Scrubber().text(said[0]) == said[0]


def test_versions_of_packages_are_no_addresses() -> None:
    line = "dpkg-query --show"
    evidence = Evidence(commands={line: Ran(0, "ii  libcudnn 8.9.6.50"), "dmesg": Ran(0, "from 8.9.6.50 x")})
    commands = scrubbed(evidence, OURS).commands
    assert "8.9.6.50" in commands[line].out and "8.9.6.50" not in commands["dmesg"].out


def test_a_user_may_be_called_as_a_part_of_the_file() -> None:
    scrubber = Scrubber(names=("commands", "nodes", "status"))
    evidence = host("server")
    assert judge(values(scrubbed(evidence, scrubber))).code == 0


def test_a_recording_is_read_back() -> None:
    evidence = host("server")
    assert load(dump(evidence)) == evidence


GOOD = json.loads(dump(Evidence()))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{",
        "{}",
        "[" * 100_000,
        json.dumps({**GOOD, "kind": "other"}),
        json.dumps({**GOOD, "format": 99}),
        json.dumps({**GOOD, "more": 1}),
        json.dumps({**GOOD, "files": []}),
        json.dumps({**GOOD, "files": {"/x": 1}}),
        json.dumps({**GOOD, "folders": {"/x": "y"}}),
        json.dumps({**GOOD, "commands": {"x": {"status": "0"}}}),
        json.dumps({**GOOD, "commands": {"x": {"unknown": 1}}}),
        json.dumps({**GOOD, "nodes": {"/dev/x": {}}}),
        json.dumps({**GOOD, "user": {"uid": "0"}}),
        json.dumps({**GOOD, "recorded": 5}),
        " " * (9 << 20),
    ],
    ids=range(18),
)
def test_what_is_no_recording(text: str) -> None:
    with pytest.raises(NotARecordingError):
        load(text)


_TEXTS = st.text(max_size=60) | st.sampled_from(
    [
        "<nvidia_smi_log><gpu><x/></gpu></nvidia_smi_log>",
        "{",
        '{"Runtimes": 5}',
        '{"ServerVersion": [1]}',
        "0x10de",
        "\x1b[2J",
    ]
)


@settings(max_examples=150, deadline=None)
@given(
    files=st.dictionaries(
        st.sampled_from(
            [*table.FILES, "/sys/bus/pci/devices/0000:01:00.0/device", "/sys/bus/pci/devices/a/b"]
        ),
        _TEXTS,
    ),
    commands=st.dictionaries(
        st.sampled_from(
            [
                "nvidia-smi -q -x",
                "nvidia-smi -L",
                "dmesg",
                "dkms status",
                "docker info --format {{json .}}",
                "rpm -qa",
            ]
        ),
        st.builds(Ran, st.integers(-9, 130), _TEXTS, _TEXTS),
    ),
    env=st.dictionaries(st.sampled_from(["CUDA_VISIBLE_DEVICES", "DOCKER_HOST"]), _TEXTS),
)
def test_whatever_is_recorded_gets_a_verdict(files: Any, commands: Any, env: Any) -> None:
    told = judge(values(Evidence(files=files, commands=commands, env=env)))
    assert told.code in (0, 1, 3, 4)


def test_entities_are_not_expanded() -> None:
    bomb = (
        '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]><nvidia_smi_log>&b;</nvidia_smi_log>'
    )
    assert "smi_driver" not in values(Evidence(commands={"nvidia-smi -q -x": Ran(0, bomb)}))


def replay(path: Path, *options: str) -> Any:
    return CliRunner().invoke(
        command, ["--replay", str(path), *options], catch_exceptions=False, standalone_mode=False
    )


def test_replay(tmp_path: Path) -> None:
    path = tmp_path / "host.json"
    path.write_text(dump(host("server")))
    done = replay(path, "--json")
    data = json.loads(done.stdout)
    assert done.return_value == data["code"] == 0
    assert data["rows"]["best"] and data["rows"]["driver"] == "550.127.05"


def test_a_real_h200_seen_from_a_container() -> None:
    """Recorded on 2026-11-30 with record_only; names and numbers are taken out."""
    done = replay(Path(__file__).with_name("doctor_hosts") / "h200.json")
    assert done.exit_code == 0
    assert "✔ driver           580.159.04, open kernel module, serves CUDA 13.0" in done.stdout
    assert "[inside-of-a-container]" in done.stdout
    assert "best choice: 2.21" in done.stdout


def test_replay_for_one_cell(tmp_path: Path) -> None:
    path = tmp_path / "host.json"
    path.write_text(dump(host("server")))
    refused = CliRunner().invoke(command, ["2.4.4", "--replay", str(path)], standalone_mode=False)
    runs = CliRunner().invoke(command, ["2.15-cu12", "--replay", str(path), "--json"], standalone_mode=False)
    assert refused.return_value == 1 and "does not run" in refused.stdout
    assert runs.return_value == 0 and json.loads(runs.stdout)["verdict"]["outcome"] == "limit"


def test_nothing_drives_the_terminal(tmp_path: Path) -> None:
    evidence = host("server")
    ran = Ran(0, "GPU 0: NVIDIA \x1b[2J\x1b]0;title\x07 H100 (UUID: GPU-1)\n")
    path = tmp_path / "host.json"
    path.write_text(
        dump(replace(evidence, commands={**evidence.commands, "nvidia-smi -L": ran, "nvidia-smi -q -x": ran}))
    )
    assert "\x1b" not in replay(path).stdout


class Host:
    """A host that remembers what was done to it."""

    def __init__(self, files: dict[str, str], nodes: tuple[str, ...] = (), units: str = "") -> None:
        self.files, self.nodes, self.units = files, nodes, units
        self.ran: list[tuple[str, ...]] = []

    def sources(self) -> Sources:
        def read(path: str) -> str:
            if path not in self.files:
                raise FileNotFoundError(path)
            return self.files[path]

        def start(argv: Any, limit: float) -> Ran:
            self.ran.append(tuple(argv))
            return Ran(0, self.units if argv[0] == "systemctl" else "")

        from tfenv.doctor.evidence import Node

        return Sources(
            env={"PATH": "/usr/bin", "HOME": "/home/arthur"},
            read=read,
            names=lambda path: None,
            matching=lambda pattern: [n for n in (*self.nodes, *self.files) if Path(n).match(pattern)],
            link=lambda path: path if path == "/usr/bin/docker" else "",
            node=lambda path: Node("0666", 0, 0, 195, 0, True) if path in self.nodes else None,
            space=lambda path: None,
            run=start,
        )

    def programs(self) -> set[str]:
        return {argv[0] for argv in self.ran}


def test_nvidia_smi_is_not_run_where_it_would_load_the_module() -> None:
    host = Host({"/proc/modules": ""})
    evidence = looking.collect(host.sources())
    assert "nvidia-smi" not in host.programs()
    assert evidence.command("nvidia-smi -L").skipped == careful.SKIPPED_NO_MODULE


def test_nvidia_smi_is_not_run_where_it_would_make_nodes() -> None:
    files = {"/proc/driver/nvidia/version": "NVRM", "/proc/driver/nvidia/gpus/0000:01:00.0/information": "x"}
    host = Host(files, nodes=("/dev/nvidiactl",))
    evidence = looking.collect(host.sources())
    assert "nvidia-smi" not in host.programs()
    assert evidence.command("nvidia-smi -L").skipped == careful.SKIPPED_NO_NODES


def test_nvidia_smi_is_run_where_all_is_there() -> None:
    host = Host({"/proc/driver/nvidia/version": "NVRM"}, nodes=("/dev/nvidiactl", "/dev/nvidia0"))
    looking.collect(host.sources())
    assert "nvidia-smi" in host.programs()


def test_an_engine_that_sleeps_is_not_woken() -> None:
    asleep = Host({}, units="Id=docker.service\nLoadState=loaded\nActiveState=inactive\n")
    looking.collect(asleep.sources())
    awake = Host({}, units="Id=docker.service\nLoadState=loaded\nActiveState=active\n")
    looking.collect(awake.sources())
    assert "/usr/bin/docker" not in asleep.programs()
    assert "/usr/bin/docker" in awake.programs()


def test_no_command_changes_anything() -> None:
    known = {
        "systemctl": "show",
        "docker": "info",
        "podman": "--version",
        "dkms": "status",
        "nvidia-modprobe": "--version",
    }
    host = Host({"/proc/driver/nvidia/version": "NVRM"}, nodes=("/dev/nvidiactl", "/dev/nvidia0"))
    looking.collect(host.sources())
    for argv in host.ran:
        name = argv[0].rsplit("/", 1)[-1]
        assert name not in known or argv[1] == known[name]


def test_a_source_that_fails_spoils_nothing() -> None:
    def fails(argv: Any, limit: float) -> Ran:
        raise OSError("no processes left")

    evidence = looking.collect(replace(Host({}).sources(), run=fails))
    assert evidence.command("dmesg").status == 126


def test_a_source_that_hangs_is_left_behind() -> None:
    import threading

    never = threading.Event()

    def hangs(argv: Any, limit: float) -> Ran:
        never.wait(60)
        return Ran()

    evidence = looking.collect(replace(Host({}).sources(), run=hangs), whole=0.2)
    never.set()
    assert evidence.command("dmesg").late


def test_a_command_is_ended_in_time() -> None:
    assert run(["sleep", "30"], 0.1).late
    assert run(["no-such-program"], 1).status == 127
    assert run(["sh", "-c", "echo out; echo err >&2; exit 3"], 5) == Ran(3, "out\n", "err\n")


def test_a_pipe_in_the_place_of_a_file_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert read_file(str(tmp_path / "pipe")) in (None, "")
    with pytest.raises(FileNotFoundError):
        read_file(str(tmp_path / "nothing"))


def test_variables_with_secrets_are_only_told_to_be_set() -> None:
    env = {
        "HTTPS_PROXY": "http://arthur:secret@proxy",
        "PIP_INDEX_URL": "https://t:k@h/simple",
        "AWS_SECRET": "x",
        "TF_X": "1",
    }
    host = Host({})
    kept = looking.collect(replace(host.sources(), env=env)).env
    assert kept == {"HTTPS_PROXY": "set", "PIP_INDEX_URL": "set", "TF_X": "1"}


def test_the_recorder_alone_needs_no_other_package(tmp_path: Path) -> None:
    import subprocess
    import sys

    folder = Path(sources.__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-S", "-E", "-m", "tfenv.doctor.record_only", str(tmp_path / "host.json")],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    load((tmp_path / "host.json").read_text())
