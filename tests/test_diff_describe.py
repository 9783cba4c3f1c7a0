"""What a lock and an image say of themselves, and that an image of a lock does not differ from it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import image_files
import small
from small import Place
from tfenv import digest, lockfile
from tfenv.diff import describe, installed, recall
from tfenv.diff.model import Entry, Known, Layer
from tfenv.diff.sections import compare
from tfenv.memo import Memo


def test_what_dpkg_lists_and_what_it_has_removed() -> None:
    text = image_files.DPKG.decode()
    assert installed.debian({image_files.STATUS: text}).values == {"libc6": "2.36-9+deb12u4"}
    split = {f"{image_files.STATUS}.d/a": "Package: a\nVersion: 1\n"}  # as distroless images have it
    assert installed.debian(split).values == {"a": "1"}
    foreign = text + "\nPackage: libc6\nStatus: install ok installed\nArchitecture: i386\nVersion: 9\n"
    assert installed.debian({image_files.STATUS: foreign}).values["libc6:i386"] == "9"
    found = installed.debian({})
    assert not found.complete and "no list of dpkg" in found.why


def test_python_packages_by_their_canonical_name_in_all_versions() -> None:
    texts = {
        "a/Foo_Bar-1.dist-info/METADATA": "Name: Foo.Bar\nVersion: 1\n\nName: no\n",
        "b/foo_bar-2.dist-info/METADATA": "Name: foo-bar\nVersion: 2\n",
        "b/x.egg-info": "Name: x\nVersion: 3\n",
        "b/broken.dist-info/METADATA": "nothing",
    }
    assert installed.wheels(texts).values == {"foo-bar": "1 and 2", "x": "3"}


def test_the_distribution() -> None:
    assert installed.system({"etc/os-release": image_files.OS_RELEASE.decode()}).values == {
        "system": "debian 12"
    }
    assert not installed.system({}).complete


def test_a_value_of_a_foreign_file_is_one_short_line() -> None:
    assert installed.one_line("a\x1b[31m\nb" + "x" * 1000).startswith("a bx")
    assert len(installed.one_line("x" * 1000)) == 200


def test_libraries_are_told_by_file_name_and_extensions_are_none() -> None:
    f = Entry("f", 0, "", 1, "0123456789abcdef")
    found = installed.libraries(
        {
            "usr/lib/libcudnn.so.8": f,
            "usr/lib/libcudnn.so": Entry("l", 0, "", 0, "libcudnn.so.8"),
            "x/site-packages/a/libmod.cpython-311-x86_64-linux-gnu.so": f,
            "x/mod.so": f,
            "usr/lib/libnot.so.8.txt": f,
        }
    )
    assert found.values == {"libcudnn.so.8": "0123456789ab", "libcudnn.so": "0123456789ab"}


def test_a_file_that_a_link_stands_for_is_told_by_the_link() -> None:
    f = Entry("f", 0, "", 1, "0123456789abcdef")
    link = Entry("l", 0, "", 0, "libGL.so.1.7.0")
    files = {"usr/lib/libGL.so.1.7.0": f, "usr/lib/libGL.so.1": link, "usr/lib/libX.so.6": f}
    files["usr/lib/libX.so"] = link._replace(content="libX.so.6")
    found = installed.sonames(files)
    assert found.values == dict.fromkeys(["libGL.so.1", "libX.so", "libX.so.6"], "0123456789ab")


def test_the_python_that_has_tensorflow_is_meant() -> None:
    f = Entry("f", 0, "", 1, "x")
    entries = {
        "usr/lib/python3.12/dist-packages/pip/__init__.py": f,
        "opt/venv/lib/python3.11/site-packages/tensorflow/__init__.py": f,
    }
    found = installed.python(entries, Known({"python3.11": "3.11.2-6"}), {})
    assert found.values == {"Python": "3.11", "build": "3.11.2-6"}
    assert not installed.python({}, Known({}), {}).complete


def test_a_lock_tells_what_it_pins_and_says_that_it_knows_no_files(here: Place) -> None:
    found = describe.of_lock(here.cell, here.lock)
    assert found.kind == "lock" and found.digest == f"sha256:{lockfile.lock_hash(here.lock)}"
    assert found.stack.values["TensorFlow"] == here.cell.row.tensorflow
    tools = {wheel.name for wheel in here.lock.wheels if wheel.layer == "tool"}
    assert tools and not tools & found.wheels.values.keys()
    assert found.entries is None and not found.settings.complete and found.layers is None


def test_digests_of_another_lock_do_not_count(here: Place) -> None:
    own = digest.Digest(
        inputs="",
        lock=lockfile.lock_hash(here.lock),
        manifest="",
        config="",
        diff_ids=("sha256:1",),
        layer_bytes=(7,),
        builder="",
    )
    found = describe.of_lock(here.cell, here.lock, recorded=own)
    assert found.layers and found.layers[0].stored == 7
    assert describe.of_lock(here.cell, here.lock, recorded=replace(own, lock="0")).layers is None


def test_on_a_base_image_debian_packages_are_unknown(here: Place) -> None:
    found = describe.of_lock(here.cell, small.on_image(here.lock))
    assert not found.debian.complete and not found.labels.complete
    assert "@" in found.base.values["starts from"]


def of_lock_files(here: Place) -> dict[str, bytes]:
    """The files that package managers would have left of a cell's lock."""
    files: dict[str, bytes] = {"etc/os-release": image_files.OS_RELEASE}
    for wheel in here.lock.wheels:
        if wheel.layer != "tool":
            files.update(image_files.dist_info(wheel.name, wheel.version))
    status = (
        f"Package: {of.name}\nStatus: install ok installed\nArchitecture: amd64\nVersion: {of.version}\n"
        for of in here.lock.debian
    )
    return {**files, image_files.STATUS: "\n".join(status).encode()}


def test_an_image_of_a_lock_does_not_differ_from_it_and_another_does(here: Place, tmp_path: Path) -> None:
    from tfenv.render import image_environment, image_labels

    labels = image_labels(here.cell, here.lock, lockfile.lock_hash(here.lock), locked=True)
    environment = [f"{name}={value}" for name, value in image_environment(here.lock).items()]
    config = {"Labels": labels, "Env": [*environment, "PATH=/bin"], "User": "1000:1000"}
    lock = describe.of_lock(here.cell, here.lock)
    files = of_lock_files(here)
    same = image_files.described(tmp_path / "a", [image_files.layer(files)], config)
    found = compare(lock, same)
    assert [of.key for of in found.sections if of.differs] == []
    more = image_files.layer({**image_files.dist_info("extra", "1"), ".wh.etc": b""})
    other = image_files.described(tmp_path / "b", [image_files.layer(files), more], config)
    sections = {of.key: of for of in compare(lock, other).sections}
    assert [of.name for of in sections["wheels"].changes] == ["extra"]
    assert "no os-release" in sections["base"].unknown and not sections["base"].differs


def test_how_an_image_starts(tmp_path: Path) -> None:
    config: dict[str, Any] = {"User": "7", "Entrypoint": ["/e", "x"], "Cmd": None, "Env": 5}
    config["Volumes"] = {"/b": {}, "/a": {}}
    found = image_files.described(tmp_path, [], config)
    assert found.settings.values == {
        "user": "7",
        "entry point": "/e x",
        "volumes": "/a, /b",
        "platform": "linux/amd64",
    }
    assert found.environment.values == {}


def test_a_configuration_of_any_shape_is_read(tmp_path: Path) -> None:
    names = ("User", "Entrypoint", "Cmd", "Volumes", "Labels", "Env", "Healthcheck")
    values: list[Any] = [5, "x", [1], {"a": {"b": 1}}]
    for n, value in enumerate(values):
        config = dict.fromkeys(names, value)
        assert image_files.described(tmp_path / str(n), [], config).kind == "image"


def test_layers_that_were_read_are_kept(tmp_path: Path) -> None:
    kept = recall.Recaller(Memo(tmp_path))
    layer = Layer({"a": Entry("f", 0o644, "0:0", 1, "x")}, {"a": "text"}, 1, "note")
    made: list[int] = []

    def make() -> Layer:
        made.append(1)
        return layer

    assert kept.layer("1" * 64, make) == kept.layer("1" * 64, make) == layer
    assert kept.layer("2" * 64, make) == layer
    assert len(made) == 2
    for path in tmp_path.iterdir():  # what is damaged is read anew
        path.write_bytes(path.read_bytes()[:-10])
    assert kept.layer("1" * 64, make) == layer
    assert len(made) == 3


def test_an_image_is_known_only_with_all_its_layers(tmp_path: Path) -> None:
    from tfenv.diff.layout import read_image
    from tfenv.diff.places import Folder

    at = image_files.folder(
        tmp_path / "l", image_files.image([image_files.layer({"a": b"1"})], {"User": "1"})
    )
    kept = recall.Recaller(Memo(tmp_path / "memo"))
    image = read_image(Folder(at), "it", recall=kept.layer)
    kept.keep_image(image.digest, image)
    assert kept.image(image.digest) == image
    assert kept.image("sha256:other") is None
    for path in (tmp_path / "memo").iterdir():
        if json.loads(path.read_bytes().split(b"\n", 1)[1]).__class__ is str:
            path.unlink()
    assert kept.image(image.digest) is None
