"""What digest a tag has: asked through buildx, and refused in words."""

from __future__ import annotations

import json

import matrices
import pytest
import tiny
from tfenv.engine import Completed
from tfenv.errors import EXIT_NOT_READY, NotReadyError
from tfenv.image_digest import registry_digest

INDEX = {
    "schemaVersion": 2,
    "mediaType": "application/vnd.oci.image.index.v1+json",
    "digest": matrices.DIGEST,
    "size": 743,
    "manifests": [{"digest": f"sha256:{'6' * 64}", "platform": {"architecture": "amd64", "os": "linux"}}],
}
ASKED = f"buildx imagetools inspect {matrices.IMAGE} --format {{{{json .Manifest}}}}"


@pytest.mark.parametrize("text", [json.dumps(INDEX), json.dumps(INDEX, indent=2)])
def test_the_digest_of_the_index_and_not_of_one_platform(text: str) -> None:
    assert registry_digest(matrices.IMAGE, tiny.run_of({ASKED: text})) == matrices.DIGEST


def test_the_users_own_client_is_asked() -> None:
    asked = []

    def run(argv: list[str]) -> Completed:
        asked.append(argv[0])
        return Completed(0, json.dumps(INDEX), "")

    registry_digest(matrices.IMAGE, run, "/opt/docker")  # type: ignore[arg-type]
    assert asked == ["/opt/docker"]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (Completed(1, "", "warning: x\nERROR: failed to do request: no such host\n"), "no such host"),
        (Completed(1, "", "ERROR: nvidia/cuda: not found\n"), "not found"),
        (Completed(1, json.dumps(INDEX), ""), matrices.IMAGE),
        (Completed(0, "", ""), "no answer"),
        (Completed(0, "{}", ""), matrices.IMAGE),
        (Completed(0, json.dumps({"digest": "sha256:55"}), ""), matrices.IMAGE),
        (Completed(0, json.dumps({"digest": "md5:" + "5" * 64}), ""), matrices.IMAGE),
    ],
)
def test_a_registry_that_does_not_tell_is_told_with_both_ways_on(answer: Completed, says: str) -> None:
    with pytest.raises(NotReadyError, match=says) as caught:
        registry_digest(matrices.IMAGE, tiny.run_of({ASKED: answer}))
    assert caught.value.exit_code == EXIT_NOT_READY
    assert "matrix.yaml" in caught.value.remedy and f"{matrices.IMAGE}@sha256:" in caught.value.remedy
