"""Run the verification suite in the image with a fault made on purpose."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from client import Docker
from tfenv.container import Bind, Containers, Running, Spec
from tfenv.report import Check, Host, Report
from tfenv.verify import Suite, verify_image


@dataclass(frozen=True)
class Verifier:
    """The suite, ready to run in ``image``, which is ``declared`` to be something."""

    docker: Docker
    containers: Containers
    image: str
    declared: Mapping[str, Any]

    def run(
        self,
        *checks: str,
        suite: Suite = "smoke",
        declare: Mapping[str, Any] | None = None,
        binds: Mapping[str, Path] | None = None,
        env: Mapping[str, str] | None = None,
        image: str = "",
        options: tuple[str, ...] = (),
        shm: str = "",
    ) -> Report:
        """Verify, without a GPU.

        Args:
            checks: only these; none are all of the suite.
            declare: replaces declared values; ``compiled`` is merged.
            binds: the file or folder of this machine to see at a path of the image, read-only.
            env: more variables. image: another image. options: of the suite. shm: size of /dev/shm.
        """
        ref = image or self.image
        more = tuple(Bind(source, target) for target, source in (binds or {}).items())
        only = ("--check", *checks) if checks else ()

        def start(spec: Spec) -> AbstractContextManager[Running]:
            command = (*spec.command, *options, *only)
            spec = replace(spec, binds=spec.binds + more, env=env or {}, command=command)
            return self.containers.container(replace(spec, shm_size=shm or spec.shm_size))

        told = {**self.declared, **(declare or {})}
        told["compiled"] = {**self.declared["compiled"], **told["compiled"]}
        digest = self.containers.inspect(ref)
        return verify_image(ref, told, digest=digest, host=Host(), start=start, suite=suite)

    @contextmanager
    def changed(self, command: str) -> Iterator[str]:
        """The name of an image made from this one by one ``command`` of root; removed afterwards."""
        name = f"tfenv-test-{uuid.uuid4().hex[:12]}:changed"
        shell = Spec(
            image=self.image, entrypoint=("sh", "-ec"), command=(command,), user="0", read_only=False
        )
        with self.containers.container(shell) as running:
            said = b"".join(out + err for out, err in running.output())
            assert running.wait().status == 0, said.decode()
            # What the container was started with would stay in the image's configuration.
            keep = ("USER 1000:1000", "ENTRYPOINT []", 'CMD ["python"]')
            changes = [word for line in keep for word in ("--change", line)]
            self.docker("commit", *changes, running.id, name)
        try:
            yield name
        finally:
            self.containers.remove(name)


def failed(report: Report) -> set[str]:
    """The names of the failed checks."""
    return {check.name for check in report.checks if check.status == "fail"}


def check_of(report: Report, name: str) -> Check:
    """The check ``name``, which has to be in the report."""
    return next(check for check in report.checks if check.name == name)


def caught(report: Report, **causes: str) -> bool:
    """Whether exactly these checks failed, each with an error that tells its cause (a pattern).

    An error that helps says what to do next, too.
    """
    assert report.verdict == "fail"
    assert report.exit_code == 1
    assert failed(report) == set(causes), [(c.name, c.findings) for c in report.checks if c.status == "fail"]
    for name, cause in causes.items():
        errors = [f for f in check_of(report, name).findings if f.severity == "error"]
        told = [f for f in errors if re.search(cause, f"{f.message}\n{f.evidence}")]
        assert told, f"{name} does not tell {cause!r}: {[f.message for f in errors]}"
    return True
