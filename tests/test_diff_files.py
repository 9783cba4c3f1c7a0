"""Layers on top of each other, and which of their files differ."""

from __future__ import annotations

from tfenv.diff.filelist import compare_files, group, is_noise
from tfenv.diff.files import merged
from tfenv.diff.model import Entry, Layer


def of(*paths: str, texts: bool = True, content: str = "x") -> Layer:
    entries = {path: Entry("d" if path.endswith("/") else "f", 0o644, "0:0", 1, content) for path in paths}
    entries = {path.rstrip("/"): entry for path, entry in entries.items()}
    return Layer(entries, dict.fromkeys(entries, content) if texts else {}, len(paths))


def test_an_upper_layer_wins() -> None:
    entries, texts = merged([of("a", content="1"), of("a", content="2")])
    assert (entries["a"].content, texts["a"]) == ("2", "2")


def test_a_whiteout_takes_a_file_or_a_folder_away() -> None:
    entries, texts = merged([of("d/", "d/a", "d/s/b", "de", "e"), of(".wh.d", ".wh.e")])
    assert set(entries) == set(texts) == {"de"}


def test_an_opaque_folder_hides_what_was_in_it_and_shows_its_own() -> None:
    entries, _ = merged([of("d/", "d/a", "d/s/b", "e"), of("d/", "d/.wh..wh..opq", "d/new")])
    assert set(entries) == {"d", "d/new", "e"}
    assert set(merged([of("a", "b/c"), of(".wh..wh..opq", "z")])[0]) == {"z"}


def test_a_whiteout_acts_on_the_layers_below_only() -> None:
    assert set(merged([of("a"), of("a", ".wh.a")])[0]) == {"a"}


def test_a_file_in_place_of_a_folder_hides_what_was_in_it() -> None:
    assert set(merged([of("d/", "d/a"), of("d")])[0]) == {"d"}
    assert set(merged([of("d/", "d/a"), of("d/")])[0]) == {"d", "d/a"}


def test_an_upper_file_without_text_drops_the_text_below() -> None:
    assert merged([of("a"), of("a", texts=False)])[1] == {}


F = Entry("f", 0o644, "0:0", 3, "abc")


def test_what_differs_of_a_file() -> None:
    def told(before: Entry, after: Entry) -> tuple[str, str]:
        (change,) = compare_files({"a": before}, {"a": after})
        assert change.state == "changed"
        return change.before, change.after

    assert told(F, F._replace(size=4, content="abd")) == ("3 bytes", "4 bytes")
    assert told(F, F._replace(content="abd")) == ("3 bytes", "3 bytes, another content")
    assert told(F, F._replace(mode=0o755)) == ("mode 644", "mode 755")
    assert told(F, F._replace(owner="1:1")) == ("owner 0:0", "owner 1:1")
    assert told(F, F._replace(kind="l", content="b")) == ("a file", "a link")
    link = F._replace(kind="l")
    assert told(link, link._replace(content="b")) == ("-> abc", "-> b")
    assert compare_files({"a": F}, {"a": F}) == ()


def test_folders_alone_are_no_difference_but_their_owner_is() -> None:
    d = Entry("d", 0o755, "0:0", 0, "")
    assert compare_files({}, {"d": d}) == compare_files({"d": d}, {}) == ()
    assert len(compare_files({"d": d}, {"d": d._replace(owner="1:1")})) == 1


def test_noise_comes_last() -> None:
    names = ["usr/lib/z.py", "usr/lib/__pycache__/z.cpython-311.pyc", "var/log/dpkg.log", "etc/ld.so.cache"]
    found = compare_files({}, dict.fromkeys(names, F))
    assert found[0].name == "usr/lib/z.py"
    assert {change.name for change in found[1:]} == set(names[1:])
    assert not is_noise("var/lib/mysql/data") and is_noise("a/b.pyc") and is_noise("x.dist-info/RECORD")


def test_what_a_file_belongs_to() -> None:
    site = "opt/tfenv/venv/lib/python3.11/site-packages"
    assert group(f"{site}/numpy/core/a.py") == "numpy"
    assert group(f"{site}/numpy-1.26.4.dist-info/METADATA") == "numpy"
    assert group(f"{site}/numpy.libs/libopenblas.so") == "numpy"
    assert group(f"{site}/six.py") == "six"
    assert group("opt/tfenv/cuda/nvidia/cudnn/lib/libcudnn.so.8") == "nvidia/cudnn"
    assert group("usr/share/doc/dash/copyright") == "usr/share/doc"
    assert group("etc/passwd") == "etc"
