"""Bills of materials: complete, the same every time, valid by the real schemas, and honest."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import image_files
import pytest
import small
from packageurl import PackageURL
from small import Place
from test_diff_describe import of_lock_files
from tfenv import cli, lockfile, sbom
from tfenv.model import Lock
from tfenv.sbom import evidence
from tfenv.sbom.model import Component, Licence
from tfenv.sbom.purl import purl

NVIDIA = (
    "License: NVIDIA Proprietary Software\nClassifier: License :: Other/Proprietary License\n"
    "License-File: License.txt"
)
DEP5 = b"""Format: https://example.org/doc/copyright-format/1.0/

Files: *
License: GPL-2+
 Text.

Files: a
License: public-domain
"""


def image(here: Place, at: Path, more: dict[str, bytes] | None = None, without: str = "") -> Any:
    """An image of the place's lock, but for what is added and left out."""
    files = {path: data for path, data in of_lock_files(here).items() if not without or without not in path}
    return image_files.described(at, [image_files.layer({**files, **(more or {})})])


@pytest.fixture(params=["debian", "nvidia", "nvidia by digest"])
def lock(request: pytest.FixtureRequest, here: Place) -> Lock:
    """The lock of a bootstrapped base, and of one on a base image with a provided Python."""
    if request.param == "debian":
        return here.lock
    found = small.on_image(here.lock)
    return replace(found, base_digest="sha256:" + "a" * 64 if request.param.endswith("digest") else "")


def valid_cyclonedx(document: dict[str, Any]) -> object:
    """What the real schema of CycloneDX 1.6 finds wrong; None if nothing."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    return JsonStrictValidator(SchemaVersion.V1_6).validate_str(sbom.dump(document))


def wrong_in_spdx(document: dict[str, Any]) -> list[str]:
    """What SPDX's own validator finds wrong."""
    from spdx_tools.spdx.parser.jsonlikedict.json_like_dict_parser import JsonLikeDictParser
    from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

    parsed = JsonLikeDictParser().parse(  # type: ignore[no-untyped-call]
        json.loads(sbom.dump(document))
    )
    return [str(of.validation_message) for of in validate_full_spdx_document(parsed)]


def test_the_documents_of_a_lock_are_valid(lock: Lock) -> None:
    assert valid_cyclonedx(sbom.of_lock(lock)) is None
    assert wrong_in_spdx(sbom.of_lock(lock, format="spdx")) == []


def test_the_validators_find_what_is_wrong(here: Place) -> None:
    document = sbom.of_lock(here.lock)
    document["components"][0]["type"] = "nonsense"
    assert valid_cyclonedx(document) is not None
    document = sbom.of_lock(here.lock, format="spdx")
    document["packages"][1]["licenseDeclared"] = "LicenseRef-that-is-nowhere"
    assert wrong_in_spdx(document)


def test_all_that_is_locked_is_listed_with_its_hash(lock: Lock) -> None:
    found = sbom.bill_of_lock(lock)
    hashes = {of.sha256 for of in found.components}
    assert {of.sha256 for of in lock.wheels} <= hashes
    assert {of.sha256 for of in lock.debian} <= hashes
    if lock.interpreter:
        assert lock.interpreter.sha256 in hashes
    if lock.base_image:
        assert lock.base_digest == "" or lock.base_digest.removeprefix("sha256:") in hashes
        assert any(lock.base_image in gap for gap in found.gaps)
    else:
        assert found.gaps == ()
    assert {of.name for of in found.components if not of.in_image} == {
        wheel.name for wheel in lock.wheels if wheel.layer == "tool"
    }


def test_a_base_image_makes_the_bill_incomplete(here: Place) -> None:
    whole, part = sbom.of_lock(here.lock), sbom.of_lock(small.on_image(here.lock))
    assert whole["compositions"][0]["aggregate"] == "complete"
    assert part["compositions"][0]["aggregate"] == "incomplete"


def test_the_same_lock_gives_the_same_bytes_and_another_does_not(lock: Lock) -> None:
    again = lockfile.load_lock(lockfile.dump_lock(lock))
    assert sbom.documents(lock) == sbom.documents(again)
    assert set(sbom.documents(lock)) == {"sbom.cdx.json", "sbom.spdx.json"}
    other = sbom.documents(replace(lock, epoch=lock.epoch + 1))
    assert all(other[name] != text for name, text in sbom.documents(lock).items())


def test_times_are_the_locks(here: Place) -> None:
    lock = replace(here.lock, epoch=1710892800)
    assert sbom.of_lock(lock)["metadata"]["timestamp"] == "2024-03-20T00:00:00Z"
    assert sbom.of_lock(lock, format="spdx")["creationInfo"]["created"] == "2024-03-20T00:00:00Z"


@pytest.mark.parametrize("version", ["2.36-9+deb12u4", "1:2.38.1-5+deb12u3", "20250419~deb12u2", "1.0"])
def test_package_urls_are_as_others_write_them(version: str) -> None:
    own = purl("deb", "debian", "libstdc++6", version, arch="amd64", distro="bookworm", empty="")
    qualifiers = {"arch": "amd64", "distro": "bookworm"}
    assert own == PackageURL("deb", "debian", "libstdc++6", version, qualifiers).to_string()
    assert PackageURL.from_string(own).version == version


def test_every_package_url_of_a_lock_can_be_read(lock: Lock) -> None:
    for of in sbom.bill_of_lock(lock).components:
        if of.kind != "system":
            assert PackageURL.from_string(of.purl).to_string() == of.purl


def test_an_image_of_its_lock_has_no_differences_and_the_locks_hashes(here: Place, tmp_path: Path) -> None:
    found = sbom.of_image(image(here, tmp_path), here.lock)
    assert found.differences == () and found.gaps == ()
    installed = [of for of in found.components if of.kind in ("deb", "wheel")]
    assert installed and all(of.where == "both" and of.sha256 for of in installed)
    assert valid_cyclonedx(sbom.FORMATS["cyclonedx"](found)) is None
    assert wrong_in_spdx(sbom.FORMATS["spdx"](found)) == []


def test_what_is_not_as_locked_is_told(here: Place, tmp_path: Path) -> None:
    wheel = next(of for of in here.lock.wheels if of.layer == "python")
    name = wheel.name.replace("-", "_")
    changed = image(
        here, tmp_path, image_files.dist_info("extra", "1.0"), without=f"/{name}-{wheel.version}."
    )
    found = sbom.of_image(changed, here.lock)
    assert found.differences == (
        "Python package extra 1.0 is in the image, not in the lock",
        f"Python package {wheel.name} {wheel.version} is in the lock, not in the image",
    )
    (extra,) = [of for of in found.components if of.name == "extra"]
    assert (extra.where, extra.sha256) == ("image", "")
    text = sbom.dump(sbom.FORMATS["cyclonedx"](found))
    assert "is in the lock, not in the image" in text
    assert not any(of.name == wheel.name for of in found.components)


def test_a_foreign_image_is_listed_without_a_lock(tmp_path: Path) -> None:
    files = {"etc/os-release": b'ID=ubuntu\nVERSION_ID="22.04"\nVERSION_CODENAME=jammy\n'}
    files[image_files.STATUS] = image_files.DPKG
    found = sbom.of_image(image_files.described(tmp_path, [image_files.layer(files)]), None)
    deb = next(of for of in found.components if of.kind == "deb")
    assert deb.purl == "pkg:deb/ubuntu/libc6@2.36-9%2Bdeb12u4?arch=amd64&distro=jammy"
    assert not any(of.name == "gone" for of in found.components)
    assert valid_cyclonedx(sbom.FORMATS["cyclonedx"](found)) is None
    assert wrong_in_spdx(sbom.FORMATS["spdx"](found)) == []


def test_an_image_without_dpkg_says_that_its_list_has_a_gap(tmp_path: Path) -> None:
    found = sbom.of_image(image_files.described(tmp_path, []), None)
    assert any("Debian packages" in gap for gap in found.gaps)
    assert valid_cyclonedx(sbom.FORMATS["cyclonedx"](found)) is None


def test_licences_are_in_the_documents_and_nvidias_is_named(here: Place, tmp_path: Path) -> None:
    files = {
        **image_files.dist_info("nvidia-cudnn-cu12", "8.9", NVIDIA),
        **image_files.dist_info("six", "1", "License: MIT"),
        **image_files.dist_info("plain", "1"),
        image_files.STATUS: image_files.DPKG,
        "usr/share/doc/libc6/copyright": DEP5,
    }
    files["usr/lib/python3.11/site-packages/nvidia_cudnn_cu12-8.9.dist-info/License.txt"] = b"terms"
    found = sbom.of_image(image_files.described(tmp_path, [image_files.layer(files)]), None)
    licences = {of.name: of.licence for of in found.components}
    cudnn = licences["nvidia-cudnn-cu12"]
    assert cudnn.proprietary and cudnn.names[0] == "NVIDIA Proprietary Software"
    assert cudnn.file.endswith("nvidia_cudnn_cu12-8.9.dist-info/License.txt")
    assert licences["six"].expression == "MIT"
    assert licences["libc6"].expression == "GPL-2.0-or-later AND LicenseRef-public-domain"
    assert not licences["plain"].known and licences["plain"].words == "unknown"
    cyclonedx = {of["name"]: of for of in sbom.FORMATS["cyclonedx"](found)["components"]}
    assert cyclonedx["six"]["licenses"] == [{"license": {"id": "MIT"}}]
    assert cyclonedx["nvidia-cudnn-cu12"]["licenses"][0]["license"]["name"] == "NVIDIA Proprietary Software"
    assert "licenses" not in cyclonedx["plain"]
    spdx = sbom.FORMATS["spdx"](found)
    declared = {of["name"]: of["licenseDeclared"] for of in spdx["packages"]}
    assert declared["plain"] == "NOASSERTION"
    assert declared["nvidia-cudnn-cu12"] == "LicenseRef-NVIDIA-Proprietary-Software"
    assert {of["licenseId"] for of in spdx["hasExtractedLicensingInfos"]} >= {"LicenseRef-public-domain"}
    assert wrong_in_spdx(spdx) == [] and valid_cyclonedx(sbom.FORMATS["cyclonedx"](found)) is None


# Licences from the files of the store.


def component(here: Place, kind: Any, data: bytes, name: str = "dash") -> Component:
    return Component(kind=kind, name=name, version="1", purl="", sha256=small.put(here.store, data))


def wheel(files: dict[str, bytes], at: Path) -> bytes:
    import zipfile

    with zipfile.ZipFile(at / "w.whl", "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return (at / "w.whl").read_bytes()


def test_licences_of_a_lock_are_read_from_the_files_that_the_store_has(here: Place, tmp_path: Path) -> None:
    read = evidence.from_store(here.store)
    deb = small.deb([small.file("./usr/share/doc/dash/copyright", DEP5)])
    assert read(component(here, "deb", deb)).expression == "GPL-2.0-or-later AND LicenseRef-public-domain"
    files = {"six-1.dist-info/METADATA": b"Name: six\nLicense: MIT\n", "six-1.dist-info/LICENSE": b"x"}
    found = read(component(here, "wheel", wheel(files, tmp_path)))
    assert (found.expression, found.file) == ("MIT", "six-1.dist-info/LICENSE")


def test_what_cannot_be_read_is_unknown(here: Place, tmp_path: Path) -> None:
    read = evidence.from_store(here.store)
    for kind, data in (
        ("deb", b"no deb"),
        ("wheel", b"no wheel"),
        ("wheel", wheel({"x": b""}, tmp_path)),
        ("deb", small.deb([])),
        ("system", b"x"),
    ):
        assert read(component(here, kind, data)) == Licence()
    assert read(Component(kind="wheel", name="a", version="1", purl="", sha256="0" * 64)) == Licence()


# The commands.


def test_the_command_writes_the_document_and_nothing_else(
    here: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["sbom", "2.15-cu12"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(sbom.documents(here.lock)["sbom.cdx.json"])
    assert cli.run(["sbom", "2.15-cu12", "--format", "spdx", "--output", str(here.root / "s.json")]) == 0
    assert (here.root / "s.json").read_text() == sbom.documents(here.lock)["sbom.spdx.json"]
    assert capsys.readouterr().out == ""
    assert cli.run(["sbom", "2.15-cu12", "--output", str(here.root / "s.json" / "x")]) == 4
    assert cli.run(["sbom", "2.15-cu13"]) == 2


def test_the_command_tells_where_an_image_is_not_what_was_locked(
    here: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {**of_lock_files(here), **image_files.dist_info("extra", "1.0")}
    labels = {"dev.tfenv.cell": here.cell.name, "dev.tfenv.lock": f"sha256:{lockfile.lock_hash(here.lock)}"}
    at = image_files.folder(
        here.root / "layout", image_files.image([image_files.layer(files)], {"Labels": labels})
    )
    assert cli.run(["sbom", str(at)]) == 0
    out, err = capsys.readouterr()
    assert "warning: Python package extra 1.0 is in the image, not in the lock" in err
    assert any(
        of["value"].startswith("Python package extra") for of in json.loads(out)["metadata"]["properties"]
    )


@pytest.mark.parametrize("spelling", ["licenses", "licences"])
def test_licences_by_both_spellings(here: Place, capsys: pytest.CaptureFixture[str], spelling: str) -> None:
    files = {
        **image_files.dist_info("six", "1", "License: MIT"),
        **image_files.dist_info("nvidia-cudnn-cu12", "8.9", NVIDIA),
        **image_files.dist_info("plain", "1"),
    }
    at = image_files.folder(here.root / "layout", image_files.image([image_files.layer(files)]))
    assert cli.run([spelling, str(at)]) == 0
    out, err = capsys.readouterr()
    assert "six 1" in out and "MIT" in out and "PROPRIETARY" in out
    assert "proprietary: nvidia-cudnn-cu12" in err and "unknown: 1: plain" in err
    assert cli.run([spelling, str(at), "--json"]) == 0
    parts = {of["name"]: of for of in json.loads(capsys.readouterr().out)["parts"]}
    assert parts["plain"]["known"] is False and parts["nvidia-cudnn-cu12"]["proprietary"] is True


def test_licences_of_a_cell_without_an_image_come_from_the_store(
    here: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["licenses", "2.15-cu12"]) == 0
    assert "by the files in the store" in capsys.readouterr().err
