"""The troubleshooting page in a real browser: words, a whole log, an address, and without JavaScript."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import browsers
import pytest
from playwright.sync_api import Browser, Page, expect
from tfenv.knowledge import library
from tfenv.knowledge.pages import to_html

pytestmark = pytest.mark.browser
COUNT = len(library().rules)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsers.browser() as made:
        yield made


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("page") / "troubleshooting.html"
    file.write_text(to_html(library()), encoding="utf-8")
    return file.as_uri()


def visit(browser: Browser, address: str, **how: Any) -> Page:
    page = browser.new_context(**how).new_page()
    page.set_default_timeout(10_000)
    page.goto(address)
    return page


def shown(page: Page) -> list[str]:
    return [
        str(one) for one in page.locator("details:visible").evaluate_all("of => of.map(o => o.dataset.rule)")
    ]


def test_words_of_an_error(browser: Browser, address: str) -> None:
    page = visit(browser, address)
    assert len(shown(page)) == COUNT
    page.get_by_label("Words of the error").fill("growth cannot differ")
    expect(page.get_by_role("status")).to_contain_text("fit")
    assert "memory-growth-uneven" in shown(page)
    assert len(shown(page)) < 4


def test_a_whole_log(browser: Browser, address: str) -> None:
    page = visit(browser, address)
    noise = "2024-05-02 10:11:12: I something else that nobody knows, a long line of it\n" * 30
    page.get_by_label("Words of the error").fill(
        f"{noise}NCCL WARN Call to posix_fallocate failed : No space left on device\n{noise}"
    )
    expect(page.get_by_role("status")).to_contain_text("fit")
    assert "shm-too-small" in shown(page) and len(shown(page)) < 8


def test_nothing_fits(browser: Browser, address: str) -> None:
    page = visit(browser, address)
    page.get_by_label("Words of the error").fill("xyzzy plugh")
    expect(page.get_by_role("status")).to_contain_text("No rule fits")
    assert shown(page) == []


def test_an_address_opens_a_rule(browser: Browser, address: str) -> None:
    page = visit(browser, address + "#rule-shm-too-small")
    expect(page.locator("#rule-shm-too-small .remedy")).to_be_visible()


def test_without_javascript_all_is_there(browser: Browser, address: str) -> None:
    page = visit(browser, address, java_script_enabled=False)
    assert page.locator("details").count() == COUNT
    expect(page.locator("#search")).to_be_hidden()


def test_on_a_phone_nothing_is_wider_than_the_screen(browser: Browser, address: str) -> None:
    page = visit(browser, address, viewport={"width": 360, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
