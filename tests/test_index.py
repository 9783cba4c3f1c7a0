from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tfenv.index import IndexSettings, discover, redact


def found(env: dict[str, str], files: dict[str, str] | None = None) -> IndexSettings:
    return discover({"HOME": "/h", **env}, (files or {}).get)


def conf(key: str, value: str, section: str = "global") -> str:
    return f"[{section}]\n{key} = {value}\n"


def test_nothing_set_changes_nothing() -> None:
    settings = found({})
    assert settings == IndexSettings()
    assert settings.uv_env() == {}
    assert settings.uv_args() == ()
    assert settings.credentials() == {}


@pytest.mark.parametrize(
    "path",
    ["/etc/pip.conf", "/etc/xdg/pip/pip.conf", "/h/.pip/pip.conf", "/h/.config/pip/pip.conf", "/v/pip.conf"],
)
def test_each_file_of_pip_is_read(path: str) -> None:
    files = {path: conf("index-url", "https://index.example/simple")}
    assert found({"VIRTUAL_ENV": "/v"}, files).index_url == "https://index.example/simple"


def test_precedence_is_pips() -> None:
    files = {
        "/etc/pip.conf": conf("index-url", "1"),
        "/h/.pip/pip.conf": conf("index-url", "2"),
        "/h/.config/pip/pip.conf": conf("index-url", "3"),
        "/v/pip.conf": conf("index-url", "4"),
        "/mine": conf("index-url", "5"),
    }
    env: dict[str, str] = {}
    assert found(env, files).index_url == "3"
    env["VIRTUAL_ENV"] = "/v"
    assert found(env, files).index_url == "4"
    env["PIP_CONFIG_FILE"] = "/mine"
    assert found(env, files).index_url == "5"
    env["PIP_INDEX_URL"] = "6"
    assert found(env, files).index_url == "6"


def test_an_explicit_file_replaces_the_users_and_devnull_all() -> None:
    files = {
        "/h/.config/pip/pip.conf": conf("proxy", "http://old:1"),
        "/etc/pip.conf": conf("cert", "/ca"),
        "/mine": "",
    }
    assert found({"PIP_CONFIG_FILE": "/mine"}, files).proxy is None
    assert found({"PIP_CONFIG_FILE": "/mine"}, files).cert == "/ca"
    assert found({"PIP_CONFIG_FILE": "/absent"}, files).proxy == "http://old:1"
    assert found({"PIP_CONFIG_FILE": "/dev/null"}, files) == IndexSettings()


def test_command_sections_win_over_global_and_others_are_ignored() -> None:
    text = conf("index-url", "a") + conf("index_url", "b", "install") + conf("index-url", "c", "search")
    assert found({}, {"/etc/pip.conf": text}).index_url == "b"


def test_lists_span_lines_and_damaged_files_are_ignored() -> None:
    text = "[global]\nextra-index-url =\n    https://a.example/simple\n    https://b.example/simple\n"
    settings = found({}, {"/etc/pip.conf": text, "/v/pip.conf": "no section"})
    assert settings.extra_index_urls == ("https://a.example/simple", "https://b.example/simple")
    assert found({}, {"/etc/pip.conf": "garbage"}) == IndexSettings()


def test_everything_reaches_uv() -> None:
    settings = found(
        {
            "PIP_INDEX_URL": "https://i.example/simple",
            "PIP_EXTRA_INDEX_URL": "https://a.example/s https://b.example/s",
            "PIP_FIND_LINKS": "/w /x",
            "PIP_TRUSTED_HOST": "i.example",
            "PIP_CERT": "/ca",
            "PIP_CLIENT_CERT": "/client",
            "PIP_PROXY": "proxy.example:3128",
            "PIP_DEFAULT_TIMEOUT": "not for uv",
            "PIP_TIMEOUT": "180",
            "PIP_NO_INDEX": "1",
        }
    )
    assert settings.uv_env() == {
        "UV_DEFAULT_INDEX": "https://i.example/simple",
        "UV_INDEX": "https://a.example/s https://b.example/s",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_FIND_LINKS": "/w,/x",
        "UV_INSECURE_HOST": "i.example",
        "UV_HTTP_TIMEOUT": "180",
        "SSL_CERT_FILE": "/ca",
        "SSL_CLIENT_CERT": "/client",
        "HTTP_PROXY": "http://proxy.example:3128",
        "HTTPS_PROXY": "http://proxy.example:3128",
        "ALL_PROXY": "http://proxy.example:3128",
    }
    assert settings.uv_args() == ("--no-index",)


def test_what_the_user_set_for_uv_wins() -> None:
    env = {"PIP_INDEX_URL": "https://pip.example", "PIP_EXTRA_INDEX_URL": "https://more.example"}
    own = {"UV_INDEX_URL": "https://uv.example", "UV_INDEX": "https://uvmore.example"}
    assert found({**env, **own}).uv_env() == {}
    environment = found({**env, **own}).environment({"PATH": "/bin", "UV_OFFLINE": "1"})
    assert environment == {"PATH": "/bin", **own}


REACHES = {
    "UV_INDEX_INNER_PASSWORD": "p",
    "UV_KEYRING_PROVIDER": "subprocess",
    "UV_SYSTEM_CERTS": "1",
    "UV_HTTP_TIMEOUT": "9",
    "UV_CACHE_DIR": "/c",
    "UV_OFFLINE": "1",
    "UV_CONFIG_FILE": "/uv.toml",
}
CHOOSES = {
    "UV_PRERELEASE": "allow",
    "UV_RESOLUTION": "lowest",
    "UV_OVERRIDE": "/o",
    "UV_CONSTRAINT": "/c",
    "UV_EXCLUDE": "/e",
    "UV_EXCLUDE_NEWER": "2000-01-01",
    "UV_FORK_STRATEGY": "fewest",
    "UV_TORCH_BACKEND": "cpu",
    "UV_PYTHON": "3.8",
    "UV_PROJECT": "/p",
    "UV_INDEX_INNER_PASSWORD_": "p",
}


def test_uv_is_told_how_to_reach_an_index_and_not_what_to_choose() -> None:
    others = {"PATH": "/bin", "HTTPS_PROXY": "http://p", "NETRC": "/n", "VSS_TOKEN": "of a keyring"}
    settings = found({**REACHES, **CHOOSES})
    assert settings.uv == REACHES
    given = {**others, **REACHES, **CHOOSES, "VIRTUAL_ENV": "/v", "PYTHONPATH": "/p"}
    assert settings.environment(given) == {**others, **REACHES}


def test_a_ca_bundle_for_requests_serves_uv_too() -> None:
    assert found({"REQUESTS_CA_BUNDLE": "/r"}).uv_env() == {"SSL_CERT_FILE": "/r"}
    assert found({"REQUESTS_CA_BUNDLE": "/r", "PIP_CERT": "/p"}).cert == "/p"


def test_each_index_alone() -> None:
    env = {"PIP_INDEX_URL": "https://i.example", "PIP_EXTRA_INDEX_URL": "https://a.example"}
    alone = found(env).alone()
    assert [s.uv_env() for s in alone] == [
        {"UV_DEFAULT_INDEX": "https://i.example"},
        {"UV_DEFAULT_INDEX": "https://a.example"},
    ]
    by_uv = found({**env, "UV_INDEX": "https://u.example", "UV_HTTP_RETRIES": "1"}).alone()
    assert [s.index_url for s in by_uv] == ["https://i.example", "https://u.example"]
    assert by_uv[1].environment({})["UV_HTTP_RETRIES"] == "1"
    assert found({**env, "PIP_NO_INDEX": "true"}).alone() == ()


def test_local_folders_are_the_find_links_without_a_server() -> None:
    settings = found({"PIP_FIND_LINKS": "/w file:///x%20y https://z.example/", "UV_FIND_LINKS": "/w,/u"})
    assert settings.local_folders() == (Path("/w"), Path("/x y"), Path("/u"))


def test_passwords_are_known_by_host_and_never_shown() -> None:
    env = {
        "PIP_INDEX_URL": "https://me:p%40ss@i.example:8443/simple",
        "UV_INDEX": "inner=https://tok@n.example/",
    }
    settings = found(env)
    assert settings.credentials() == {"i.example:8443": ("me", "p@ss"), "n.example": ("tok", "")}
    assert redact(f"failed: {env['PIP_INDEX_URL']}") == "failed: https://***@i.example:8443/simple"
    assert redact("https://i.example/a@b") == "https://i.example/a@b"


def merged(settings: IndexSettings, url: str) -> Any:
    return settings.requests_session().merge_environment_settings(url, {}, None, None, None)


def test_the_session_obeys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/env-ca")
    monkeypatch.setenv("HTTPS_PROXY", "http://env.example:1")
    settings = found(
        {
            "PIP_INDEX_URL": "https://me:pw@i.example/simple",
            "PIP_CERT": "/ca",
            "PIP_CLIENT_CERT": "/client",
            "PIP_PROXY": "http://p.example:3128",
            "PIP_TRUSTED_HOST": "self.example:8443",
        }
    )
    session: Any = settings.requests_session()
    assert session.cert == "/client"
    assert session.auth_for("https://i.example/files/x.whl") == ("me", "pw")
    assert session.auth_for("https://other.example/x.whl") is None
    assert merged(settings, "https://i.example/")["verify"] == "/ca"
    assert merged(settings, "https://i.example/")["proxies"]["https"] == "http://p.example:3128"
    assert merged(settings, "https://self.example:8443/")["verify"] is False
    assert merged(settings, "https://self.example/")["verify"] == "/ca"


def test_without_settings_the_session_is_as_requests_would_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/env-ca")
    monkeypatch.setenv("HTTPS_PROXY", "http://env.example:1")
    assert merged(IndexSettings(), "https://i.example/")["verify"] == "/env-ca"
    assert merged(IndexSettings(), "https://i.example/")["proxies"]["https"] == "http://env.example:1"
