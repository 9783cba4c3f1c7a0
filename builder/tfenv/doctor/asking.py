"""Whether package index, Debian mirror and registry answer: one short question each, as this user."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

#: Seconds that a server gets.
PATIENCE = 1.0
_CA = (
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_DIR",
)

_REASONS = (
    "certificate verify failed",
    "Name or service not known",
    "Temporary failure in name resolution",
    "Connection refused",
    "timed out",
    "No route to host",
    "Network is unreachable",
    "Tunnel connection failed",
)

Question = Callable[[Mapping[str, str]], "tuple[str, str]"]


def package_index(env: Mapping[str, str]) -> tuple[str, str]:
    """The default package index of this user."""
    from tfenv.index import discover
    from tfenv.simple_index import index_urls
    from tfenv.uv import uv_binary

    quiet = {**env, "UV_NO_CACHE": "1"}  # uv would make its cache otherwise
    settings = discover(quiet)
    if settings.no_index:
        return "none", ""
    url = next((one.index_url for one in settings.alone()[:1] if one.index_url), "")
    url = url or index_urls(settings, uv=uv_binary(env), env=quiet)[0]
    return _answer(settings.requests_session(), url)


def debian_mirror(env: Mapping[str, str]) -> tuple[str, str]:
    """The Debian mirror of this machine."""
    import requests

    from tfenv.mirrors import find_mirrors

    return _answer(requests.Session(), find_mirrors("", env).debian + "/")


def registry(env: Mapping[str, str]) -> tuple[str, str]:
    """The engine's default registry, from this shell: the engine may have a proxy of its own."""
    from urllib.parse import urlsplit

    import requests

    from .looking import docker_clients
    from .sources import Sources, run

    for client in docker_clients(Sources(env=env))[:1]:
        told = run((client, "info", "--format", "{{.IndexServerAddress}}"), PATIENCE, env).out.strip()
        if host := urlsplit(told).netloc:
            return _answer(requests.Session(), f"https://{host}/v2/", login_is_usual=True)
    return "", ""


QUESTIONS: Mapping[str, Question] = {"index": package_index, "mirror": debian_mirror, "registry": registry}


def ask(
    env: Mapping[str, str], questions: Mapping[str, Question] = QUESTIONS, patience: float = PATIENCE
) -> dict[str, str]:
    """What came of each question, by its name; what came too late is ``offline``. Raises nothing.

    Words: ``ok``, ``offline``, ``certificate``, ``refused``, ``proxy``; ``none`` where no index is wanted.
    """
    found: dict[str, tuple[str, str]] = {}

    def work(name: str, question: Question) -> None:
        # Settings that cannot be read are told by the command that needs them.
        with contextlib.suppress(Exception):
            found[name] = question(env)

    threads = [threading.Thread(target=work, args=pair, daemon=True) for pair in questions.items()]
    for thread in threads:
        thread.start()
    end = time.monotonic() + patience + 0.1
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    said = {}
    for name, thread in zip(questions, threads, strict=True):
        word, words = found.get(name, ("offline", "") if thread.is_alive() else ("", ""))
        if word:
            said[name] = word
        if words:
            said[f"{name}_said"] = words
    return {**said, **_authorities(env)}


def _authorities(env: Mapping[str, str]) -> dict[str, str]:
    lost = [name for name in _CA if env.get(name) and not Path(env[name]).exists()]
    return {"ca_missing": lost[0]} if lost else {}


def _answer(session: Any, url: str, *, login_is_usual: bool = False) -> tuple[str, str]:
    import requests

    if not url.startswith(("http://", "https://")):
        return (
            ("ok", "")
            if Path(url.removeprefix("file://")).exists()
            else ("offline", "its folder is not there")
        )
    try:
        status = session.head(url, timeout=PATIENCE, allow_redirects=True).status_code
    except requests.exceptions.SSLError as error:
        return "certificate", _reason(error)
    except requests.exceptions.ProxyError as error:
        return "proxy", _reason(error)
    except (requests.RequestException, OSError, ValueError) as error:
        return "offline", _reason(error)
    if status == 407:
        return "proxy", "it wants a login (407)"
    if status in (401, 403) and not login_is_usual:
        return "refused", f"HTTP {status}"
    return "ok", ""


def _reason(error: BaseException) -> str:
    """The kind of trouble, without addresses."""
    text = str(error)
    return next((one for one in _REASONS if one.lower() in text.lower()), type(error).__name__)
