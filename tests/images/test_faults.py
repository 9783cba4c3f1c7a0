"""The suite finds what is wrong in an image, names the cause, and finds nothing in the untouched one.

Each fault is made in the real image: by a mount, a variable, a wrong declaration or a derived image.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from client import Docker, Image
from faults import Verifier, caught, check_of, failed
from gpu.judging import events
from gpu.running import SEEDS
from inside import ask
from testinfra.host import Host
from tfenv.container import Containers
from tfenv.container.leftovers import LABEL
from tfenv.model import Cell, Lock
from tfenv.pipeline import declared
from tfenv.report import CTRF, JUNIT, MARKDOWN, from_ctrf
from tfenv.verify import NO_GPU
from tfenv.verify.suite import mounted, pack
from tfenv.workspace import Workspace

pytestmark = pytest.mark.image

NOTHING = Path("/dev/null")
# The checks of the smoke suite that do not import TensorFlow, which takes seconds.
QUICK = ("libraries", "nccl", "second_cuda", "ptxas", "environment")


def next_minor(version: str) -> str:
    """``8.9`` becomes ``8.10``."""
    major, minor = version.split(".")[:2]
    return f"{major}.{int(minor) + 1}"


@pytest.fixture(scope="module")
def verifier(docker: Docker, containers: Containers, image: Image, cell: Cell, lock: Lock) -> Verifier:
    return Verifier(docker, containers, image.id, declared(cell, lock, image.id))


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """A folder that everybody may list."""
    for folder in (*tmp_path.parents[:2], tmp_path):
        folder.chmod(0o755)
    return tmp_path


@pytest.fixture
def changed_copy(host: Host, empty: Path):
    """A function that copies a file of the image and changes one byte in it."""

    def copy(path: str, at: int) -> Path:
        data = bytearray(host.file(path).content)
        data[at] ^= 1
        copied = empty / Path(path).name
        copied.write_bytes(data)
        copied.chmod(0o644)
        return copied

    return copy


def test_nothing_is_wrong_with_the_untouched_image(
    workspace: Workspace, image: Image, cell: Cell, tmp_path: Path
):
    """As a user types it: all checks of the full suite, and no GPU is never a pass."""
    words = ("verify", cell.name, "--suite", "full", "--gpus", "none", "--json", "--reports", tmp_path)
    done = subprocess.run(
        [Path(sys.executable).with_name("tfenv"), *words],
        cwd=workspace.start,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3, done.stdout + done.stderr
    told = json.loads(done.stdout)
    report = from_ctrf(told["report"])
    assert (told["verdict"], report.digest, report.reason) == ("unverified", image.id, NO_GPU)
    assert [(c.name, f) for c in report.checks for f in c.findings if f.severity != "info"] == []
    left = {check.name: check.reason for check in report.checks if check.status == "not-run"}
    assert left.keys() >= {"gpu_visible", "gpu_kernels"}
    assert set(left.values()) == {NO_GPU}
    ran = {check.name for check in report.checks if check.status == "pass"}
    assert ran >= {"tensorflow", *QUICK, "record", "pyc", "hygiene", "pip_check"}
    written = {path.name for path in tmp_path.glob("*/*")}
    assert written == {CTRF, JUNIT, MARKDOWN}


def test_another_tensorflow_is_declared(verifier: Verifier, cell: Cell):
    other = f"{next_minor(cell.row.tensorflow)}.0"
    report = verifier.run(declare={"tensorflow": other})
    assert caught(report, tensorflow=rf"{re.escape(cell.row.tensorflow)} is installed; {re.escape(other)}")


def test_another_python_is_declared(verifier: Verifier, cell: Cell):
    report = verifier.run(declare={"python": next_minor(cell.python)})
    assert caught(report, tensorflow=rf"Python {re.escape(cell.python)}\S* runs; ")


def test_another_major_cuda_is_declared(verifier: Verifier, cell: Cell):
    other = f"{int(cell.cuda_set.cuda.split('.')[0]) - 1}.8"
    said = f"declares CUDA {re.escape(other)}"
    report = verifier.run(declare={"cuda": other})
    assert caught(report, tensorflow=said, libraries=rf"libcudart.*{said}", ptxas=said)


def test_another_minor_cuda_is_declared(verifier: Verifier, cell: Cell):
    """It would run, but the tag would not be true."""
    other = next_minor(cell.cuda_set.cuda)
    said = f"declares CUDA {re.escape(other)}"
    assert caught(verifier.run(*QUICK, declare={"cuda": other}), libraries=rf"libcudart.*{said}", ptxas=said)


def test_another_cudnn_is_declared(verifier: Verifier, cell: Cell):
    other = next_minor(cell.cuda_set.cudnn)
    report = verifier.run(*QUICK, declare={"cudnn": other})
    assert caught(report, libraries=rf"libcudnn.*says it is 8.*declares cuDNN {re.escape(other)}")


def test_tensorflow_needs_a_newer_cudnn(verifier: Verifier, cell: Cell):
    """TensorFlow takes a newer minor version than it was compiled with, never an older one."""
    need = next_minor(cell.cuda_set.cudnn)
    report = verifier.run(*QUICK, declare={"compiled": {"cudnn": f"{need}.0"}})
    assert caught(report, libraries=rf"compiled with cuDNN {re.escape(need)}\.0 and refuses this one")


def test_the_wheel_of_a_library_is_another_than_locked(verifier: Verifier):
    entries = [dict(entry) for entry in verifier.declared["libraries"]]
    cufft = next(entry for entry in entries if entry["name"] == "cufft")
    cufft["version"] = "99.0.0.1"
    report = verifier.run(*QUICK, declare={"libraries": entries})
    assert caught(report, libraries=r"libcufft.*; nvidia-cufft-cu12 has 99\.0\.0\.1")


def test_a_cuda_library_is_gone(verifier: Verifier, root: Host):
    path = root.check_output("find /opt/tfenv/cuda -name 'libcufft.so.*'")
    report = verifier.run(*QUICK, binds={path: NOTHING})
    assert caught(report, libraries=rf"{re.escape(Path(path).name)} cannot be opened")


def test_a_part_that_cudnn_opens_late_is_gone(verifier: Verifier, root: Host):
    path = root.check_output("find /opt/tfenv/cuda -name 'libcudnn_cnn_train.so.*'")
    report = verifier.run(*QUICK, binds={path: NOTHING})
    assert caught(report, libraries=rf"{re.escape(Path(path).name)} cannot be opened")


def test_the_loader_does_not_know_the_folders(verifier: Verifier):
    command = "rm /etc/ld.so.conf.d/*cuda*.conf && ldconfig -X"
    with verifier.changed(command) as other:
        report = verifier.run(*QUICK, image=other)
    assert caught(report, libraries="where the loader does not look")


def test_another_nccl_is_declared(verifier: Verifier):
    nccl = {**verifier.declared["compiled"]["nccl"], "version": "2.99.1"}
    report = verifier.run(*QUICK, declare={"compiled": {"nccl": nccl}})
    assert caught(report, nccl=r"NCCL linked into TensorFlow: \d\S+; 2\.99\.1 is declared")


def test_nccl_is_declared_as_loaded(verifier: Verifier):
    nccl = {**verifier.declared["compiled"]["nccl"], "how": "loaded"}
    report = verifier.run(*QUICK, declare={"compiled": {"nccl": nccl}})
    assert caught(report, nccl="is linked into TensorFlow, but declared as loaded")


def test_another_copy_of_a_library_is_loaded_than_found(verifier: Verifier):
    """Nothing is wrong with what the loader finds; LD_LIBRARY_PATH comes first nevertheless."""
    command = "mkdir /srv/other && cp /opt/tfenv/cuda/nvidia/cuda_runtime/lib/libcudart.so.* /srv/other/"
    checks = ("tensorflow", "libraries", "second_cuda")
    with verifier.changed(command) as other:
        assert failed(verifier.run(*checks, image=other)) == set()
        report = verifier.run(*checks, image=other, env={"LD_LIBRARY_PATH": "/srv/other"})
    assert caught(
        report, tensorflow=r"/srv/other/libcudart\S+ is loaded; the loader itself finds /opt/tfenv/"
    )
    assert caught(report, tensorflow=r"/srv/other/libcudart\S+ is loaded; the image's CUDA is in /opt/tfenv/")


def test_a_part_of_cudnn_is_another_than_locked(verifier: Verifier, root: Host):
    """Each part tells its own version; no GPU is needed to see it."""
    path = root.check_output("find /opt/tfenv/cuda -name 'libcudnn_ops_infer.so.*'")
    entries = [dict(entry) for entry in verifier.declared["libraries"]]
    part = next(entry for entry in entries if entry["name"] == "cudnn_ops_infer")
    part["version"] = "8.8.0.1"
    report = verifier.run(*QUICK, declare={"libraries": entries})
    assert caught(
        report, libraries=rf"{re.escape(path)}\) says it is 8\.9\S+; nvidia-cudnn-cu12 has 8\.8\.0\.1"
    )


def test_there_is_a_second_cuda(verifier: Verifier):
    command = """
      mkdir /opt/other && cp /opt/tfenv/cuda/nvidia/cuda_runtime/lib/libcudart.so.* /opt/other/
      echo /opt/other > /etc/ld.so.conf.d/zz-other.conf && ldconfig -X
    """
    with verifier.changed(command) as other:
        report = verifier.run(*QUICK, image=other)
    assert caught(report, second_cuda=r"libcudart is in the image 2 times: /opt/other/\S+ and /opt/tfenv/")


def test_an_older_cuda_comes_first(verifier: Verifier):
    """A toolkit of the base image that shadows the wheels': the classic of hand-made images."""
    command = """
      mkdir -p /usr/local/cuda-11.8/lib64
      cp /opt/tfenv/cuda/nvidia/cuda_runtime/lib/libcudart.so.* /usr/local/cuda-11.8/lib64/
    """
    with verifier.changed(command) as other:
        report = verifier.run(*QUICK, image=other)
    assert caught(report, second_cuda=r"libcudart is in the image 2 times: .*/usr/local/cuda-11\.8/")


def test_ptxas_is_gone(verifier: Verifier, root: Host):
    path = root.check_output("readlink -f /usr/local/cuda/bin/ptxas")
    assert caught(verifier.run(*QUICK, binds={path: NOTHING}), ptxas="ptxas is not where XLA looks")


def test_libdevice_is_gone(verifier: Verifier, root: Host, empty: Path):
    path = root.check_output("readlink -f /usr/local/cuda/nvvm/libdevice")
    assert caught(verifier.run(*QUICK, binds={path: empty}), ptxas="libdevice.10.bc is not where XLA looks")


def test_a_file_is_changed(verifier: Verifier, changed_copy, site_packages: str, cell: Cell):
    """One bit, and the size is the same."""
    path = f"{site_packages}/tensorflow-{cell.row.tensorflow}.dist-info/LICENSE"
    report = verifier.run("record", "pyc", "pip_check", binds={path: changed_copy(path, 100)})
    assert caught(report, record=rf"tensorflow {re.escape(cell.row.tensorflow)}: 1 files .*LICENSE: sha256")


def test_a_file_is_cut_short(verifier: Verifier, site_packages: str, empty: Path):
    path = f"{site_packages}/keras/__init__.py"
    (empty / "short").write_text("# nothing\n")
    (empty / "short").chmod(0o644)
    report = verifier.run("record", "pyc", "pip_check", binds={path: empty / "short"})
    assert caught(
        report, record=r"keras/__init__\.py: 10 bytes, recorded \d+", pyc=r"keras/__pycache__/__init__"
    )


def test_a_file_is_in_no_record(verifier: Verifier, site_packages: str):
    """A patch laid over a package, a start-up file, a script: nothing else would look at them."""
    new = (f"{site_packages}/keras/patch.py", f"{site_packages}/evil.pth", "/opt/tfenv/venv/bin/tool")
    with verifier.changed(f"touch {' '.join(new)}") as other:
        report = verifier.run("record", image=other)
    assert caught(report, record=r"3 files are in no RECORD; first: ")
    told = check_of(report, "record").findings[0].evidence.splitlines()
    assert sorted(told) == sorted(new)


def test_a_distribution_has_no_record(verifier: Verifier, site_packages: str):
    with verifier.changed(f"rm {site_packages}/wrapt-*.dist-info/RECORD") as other:
        report = verifier.run("record", image=other)
    assert caught(report, record=r"1 distributions have no RECORD.*\nwrapt ")


def test_byte_code_is_stale(verifier: Verifier, changed_copy, host: Host):
    """Python would run it without a look at the source: nobody else notices."""
    asked = "import importlib.util; print(importlib.util.find_spec('keras').cached)"
    path = host.check_output("python -c %s", asked)
    report = verifier.run("record", "pyc", "pip_check", binds={path: changed_copy(path, 12)})
    assert caught(report, pyc=r"1 \.pyc files do not match their source.*keras/__pycache__")


def test_the_folder_of_compiled_kernels_cannot_be_written(verifier: Verifier, image: Image, empty: Path):
    """It works, slowly, each time: a warning."""
    cache = image.environment["CUDA_CACHE_PATH"]
    report = verifier.run(*QUICK, binds={str(Path(cache).parent): empty})
    assert failed(report) == set()
    told = [f for f in check_of(report, "environment").findings if f.severity == "warning"]
    assert [f.message for f in told] == [f"the cache of compiled kernels cannot be written: {cache}"]
    assert cache in told[0].remedy


def test_the_home_folder_cannot_be_written(verifier: Verifier, image: Image, empty: Path):
    home = image.environment["HOME"]
    assert caught(
        verifier.run(*QUICK, binds={home: empty}), environment=f"HOME is {home}, in which user 1000"
    )


def test_a_variable_of_the_image_is_overwritten(verifier: Verifier):
    report = verifier.run(*QUICK, env={"NVIDIA_DRIVER_CAPABILITIES": "graphics"})
    assert caught(
        report, environment=r"NVIDIA_DRIVER_CAPABILITIES is 'graphics'; 'compute,utility' is declared"
    )


@pytest.mark.parametrize("given", ["void", "0"])
def test_a_container_runtime_sets_the_devices(verifier: Verifier, given: str):
    report = verifier.run("environment", env={"NVIDIA_VISIBLE_DEVICES": given})
    assert failed(report) == set()
    assert given in check_of(report, "environment").findings[0].message


def test_a_suite_that_runs_only_some_of_its_checks_is_no_pass(verifier: Verifier):
    report = verifier.run("environment")
    assert (report.verdict, report.exit_code) == ("unverified", 3)
    assert report.reason.startswith("the suite did not plan tensorflow, libraries, ")


def test_there_is_a_compiler(verifier: Verifier, empty: Path):
    (empty / "gcc").write_text("#!/bin/sh\n")
    (empty / "gcc").chmod(0o755)
    report = verifier.run("hygiene", binds={"/usr/local/bin/gcc": empty / "gcc"})
    assert caught(report, hygiene=r"a compiler is in the image\n/usr/local/bin/gcc")


def test_a_proxy_is_set_and_its_password_is_not_told(verifier: Verifier):
    report = verifier.run("hygiene", env={"https_proxy": "http://me:hunter2@proxy.example:3128"})
    assert caught(report, hygiene=r"proxy variables are set.*\nhttps_proxy$")
    assert "hunter2" not in repr(report)


def test_apts_lists_are_left(verifier: Verifier, empty: Path):
    (empty / "debian_dists_bookworm_InRelease").write_text("x")
    report = verifier.run("hygiene", binds={"/var/lib/apt/lists": empty})
    assert caught(report, hygiene=r"1 files of apt's lists are in the image")


def test_a_required_wheel_is_missing(verifier: Verifier):
    """Nothing loads libclang, TensorFlow only requires it: import and computation still work."""
    with verifier.changed("pip uninstall --yes --quiet libclang") as other:
        report = verifier.run("tensorflow", "record", "pyc", "pip_check", image=other)
    assert caught(report, pip_check=r"tensorflow \S+ requires libclang, which is not installed")


def test_tensorflow_cannot_be_imported(verifier: Verifier):
    with verifier.changed("pip uninstall --yes --quiet wrapt") as other:
        report = verifier.run("tensorflow", "pip_check", image=other)
    assert caught(report, tensorflow="cannot be imported: .*wrapt", pip_check="requires wrapt")


def test_the_wheel_is_for_the_cpu_alone(verifier: Verifier, seeds: Path):
    """It imports and computes like the right one: only its own word tells."""
    env = {"PYTHONPATH": SEEDS, "TFENV_TEST_SEEDS": "without_cuda"}
    report = verifier.run("tensorflow", binds={SEEDS: seeds}, env=env)
    assert caught(report, tensorflow="built without CUDA: it can never use a GPU")


def test_another_distribution_brings_tensorflow(verifier: Verifier, site_packages: str):
    command = f"""
      cd {site_packages} && mv tensorflow-2.*.dist-info tensorflow_cpu-2.0.0.dist-info
      sed -i 's/^Name: tensorflow$/Name: tensorflow-cpu/' tensorflow_cpu-2.0.0.dist-info/METADATA
    """
    with verifier.changed(command) as other:
        report = verifier.run("tensorflow", image=other)
    assert caught(report, tensorflow=r"TensorFlow none is installed; \S+ is declared")


def test_another_tensorflow_is_found_first(verifier: Verifier, empty: Path):
    (empty / "tensorflow").mkdir(mode=0o755)
    (empty / "tensorflow/__init__.py").write_text('__version__ = "2.4.0"\n')
    report = verifier.run("tensorflow", binds={"/srv/mine": empty}, env={"PYTHONPATH": "/srv/mine"})
    assert caught(report, tensorflow=r"TensorFlow 2\.4\.0 is imported; \S+ is declared")


def test_numpy_is_replaced_by_one_that_tensorflow_does_not_accept(verifier: Verifier, site_packages: str):
    with verifier.changed(
        f"sed -i 's/^Version: .*/Version: 9.0.0/' {site_packages}/numpy-*/METADATA"
    ) as other:
        report = verifier.run("pip_check", "record", image=other)
    assert caught(
        report,
        pip_check=r"tensorflow \S+ has requirement numpy\S+, but you have numpy 9\.0\.0",
        record="numpy",
    )


def test_of_a_distribution_only_its_metadata_is_left(verifier: Verifier, site_packages: str):
    """pip thinks that all is well."""
    with verifier.changed(f"rm -r {site_packages}/termcolor") as other:
        report = verifier.run("record", image=other)
    assert caught(report, record=r"termcolor \S+: \d+ files .*termcolor/__init__\.py: ")


def test_a_library_is_loaded_twice_and_from_another_cuda(verifier: Verifier):
    """A package that brings its own copy, under a name of its own inside: the loader takes both."""
    command = """
      mkdir /srv/other && cd /srv/other
      cp /opt/tfenv/cuda/nvidia/cuda_runtime/lib/libcudart.so.12 libcudart.so.11.0
      sed -i 's/libcudart\\.so\\.12/libcudarx.so.12/g' libcudart.so.11.0
    """
    preload = {"LD_PRELOAD": "/srv/other/libcudart.so.11.0"}
    with verifier.changed(command) as other:
        report = verifier.run("tensorflow", "environment", image=other, env=preload)
    assert caught(report, tensorflow="libcudart is loaded 2 times: .*/srv/other/libcudart.so.11.0")
    assert caught(report, tensorflow="libraries of more than one CUDA are loaded")
    told = check_of(report, "environment").findings
    assert any("LD_PRELOAD=/srv/other" in finding.evidence for finding in told)


def test_the_image_brings_a_libcuda_that_is_no_driver(verifier: Verifier):
    command = """
      cp /opt/tfenv/cuda/nvidia/cuda_runtime/lib/libcudart.so.12 /usr/lib/x86_64-linux-gnu/libcuda.so.1
      ldconfig -X
    """
    with verifier.changed(command) as other:
        report = verifier.run("gpu_visible", image=other)
    assert caught(
        report, gpu_visible=r"the probe of the driver ended with code 1\n(.*\n)*.*cuDriverGetVersion"
    )


def test_ptxas_is_of_another_cuda(verifier: Verifier, root: Host, empty: Path):
    path = root.check_output("readlink -f /usr/local/cuda/bin/ptxas")
    (empty / "ptxas").write_text("#!/bin/sh\necho release 11.0\n")
    (empty / "ptxas").chmod(0o755)
    report = verifier.run("ptxas", binds={path: empty / "ptxas"})
    assert caught(report, ptxas=r"is of CUDA 11\.0; .* was compiled for CUDA 1")
    assert caught(report, ptxas="does not assemble a small kernel")


def test_variables_change_tensorflow(verifier: Verifier):
    """It is no fault, but the first thing to know where a result surprises."""
    env = {"TF_ENABLE_ONEDNN_OPTS": "0", "TF_XLA_FLAGS": "--tf_xla_auto_jit=2", "NVIDIA_TF32_OVERRIDE": "0"}
    report = verifier.run("environment", env=env)
    assert failed(report) == set()
    (told,) = check_of(report, "environment").findings
    assert (told.severity, told.evidence.splitlines()) == ("info", [f"{n}={env[n]}" for n in sorted(env)])


def test_there_is_too_little_memory(docker: Docker, verifier: Verifier):
    """The kernel ends the biggest process; the suite lives to tell."""
    with mounted(pack(), verifier.declared) as folder:
        limit = ("--memory", "100m", "--memory-swap", "100m")
        command = ("python", "-B", "/srv/suite/verify.pyz", "--check", "tensorflow")
        options = ("--rm", "--network", "none", "--volume", f"{folder}:/srv/suite:ro", *limit)
        done = docker.try_("run", *options, verifier.image, *command)
    (event,) = events(done.stdout)
    (told,) = event["findings"]
    assert (event["status"], told["message"]) == ("fail", "tensorflow was killed by SIGKILL")
    assert "memory limit" in told["remedy"]


def test_tensorboard_cannot_start(verifier: Verifier, site_packages: str):
    with verifier.changed(f"rm -r {site_packages}/pkg_resources") as other:
        report = verifier.run("tensorboard", image=other)
    assert caught(report, tensorboard=r"TensorBoard does not start.*\n(.*\n)*.*pkg_resources")


def test_tensorboard_is_gone(verifier: Verifier):
    with verifier.changed("pip uninstall --yes --quiet tensorboard") as other:
        report = verifier.run("tensorboard", image=other)
    assert caught(report, tensorboard="TensorBoard is in the lock, but not installed")


def test_a_changed_image_has_no_other_configuration(verifier: Verifier, containers: Containers, image: Image):
    """What the faults above are made in is the image but for the fault."""
    with verifier.changed("true") as other:
        told = containers.image(other)
    assert told
    del told["Config"]["Labels"][LABEL]  # of the container that it was made in
    names = ("User", "Env", "Cmd", "WorkingDir", "Labels", "Volumes")
    assert {name: told["Config"][name] for name in names} == {name: image.config[name] for name in names}


def test_the_scripts_that_ask_say_something(host: Host, site_packages: str):
    """A script that looked at nothing would find nothing wrong."""
    assert ask(host, "bytecode", site_packages)["modules"] > 1000
    assert len(ask(host, "certificates")["bundle"]) > 100
    assert len(ask(host, "distributions")) > 40
