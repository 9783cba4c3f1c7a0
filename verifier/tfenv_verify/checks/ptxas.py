"""ptxas and libdevice, which XLA needs to compile for a GPU, are where XLA looks and work."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from typing import Mapping

from ..context import Context
from ..declared import Declared
from ..places import build_info, python_folders, scratch
from ..protocol import Report
from ..versions import major_minor, numbers, text

_PTX = """\
.version {isa}
.target {target}
.address_size 64
.visible .entry tfenv_probe(.param .u64 out)
{{
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd2, %rd1;
    st.global.u32 [%rd2], 42;
    ret;
}}
"""


def check(context: Context, report: Report) -> None:
    """XLA finds ptxas and libdevice, and ptxas assembles a kernel."""
    declared = context.declared
    compiled = declared.compiled_cuda or str(build_info().get("cuda_version", ""))
    roots = candidate_roots(compiled, os.environ, python_folders())
    inspect(declared, compiled, roots, shutil.which("ptxas"), report)


def candidate_roots(compiled: str, environ: Mapping[str, str], folders: list[str]) -> list[str]:
    """Where XLA looks for a CUDA toolkit, in its order."""
    found = []
    for flag in shlex.split(environ.get("XLA_FLAGS", "")):
        if flag.startswith("--xla_gpu_cuda_data_dir="):
            found.append(flag.partition("=")[2])
    if compiled:
        found.append("/usr/local/cuda-" + text(major_minor(compiled)))
    found.append("/usr/local/cuda")
    found += [os.path.join(folder, "nvidia", "cuda_nvcc") for folder in folders]
    return found


def inspect(declared: Declared, compiled: str, roots: list[str], on_path: str | None, report: Report) -> None:
    """The first ptxas and the first libdevice among the roots (then PATH) are the ones used."""
    programs = [os.path.join(root, "bin", "ptxas") for root in roots]
    ptxas = next((path for path in programs if os.access(path, os.X_OK)), on_path)
    devices = [os.path.join(root, "nvvm", "libdevice", "libdevice.10.bc") for root in roots]
    libdevice = next((path for path in devices if os.path.isfile(path)), None)
    report.facts.update({"ptxas": ptxas or "", "libdevice": libdevice or ""})
    if libdevice is None:
        report.error(
            "libdevice.10.bc is not where XLA looks: jit_compile=True fails",
            "\n".join(devices),
            "install the nvidia-cuda-nvcc wheel and link /usr/local/cuda to its cuda_nvcc folder",
        )
    if ptxas is None:
        report.error(
            "ptxas is not where XLA looks: it cannot compile kernels",
            "\n".join([*programs, "PATH"]),
            "install the nvidia-cuda-nvcc wheel and link /usr/local/cuda to its cuda_nvcc folder",
        )
        return
    code, output = _run([ptxas, "--version"])
    match = re.search(r"release (\d+\.\d+)", output)
    if code != 0 or match is None:
        report.error(f"{ptxas} --version ended with {code} and tells no release", output)
        return
    report.facts["ptxas_version"] = match.group(1)
    judge_version(declared, compiled, match.group(1), ptxas, report)
    assemble(ptxas, match.group(1), report)


def judge_version(declared: Declared, compiled: str, found: str, ptxas: str, report: Report) -> None:
    """Of the locked wheel, else of the tag; never older than what TensorFlow was compiled for.

    A ptxas compiles for every driver of its major version, so one beside an image of an older CUDA,
    which has no wheels of its own, may be newer than the tag.
    """
    have, need, tag = numbers(found), major_minor(compiled), major_minor(declared.cuda)
    wheel = major_minor(declared.ptxas)
    if wheel and have != wheel:
        report.error(
            f"{ptxas} is of CUDA {found}; the lock has {declared.ptxas}",
            remedy="another ptxas is found first: look at XLA_FLAGS and at PATH",
        )
    beside = wheel and declared.cuda_from == "base" and have[:1] == tag[:1] and have > tag
    if beside:
        report.info(f"{ptxas} is of CUDA {found}, newer than the image's CUDA {declared.cuda}")
    elif tag and have != tag:
        report.error(
            f"{ptxas} is of CUDA {found}; the tag declares CUDA {declared.cuda}",
            remedy="rebuild the image from its lock",
        )
    if need and have < need:
        report.error(
            f"{ptxas} is of CUDA {found}; TensorFlow was compiled for CUDA {compiled} "
            "and emits PTX that an older one does not know",
            remedy=f"use the ptxas of CUDA {text(need)} or newer",
        )
    elif need and have != need and not tag:
        report.warning(f"{ptxas} is of CUDA {found}; TensorFlow was compiled for CUDA {compiled}")


def assemble(ptxas: str, release: str, report: Report) -> None:
    """Assemble a kernel of six lines; sm_80 is known from CUDA 11 on."""
    isa, target = ("7.0", "sm_80") if numbers(release) >= (11,) else ("6.0", "sm_60")
    with tempfile.TemporaryDirectory(dir=scratch(), prefix="tfenv-ptxas-") as folder:
        source, cubin = os.path.join(folder, "probe.ptx"), os.path.join(folder, "probe.cubin")
        with open(source, "w", encoding="ascii") as stream:
            stream.write(_PTX.format(isa=isa, target=target))
        code, output = _run([ptxas, "-arch=" + target, source, "-o", cubin], TMPDIR=folder)
        size = os.path.getsize(cubin) if os.path.isfile(cubin) else 0
    report.facts["cubin_bytes"] = size
    if code != 0 or size == 0:
        report.error(f"{ptxas} does not assemble a small kernel (exit code {code})", output)


def _run(command: list[str], **more: str) -> tuple[int, str]:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(os.environ, **more),
            timeout=40,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return -1, str(error)
    return done.returncode, done.stdout.decode("utf-8", "replace")[-4000:]
