"""The matrix page in a real browser: picking, the keyboard, a phone, dark mode, and without JavaScript."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import browsers
import pages
import pytest
from playwright.sync_api import Browser, Page, expect
from tfenv.page import to_html
from tfenv.page.words import ANSWERS, STANDINGS

pytestmark = pytest.mark.browser
CELL = "2.15.1-cu12.2-cudnn8.9-py3.11-debian12"
COUNT = len(pages.RELEASES) * len(pages.BASES) * (len(pages.PYTHONS) - 1)
BEFORE_2_8 = 4 * len(pages.BASES) * (len(pages.PYTHONS) - 1)

Open = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsers.browser() as made:
        yield made


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("page") / "matrix.html"
    file.write_text(to_html(pages.page()), encoding="utf-8")
    return file.as_uri()


@pytest.fixture
def visit(browser: Browser, address: str) -> Iterator[Open]:
    """Open the page; nothing may be asked of a network, and no script may fail."""
    contexts, faults = [], []

    def visit(part: str = "", **how: Any) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **how})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: None if _own(request.url) else faults.append(request.url))
        page.goto(address + part)
        return page

    def _own(url: str) -> bool:
        return url.startswith((address, "data:"))

    yield visit
    for context in contexts:
        context.close()
    assert faults == []


def pick(page: Page, gpu: str = "", driver: str = "", python: str = "") -> None:
    page.get_by_label("GPU", exact=True).select_option(gpu)
    page.get_by_label("Driver", exact=True).fill(driver)
    page.get_by_label("Python", exact=True).select_option(python)


def states(page: Page) -> dict[str, int]:
    """How many cells are shown as what."""
    found = page.eval_on_selector_all(
        "[data-cell]", "cells => cells.filter(c => c.checkVisibility()).map(c => c.dataset.state)"
    )
    return {state: found.count(state) for state in sorted(set(found))}


def cell(page: Page, name: str = CELL) -> Any:
    return page.locator(f'[id="{name}"]')


def test_without_a_browser_the_tests_fail_and_say_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subprocess.run", lambda *_, **__: subprocess.CompletedProcess([], 1, "", ""))
    with pytest.raises(LookupError, match="scripts/setup browser"):
        browsers.find_browser()


# ---- picking


def test_before_anything_is_picked_all_is_there(visit: Open) -> None:
    page = visit()
    expect(page.get_by_role("status")).to_have_text(
        f"{COUNT} environments. Pick a GPU and a driver to see which of them run."
    )
    assert sum(states(page).values()) == COUNT
    expect(page.locator(".gpus").first).to_be_visible()
    expect(page.locator(".yours .chip")).to_have_count(0)


def test_a_gpu_and_a_driver_find_the_right_cells(visit: Open) -> None:
    page = visit()
    pick(page, "A100", "535.104.05")
    assert states(page) == {"failed": 9, "limited": BEFORE_2_8, "proven": 9, "runs": COUNT - BEFORE_2_8 - 18}
    expect(page.get_by_role("status")).to_have_text(
        f"A100, driver 535.104.05: {COUNT - BEFORE_2_8 - 9} run, {BEFORE_2_8} run with a limit, "
        "9 verified on such a GPU; 9 do not run."
    )
    pick(page, "H200", "535.104.05")
    assert states(page) == {"limited": COUNT}
    expect(cell(page).locator(".yours")).to_have_text(re.compile("runs with a limit"))
    expect(cell(page).locator(".standing")).to_have_text(re.compile("verified"))
    expect(page.locator(".release", has=cell(page)).locator(".answer")).to_contain_text(pages.JIT)
    pick(page, "H200", "525.147.05")
    assert states(page) == {"refused": COUNT}
    expect(page.locator(".release", has=cell(page)).locator(".answer")).to_contain_text(
        "It needs driver 530.30.02 or newer on this GPU."
    )


@pytest.mark.parametrize(
    ("gpu", "driver", "state"),
    [
        ("GTX 1080", "580.95.05", "runs"),
        ("GTX 1080", "590.44.01", "refused"),
        ("GTX 1080", "590.44", "runs"),
        ("P4", "590.44.01", "runs"),
        ("RTX 5090", "530.30.02", "limited"),
        ("RTX 5090", "530.30.01", "refused"),
        ("A100", "525.60.13", "runs"),
        ("A100", "525.60.2", "refused"),
        ("A100", "525", "runs"),
        ("A100", "r525", "runs"),
        ("A100", "524", "refused"),
        ("A100", "4", "refused"),
        ("A100", "9999", "runs"),
        ("", "450.80.02", "refused"),
        ("H200", "", "limited"),
        ("RTX 5090", "", "limited"),
    ],
)
def test_drivers_are_compared_as_versions(visit: Open, gpu: str, driver: str, state: str) -> None:
    page = visit()
    pick(page, gpu, driver)
    expect(cell(page, CELL.replace("py3.11", "py3.10"))).to_have_attribute("data-state", state)


def test_what_is_no_driver_is_said_and_not_used(visit: Open) -> None:
    page = visit()
    pick(page, "A100", "535.x")
    field = page.get_by_label("Driver", exact=True)
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_have_accessible_description(re.compile("This is no driver version"))
    expect(page.get_by_role("status")).to_have_text(re.compile("^A100: "))
    field.fill("535.54.03")
    expect(field).to_have_attribute("aria-invalid", "false")


def test_a_python_leaves_its_cells_and_its_refusals(visit: Open) -> None:
    page = visit()
    pick(page, python="3.10")
    assert sum(states(page).values()) == len(pages.RELEASES) * len(pages.BASES)
    assert page.locator(".refusal:visible").count() == 0
    pick(page, python="3.12")
    assert states(page) == {}
    assert page.locator(".refusal:visible").count() == len(pages.RELEASES)
    expect(page.locator(".refusal").first).to_contain_text("has no wheel for Python 3.12")


def test_only_what_runs_hides_the_rest_and_says_if_nothing_is_left(visit: Open) -> None:
    page = visit()
    page.get_by_label("only what runs").check()
    pick(page, "A100", "535.104.05")
    assert sum(states(page).values()) == COUNT - 9
    expect(page.locator("#tf-2\\.19")).to_be_hidden()
    expect(page.get_by_role("link", name="2.19", exact=True)).to_be_hidden()
    assert page.locator(".refusal:visible").count() == 0
    pick(page, "A100", "450")
    expect(page.get_by_text("No environment fits.")).to_be_visible()
    assert page.locator(".release:visible").count() == 0


def test_start_again(visit: Open) -> None:
    page = visit()
    pick(page, "A100", "450", "3.10")
    page.get_by_role("button", name="Start again").click()
    expect(page.get_by_role("status")).to_have_text(re.compile(f"^{COUNT} environments"))
    assert sum(states(page).values()) == COUNT
    assert "#" not in page.url


def test_a_choice_can_be_sent_to_somebody(visit: Open) -> None:
    page = visit()
    pick(page, "RTX 5090", "535.104.05", "3.11")
    there = visit("#" + page.url.split("#")[1])
    assert there.get_by_label("GPU", exact=True).input_value() == "RTX 5090"
    assert there.get_by_role("status").text_content() == page.get_by_role("status").text_content()
    strange = visit("#gpu=Voodoo+2&python=2.7&driver=<b>")
    expect(strange.get_by_role("status")).to_have_text(re.compile(f"^{COUNT} environments"))


# ---- without JavaScript


def test_without_javascript_every_answer_is_there(visit: Open) -> None:
    page = visit(java_script_enabled=False)
    expect(page.locator("#pick")).to_be_hidden()
    expect(page.get_by_text("Without it nothing is missing")).to_be_visible()
    release = page.get_by_role("article", name="2.15.1", exact=True)
    table = release.get_by_role("table", name="2.15.1 by GPU and driver")
    expect(table).to_be_visible()
    expect(table.get_by_role("row", name=re.compile("^9.0 Hopper"))).to_contain_text("does not run")
    expect(table).to_contain_text(pages.JIT)
    expect(table).to_contain_text("590.44.01 or newer")
    expect(cell(page)).to_contain_text("Verified on NVIDIA H200, driver 580.159.04, 2026-11-30.")
    expect(release.get_by_role("row", name=re.compile("3.12"))).to_contain_text(
        "has no wheel for Python 3.12"
    )
    old = page.get_by_role("article", name="2.7.4", exact=True)
    expect(old.locator(".answer")).to_contain_text("The libraries are newer than those it was compiled for.")


# ---- the keyboard and a screen reader


def test_by_keyboard_alone(visit: Open) -> None:
    page = visit()
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the matrix")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Tab")
    expect(page.get_by_label("GPU", exact=True)).to_be_focused()
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.type("A100")
    page.keyboard.press("Tab")
    page.keyboard.type("450.80.02")
    page.keyboard.press("Tab")
    expect(page.get_by_label("Python", exact=True)).to_be_focused()
    page.keyboard.type("3.11")
    expect(page.get_by_role("status")).to_have_text(
        f"A100, driver 450.80.02, Python 3.11: 0 run, 0 run with a limit; {COUNT // 3} do not run."
    )
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    expect(page.get_by_text("No environment fits.")).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_have_text(re.compile(f"^{COUNT} environments"))


def test_the_skip_link_leads_to_the_matrix(visit: Open) -> None:
    page = visit()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()


def test_everything_that_takes_the_focus_shows_it(visit: Open) -> None:
    page = visit()
    for _ in range(8):
        page.keyboard.press("Tab")
        focused = page.locator("*:focus")
        expect(focused).to_have_css("outline-style", "solid")
        expect(focused).to_have_css("outline-width", "3px")


@pytest.mark.parametrize("width", [1280, 360])
def test_tables_are_tables_for_a_screen_reader_also_as_cards(visit: Open, width: int) -> None:
    page = visit(viewport={"width": width, "height": 800})
    table = page.get_by_role("table", name="Environments of 2.15.1", exact=True)
    assert table.get_by_role("columnheader").all_text_contents() == ["Python", *pages.BASES]
    assert table.get_by_role("rowheader").count() == len(pages.PYTHONS)
    assert table.get_by_role("cell").count() == (len(pages.PYTHONS) - 1) * len(pages.BASES) + 1


def test_every_control_has_a_name_and_the_count_is_announced(visit: Open) -> None:
    page = visit()
    for control in page.locator("select, input, button").all():
        expect(control).to_have_accessible_name(re.compile(r"\w"))
    expect(page.locator("#count")).to_have_role("status")
    assert page.get_by_role("heading", level=1).count() == 1


# ---- a phone


@pytest.mark.parametrize("picked", [False, True])
@pytest.mark.parametrize("javascript", [False, True])
def test_no_sideways_scrolling_on_a_phone(visit: Open, picked: bool, javascript: bool) -> None:
    page = visit(
        viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True, java_script_enabled=javascript
    )
    if picked and javascript:
        pick(page, "H200", "535.104.05")
    width = "() => [document.documentElement.scrollWidth, document.body.scrollWidth]"
    assert max(page.evaluate(width)) <= 360
    wide = page.eval_on_selector_all(
        "body *:not(.skip)",
        "all => all.filter(e => e.checkVisibility() && e.getBoundingClientRect().right > 360.5).length",
    )
    assert wide == 0
    expect(page.locator(".cells td").first).to_have_css("display", "block")


@pytest.mark.parametrize("width", [320, 360, 1180])
def test_the_committed_page_fits_and_answers_too(browser: Browser, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto((browsers.ROOT / "docs/matrix.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    pick(page, "H200", "580.95.05")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    expect(page.get_by_role("status")).to_have_text(re.compile("^H200, driver 580.95.05: "))
    found = states(page)
    assert sum(found.values()) > 0 and set(found) <= {
        "proven",
        "runs",
        "limited",
        "refused",
        "failed",
        "unknown",
    }
    page.close()


def test_on_a_phone_all_drivers_of_a_gpu_are_one_card(visit: Open) -> None:
    page = visit(viewport={"width": 360, "height": 740})
    table = page.get_by_role("table", name="2.15.1 by GPU and driver")
    card = table.locator("tbody", has=page.get_by_role("rowheader", name="6.1 Pascal (geforce)"))
    assert card.get_by_role("row").count() == 3
    edge, inner = (
        card.evaluate(f"e => getComputedStyle(e{row}).borderLeftWidth") for row in ("", ".rows[1]")
    )
    assert (edge, inner) == ("1px", "0px")


def test_what_is_touched_is_large_enough(visit: Open) -> None:
    page = visit(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    for control in page.locator("select, button, input#driver").all():
        box = control.bounding_box()
        assert box and box["height"] >= 44


# ---- colours

# WCAG's contrast of every visible text with what is behind it, in the page.
CONTRAST = """() => {
  const parse = (c) => c.match(/[\\d.]+/g).map(Number);
  const luminance = (c) => {
    const linear = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    const [r, g, b] = c.slice(0, 3).map(linear);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] === 1) return c;
    }
    throw new Error("no background");
  };
  const found = {};
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.checkVisibility() || e.tagName === "SCRIPT") continue;
    const [a, b] = [luminance(parse(getComputedStyle(e).color)), luminance(behind(e))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const name = e.tagName + "." + e.className;
    found[name] = Math.min(found[name] ?? 99, ratio);
  }
  return found;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_light_and_in_dark(visit: Open, scheme: Any) -> None:
    page = visit(color_scheme=scheme)
    found = page.evaluate(CONTRAST)
    pick(page, "A100", "535.x")
    found.update({f"{name} (picked)": ratio for name, ratio in page.evaluate(CONTRAST).items()})
    colours = {of.colour for of in (*ANSWERS.values(), *STANDINGS.values())}
    assert all(any(f"chip {colour}" in name for name in found) for colour in colours)
    assert {name: ratio for name, ratio in found.items() if ratio < 4.5} == {}


def test_dark_is_dark_and_light_is_light(visit: Open) -> None:
    def brightness(scheme: Any) -> float:
        colour = visit(color_scheme=scheme).evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(float, re.findall(r"\d+", colour)))

    assert brightness("dark") < 120 < 600 < brightness("light")


def test_colour_is_never_the_only_sign(visit: Open) -> None:
    page = visit()
    pick(page, "A100", "535.104.05")
    chips = page.eval_on_selector_all(
        ".chip", "all => all.map(e => [e.className.split(' ')[1], ...e.textContent.trim().split(/ (.*)/s)])"
    )
    signs: dict[str, set[str]] = {}
    for colour, sign, words, *_ in chips:
        assert len(sign) == 1 and len(words) > 3
        signs.setdefault(colour, set()).add(sign)
    assert len(signs) == 4
    assert not any(signs[a] & signs[b] for a in signs for b in signs if a != b)


def test_printed_without_the_form_and_in_black(visit: Open) -> None:
    page = visit()
    pick(page, "A100", "535.104.05")
    page.emulate_media(media="print")
    expect(page.get_by_label("GPU", exact=True)).to_be_hidden()
    expect(page.get_by_role("status")).to_be_visible()
    expect(cell(page).locator(".chip").first).to_have_css("background-color", "rgb(255, 255, 255)")
