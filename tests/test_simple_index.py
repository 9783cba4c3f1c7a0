"""Project pages of package indexes, in both forms and from a folder."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests
from tfenv.errors import NotReadyError, TfenvError
from tfenv.index import IndexSettings
from tfenv.simple_index import SimpleIndex, host_of, index_urls, parse_page, project_files

PAGE = "https://user:secret@index.invalid/simple/ml-dtypes/"
FILE = {
    "filename": "ml_dtypes-0.3.1-cp311-cp311-manylinux_2_17_x86_64.whl",
    "url": "../../files/ml_dtypes-0.3.1-cp311-cp311-manylinux_2_17_x86_64.whl",
    "hashes": {"sha256": "a" * 64},
    "size": 7,
    "upload-time": "2023-09-20T00:00:00Z",
    "requires-python": ">=3.9",
}
HTML = (
    '<html><body><a href="../../files/ml_dtypes-0.3.1-py3-none-any.whl#sha256={}" '
    'data-requires-python="&gt;=3.9" data-yanked="broken &amp; bad">ml</a>'
    '<a href="https://other.invalid/ml_dtypes-0.3.2%2Blocal-py3-none-any.whl">x</a></body></html>'
).format("a" * 64)


class Session:
    """Answers by URL; anything else is not there."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self.answers, self.asked = answers, list[str]()

    def get(self, url: str, headers: Mapping[str, str], timeout: float, stream: bool) -> Any:
        assert stream
        self.asked.append(url)
        assert "json" in headers["Accept"]
        answer = self.answers.get(url, 404)
        if isinstance(answer, Exception):
            raise answer
        response = requests.Response()
        response.status_code = answer if isinstance(answer, int) else 200
        response.url = url
        response._content, response._content_consumed = b"", True  # type: ignore[attr-defined]
        if not isinstance(answer, int):
            response._content = json.dumps(answer).encode() if isinstance(answer, dict) else answer.encode()
            kind = "application/vnd.pypi.simple.v1+json" if isinstance(answer, dict) else "text/html"
            response.headers["Content-Type"] = kind
        return response


def index(answers: Mapping[str, Any], *urls: str) -> SimpleIndex:
    return SimpleIndex(urls or ("https://index.invalid/simple/",), Session(answers))  # type: ignore[arg-type]


def test_json_tells_everything() -> None:
    (file,) = parse_page(json.dumps({"files": [FILE]}), "application/vnd.pypi.simple.v1+json", PAGE)
    assert file.filename == FILE["filename"]
    assert file.url == f"https://user:secret@index.invalid/files/{FILE['filename']}"
    assert (file.sha256, file.size, file.upload_time) == ("a" * 64, 7, "2023-09-20T00:00:00Z")
    assert (file.yanked, file.requires_python) == (None, ">=3.9")


@pytest.mark.parametrize(
    ("yanked", "means"), [(False, None), (True, ""), ("it is broken", "it is broken"), ("", "")]
)
def test_yanked_with_and_without_a_reason(yanked: object, means: str | None) -> None:
    (file,) = parse_page(json.dumps({"files": [{**FILE, "yanked": yanked}]}), "application/json", PAGE)
    assert file.yanked == means


def test_html_tells_what_it_can() -> None:
    first, second = parse_page(HTML, "text/html; charset=utf-8", PAGE)
    assert first.url == "https://user:secret@index.invalid/files/ml_dtypes-0.3.1-py3-none-any.whl"
    assert (first.sha256, first.yanked, first.requires_python) == ("a" * 64, "broken & bad", ">=3.9")
    assert (first.size, first.upload_time) == (None, None)
    assert second.filename == "ml_dtypes-0.3.2+local-py3-none-any.whl"
    assert (second.sha256, second.yanked) == ("", None)


def test_all_indexes_are_asked_and_each_file_is_named_once() -> None:
    answers = {
        "https://a.invalid/simple/ml-dtypes/": {"files": [FILE]},
        "https://b.invalid/ml-dtypes/": {"files": [FILE, {**FILE, "hashes": {"sha256": "b" * 64}}]},
    }
    found = project_files(
        index(answers, "https://a.invalid/simple", "https://b.invalid/", "https://c.invalid"), "ML_dtypes"
    )
    assert [file.sha256[0] for file in found] == ["a", "b"]


def test_a_project_that_is_nowhere_has_no_files() -> None:
    assert project_files(index({}), "nothing") == ()


@pytest.mark.parametrize(
    "answer",
    [requests.ConnectionError("refused"), 500, 403, {"meta": {}}, {"files": [{"filename": "x"}]}],
)
def test_an_index_that_does_not_answer_is_no_answer(answer: object) -> None:
    with pytest.raises(NotReadyError, match=r"index\.invalid"):
        project_files(index({"https://index.invalid/simple/x/": answer}), "x")


def test_no_password_is_shown() -> None:
    error = requests.ConnectionError("https://user:secret@index.invalid/simple/x/ refused")
    asked = index({"https://user:secret@index.invalid/x/": error}, "https://user:secret@index.invalid")
    with pytest.raises(NotReadyError) as raised:
        project_files(asked, "x")
    assert "secret" not in raised.value.message
    assert asked.hosts() == ("index.invalid",)


def test_a_folder_can_be_an_index(tmp_path: Path) -> None:
    (tmp_path / "simple/ml-dtypes").mkdir(parents=True)
    (tmp_path / "simple/ml-dtypes/index.html").write_text(HTML)
    asked = index({}, (tmp_path / "simple").as_uri())
    assert [file.yanked for file in project_files(asked, "ml.dtypes")] == ["broken & bad", None]
    assert project_files(asked, "other") == ()
    assert asked.hosts() == (str(tmp_path / "simple"),)
    assert project_files(asked, "ml-dtypes")[0].url.startswith(tmp_path.as_uri() + "/files/")


def uv(stdout: str, code: int = 0) -> Any:
    return lambda command, **_: SimpleNamespace(returncode=code, stdout=stdout, stderr="no: x://u:p@h/")


def test_uv_names_the_indexes_and_the_default_comes_first() -> None:
    said = "--extra-index-url file:///x/simple\n--index-url https://d.invalid/simple\n"
    assert index_urls(IndexSettings(), uv="uv", env={}, run=uv(said)) == (
        "https://d.invalid/simple",
        "file:///x/simple",
    )


def test_no_index_means_none() -> None:
    assert index_urls(IndexSettings(no_index=True), uv="uv", env={}, run=uv("", 2)) == ()


@pytest.mark.parametrize("run", [uv("", 2), uv("nothing")])
def test_a_uv_that_names_none_is_an_error(run: Any) -> None:
    with pytest.raises(TfenvError) as raised:
        index_urls(IndexSettings(), uv="uv", env={}, run=run)
    assert "u:p@" not in raised.value.message


def test_without_uv_nothing_is_known() -> None:
    def run(*_: object, **__: object) -> Any:
        raise FileNotFoundError(2, "No such file")

    with pytest.raises(NotReadyError):
        index_urls(IndexSettings(), uv="uv", env={}, run=run)


def test_the_real_uv_names_the_indexes_of_pip_and_of_its_own_file(tmp_path: Path) -> None:
    from tfenv.uv import uv_binary

    (tmp_path / "uv.toml").write_text('[[index]]\nurl = "https://own.invalid/simple"\n')
    settings = IndexSettings(
        index_url="https://default.invalid/simple", uv={"UV_CONFIG_FILE": str(tmp_path / "uv.toml")}
    )
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    found = index_urls(settings, uv=uv_binary({}), env=env, run=subprocess.run)
    assert found == ("https://default.invalid/simple", "https://own.invalid/simple")


def test_the_real_uv_needs_no_python_on_the_path_and_knows_named_indexes(tmp_path: Path) -> None:
    from tfenv.uv import uv_binary

    settings = IndexSettings(
        index_url="https://a.invalid/simple/", uv={"UV_INDEX": "inner=https://user:secret@c.invalid/simple"}
    )
    env = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    found = index_urls(settings, uv=uv_binary({}), env=env, run=subprocess.run)
    assert [url.rstrip("/") for url in found] == [
        "https://a.invalid/simple",
        "https://user:secret@c.invalid/simple",
    ]


@pytest.mark.parametrize(
    ("answer", "said"),
    [(requests.ConnectionError("refused"), "cannot be read"), ({"files": 3}, "answers no listing")],
)
def test_not_reached_and_not_understood_are_told_apart(answer: object, said: str) -> None:
    with pytest.raises(NotReadyError, match=said):
        project_files(index({"https://index.invalid/simple/x/": answer}), "x")


def test_hosts() -> None:
    assert host_of(PAGE) == "index.invalid"
    assert host_of("file:///a%20b/simple") == "/a b/simple"


# --- what a server may not say ---------------------------------------------------------------------------


@pytest.mark.parametrize("link", ["file:///dev/zero", "ftp://index.invalid/a.whl", "mailto:a@b.invalid"])
def test_a_server_names_no_files_of_this_machine(link: str) -> None:
    good = '<a href="https://index.invalid/b-1-py3-none-any.whl">b</a>'
    assert len(parse_page(f'<a href="{link}">a</a>{good}', "text/html", PAGE)) == 1
    assert parse_page('<base href="file:///etc/"><a href="a.whl">a</a>', "text/html", PAGE) == ()
    assert parse_page(json.dumps({"files": [{**FILE, "url": link}]}), "json", PAGE) == ()


@pytest.mark.parametrize(
    "changed",
    [{"filename": 3}, {"upload-time": 3}, {"hashes": {"sha256": 3}}, {"hashes": []}, {"requires-python": 3}],
)
def test_a_listing_of_other_types_is_none(changed: Mapping[str, Any]) -> None:
    page = "https://index.invalid/simple/x/"
    with pytest.raises(NotReadyError, match="no listing"):
        project_files(index({page: {"files": [{**FILE, **changed}]}}), "x")


@pytest.mark.parametrize("size", [True, -1, "7", 1.5, None])
def test_a_size_that_is_none(size: Any) -> None:
    [found] = parse_page(json.dumps({"files": [{**FILE, "size": size, "yanked": None}]}), "json", PAGE)
    assert (found.size, found.yanked) == (None, None)


def test_a_page_without_end_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfenv.simple_index._MOST", 1 << 17)
    page = "https://index.invalid/simple/x/"
    with pytest.raises(NotReadyError, match="does not end"):
        project_files(index({page: "<a>" * (1 << 17)}), "x")
    with pytest.raises(NotReadyError, match="no listing"):
        project_files(index({page: {"files": [{**FILE, "filename": "\x1b"}, 3]}}), "x")
