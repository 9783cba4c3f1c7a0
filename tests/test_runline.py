from __future__ import annotations

import csv
from pathlib import Path

import pytest
from tfenv.engine import Completed
from tfenv.runline import (
    NO_GPU,
    ImageMissingError,
    choose_gpus,
    first_image,
    gpu_here,
    quoted,
    run_argv,
)


def test_a_full_line(snapshot):
    line = run_argv(
        "tfenv:2.15-cu12",
        gpus="all",
        tty=True,
        user=(1000, 1001),
        read_only=True,
        workdir=Path("/home/me/my project"),
        mounts=["/data:/data:ro"],
        ports=["6006:6006"],
        environment=["TF_CPP_MIN_LOG_LEVEL=2", "TOKEN"],
        command=["python", "-c", "print('hi')"],
    )
    assert quoted(line) == snapshot


def test_the_least(snapshot):
    assert quoted(run_argv("tfenv:2.15")) == snapshot


def test_input_without_a_terminal_and_no_gpu():
    line = run_argv("x", interactive=True)
    assert "-i" in line and "-it" not in line and "--gpus" not in line and "--user" not in line


def test_under_a_rootless_engine_the_caller_is_root_inside():
    line = run_argv("x", user=(1000, 1000), rootless=True)
    assert line[line.index("--user") + 1] == "0:0"


def test_every_user_has_a_volume_for_compiled_kernels():
    def volume(**more):
        line = run_argv("x", **more)
        return line[line.index("-v") + 1].split(":")[0]

    assert volume(user=(1234, 5)) == volume(user=(1234, 6), rootless=True) == "tfenv-cache-1234"
    assert volume(user=(0, 0)) == "tfenv-cache-0"
    assert volume() == "tfenv-cache-1000"


def test_options_come_before_the_image_and_the_command_after():
    line = run_argv("image", ports=["1:2"], command=["image", "-p"])
    assert line[-5:] == ["-p", "1:2", "image", "image", "-p"]


def test_no_registry_is_asked_for_an_image():
    assert "--pull=never" in run_argv("tfenv:2.15")


def test_an_image_that_is_missing_has_to_be_built():
    asked = []

    def run(argv):
        asked.append(list(argv))
        return Completed(0 if argv[-1] == "tfenv:here" else 1, "", "")

    assert first_image(["tfenv:x", "tfenv:here"], "2.15", "/bin/docker", run) == "tfenv:here"
    with pytest.raises(ImageMissingError, match="no image tfenv:x here") as caught:
        first_image(["tfenv:x"], "2.15-cell", "/bin/docker", run)
    assert caught.value.remedy == "type: tfenv build 2.15-cell"
    names = ["tfenv:x", "tfenv:here", "tfenv:x"]
    assert asked == [["/bin/docker", "image", "inspect", name] for name in names]


@pytest.mark.parametrize("path", ["/a,b", '/a"b', '/a,"b', "/plain"])
def test_a_folder_with_a_comma_or_a_quote_stays_one_field(path):
    line = run_argv("x", workdir=Path(path))
    (fields,) = csv.reader([line[line.index("--mount") + 1]])
    assert fields == ["type=bind", f"source={path}", "target=/workspace"]


def test_a_list_of_devices_is_quoted_for_docker():
    line = run_argv("x", gpus="device=0,1")
    assert line[line.index("--gpus") + 1] == '"device=0,1"'
    assert '"device=0,1"' in run_argv("x", gpus='"device=0,1"')


@pytest.mark.parametrize(
    ("asked", "here", "expected"),
    [
        ("auto", True, ("all", "")),
        ("auto", False, (None, NO_GPU)),
        ("none", True, (None, "")),
        ("all", False, ("all", "")),
        ("device=0", True, ("device=0", "")),
    ],
)
def test_which_gpus(asked, here, expected):
    assert choose_gpus(asked, here) == expected


def test_is_a_gpu_here():
    assert gpu_here(lambda argv: False, lambda path: path == "/dev/nvidiactl")
    assert gpu_here(lambda argv: argv[0] == "nvidia-smi", lambda path: False)
    assert not gpu_here(lambda argv: False, lambda path: False)
