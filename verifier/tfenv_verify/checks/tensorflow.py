"""TensorFlow imports, is the declared one, and computes a known result."""

from __future__ import annotations

import platform
import re
import time
import traceback
from typing import Any

from ..context import Context
from ..declared import Declared
from ..distributions import Distribution, asked_for, installed, normalized
from ..places import site_folders
from ..protocol import Report
from ..versions import agree, major_minor, text
from ._loaded import compare_loaded
from .libraries import of_extra


def check(context: Context, report: Report) -> None:
    """TensorFlow imports, is the declared version, and computes a known result."""
    started = time.monotonic()
    try:
        import tensorflow as tf
    except Exception as error:
        report.error(
            f"TensorFlow cannot be imported: {type(error).__name__}: {error}",
            traceback.format_exc(),
            "the last line of the traceback names what is missing or does not fit",
        )
        return
    if context.declared.foreign:
        report.info(
            "nothing is declared of this image: what is loaded is held to what TensorFlow was compiled for, "
            "and to nothing else"
        )
    report.facts["import_seconds"] = round(time.monotonic() - started, 2)
    imported = str(getattr(tf, "__version__", f"of {getattr(tf, '__path__', 'nowhere')}"))
    report.facts["tensorflow"] = imported
    report.facts["python"] = platform.python_version()
    mine = [dist for dist in installed(site_folders()) if normalized(dist.name) == "tensorflow"]
    report.facts["distribution"] = " and ".join(dist.version for dist in mine)
    # Before anything is asked of it: what shadows TensorFlow may lack all the rest.
    of_this_release(context.declared, imported, mine, report)
    info = dict(tf.sysconfig.get_build_info())
    report.facts["build_info"] = {key: str(value) for key, value in sorted(info.items())}
    compare(
        context.declared,
        extra=asked_for(mine[0], "and-cuda") if mine else {},
        python=platform.python_version(),
        with_cuda=bool(tf.test.is_built_with_cuda()),
        build_info=info,
        report=report,
    )
    started = time.monotonic()
    compute(tf, report)
    report.facts["compute_seconds"] = round(time.monotonic() - started, 2)
    compare_loaded(context.declared, report)


def of_this_release(declared: Declared, imported: str, mine: list[Distribution], report: Report) -> None:
    """The installed distribution and the module that was imported are of the declared release.

    The module knows no post-release, which is another wheel of the same sources: 2.15.0.post1 says
    that it is 2.15.0. A candidate is written 2.22.0-rc0 in one place and 2.22.0rc0 in the other.
    """
    wanted = declared.tensorflow
    if not wanted:
        return
    plain = re.sub(r"-(?=rc)", "", imported)
    if plain != wanted and plain != re.sub(r"\.post\d+$", "", wanted):
        report.error(
            f"TensorFlow {imported} is imported; {wanted} is declared",
            remedy="rebuild the image from its lock; look at PYTHONPATH",
        )
    for version in [dist.version for dist in mine] or ["none"]:
        if version != wanted:
            report.error(
                f"TensorFlow {version} is installed; {wanted} is declared",
                remedy="rebuild the image from its lock",
            )


def compare(
    declared: Declared,
    *,
    python: str,
    with_cuda: bool,
    build_info: dict[str, Any],
    report: Report,
    extra: dict[str, str] | None = None,
) -> None:
    """Declared against what is there. What is not declared is not compared.

    Args:
        extra: the lowest versions that the wheel's own extra ``and-cuda`` asks for.
    """
    if declared.python and not agree(python, declared.python):
        report.error(
            f"Python {python} runs; {declared.python} is declared",
            remedy="look at PATH: the environment's own folder has to come first",
        )
    if not with_cuda:
        message = "this TensorFlow was built without CUDA: it can never use a GPU"
        if declared.cuda:
            report.error(message, remedy="install tensorflow, not tensorflow-cpu")
        else:
            report.info(message)
    compiled = build_info
    if not any(key.startswith(("cuda", "cudnn")) for key in build_info):
        compiled = of_extra(extra or {})
        if compiled and with_cuda:
            report.info(
                "TensorFlow's build information names no CUDA; its extra and-cuda asks for at least "
                + " and ".join(f"{key[: -len('_version')]} {value}" for key, value in compiled.items())
            )
    for what, wanted in (("cuda", declared.compiled_cuda), ("cudnn", declared.compiled_cudnn)):
        built = str(compiled.get(f"{what}_version", ""))
        if wanted and built and not agree(built, wanted):
            report.error(
                f"the wheel says that it was compiled for {what} {built}; "
                f"{wanted} is declared as what it was compiled for",
                remedy="the declaration is wrong: read the wheel again (tfenv lock)",
            )
        elif wanted and with_cuda and not built:
            (report.info if declared.foreign else report.error)(
                f"TensorFlow's build information does not name {what}: "
                f"nothing shows that it was compiled for {what} {wanted}",
                remedy="the wheel is not the declared release: rebuild the image from its lock",
            )
    for what, tag, told in (
        ("CUDA", declared.cuda, declared.compiled_cuda),
        ("cuDNN", declared.cudnn, declared.compiled_cudnn),
    ):
        said = str(compiled.get(f"{what.lower()}_version", ""))
        for built in dict.fromkeys(filter(None, (said, told))):
            serves(what, built, tag, report)
    built = str(compiled.get("cuda_version", ""))
    have, need = major_minor(declared.cuda), major_minor(built)
    if have[:1] == need[:1] and have > need and not agree(built, declared.cuda):
        # CUDA promises compatibility within a major version, but the tag has to say the truth.
        severity = report.info if declared.compiled_cuda else report.error
        severity(f"compiled for CUDA {built}, declared with CUDA {declared.cuda}")


def serves(what: str, built: str, tag: str, report: Report) -> None:
    """The tag's libraries are of the major version that was compiled for, and not older."""
    need, have = major_minor(built), major_minor(tag)
    if not need or not have:
        return
    if need[0] != have[0]:
        report.error(
            f"TensorFlow was compiled for {what} {built}, the tag declares {what} {tag}",
            remedy="a wheel only runs with the major version that it was compiled for",
        )
    elif have < need[: len(have)]:
        report.error(
            f"TensorFlow was compiled for {what} {built}; the tag declares {what} {tag}, which is older",
            remedy=f"use {what} {text(need)} or a newer {need[0]}.x",
        )


def compute(tf: Any, report: Report) -> None:
    """Small integers in float32 are exact on every device, so equality is the test."""
    with tf.device("/CPU:0"):
        a = tf.constant([[1.0, 2.0], [3.0, 4.0]])
        b = tf.constant([[5.0, 6.0], [7.0, 8.0]])
        product = tf.linalg.matmul(a, b).numpy().tolist()
        x = tf.Variable([1.0, 2.0, 3.0])
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(x * x * x)
        gradient = tape.gradient(loss, x).numpy().tolist()
    for what, got, expected in (
        ("a matrix product", product, [[19.0, 22.0], [43.0, 50.0]]),
        ("a gradient", gradient, [3.0, 12.0, 27.0]),
    ):
        if got != expected:
            report.error(f"{what} on the CPU gives {got}, not {expected}")
