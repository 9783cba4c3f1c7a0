"""Pictures of the matrix page, written beside it: python tests/picture.py docs/matrix.html"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import browsers

GPU, DRIVER, MINOR = "H200", "580.95.05", "2.15"
PICTURES: dict[str, dict[str, Any]] = {
    "": {"viewport": {"width": 1180, "height": 1000}},
    "-dark": {"viewport": {"width": 1180, "height": 1000}, "color_scheme": "dark"},
    "-phone": {"viewport": {"width": 360, "height": 1400}, "device_scale_factor": 1.5, "is_mobile": True},
}


def main(page: Path) -> None:
    """Write the pictures beside the page; light, dark and on a phone."""
    with browsers.browser() as browser:
        for name, how in PICTURES.items():
            shown = browser.new_context(**how, reduced_motion="reduce").new_page()
            shown.goto(page.resolve().as_uri())
            shown.get_by_label("GPU", exact=True).select_option(GPU)
            shown.get_by_label("Driver", exact=True).fill(DRIVER)
            # What is between the form and the release would fill the picture.
            shown.add_style_tag(content="section[aria-labelledby=legend-title], nav, .lede { display: none }")
            for minor in shown.locator(".minor").all():
                if minor.get_attribute("id") != f"tf-{MINOR}":
                    minor.evaluate("element => { element.hidden = true }")
            shown.locator("h1").click()
            shown.screenshot(path=page.with_name(f"{page.stem}{name}.png"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
