from __future__ import annotations

import math
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from test_load_advice import bench, row
from test_load_judging import GOOD
from tfenv.load.charts import base_of, curves, speedup_chart, stress_chart
from tfenv.load.svg import Limit, Line, Panel, chart, number, ticks

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return [node.text or "" for node in ElementTree.fromstring(svg).iter(f"{SVG}text")]


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (35.2, 91), (0, 700), (1980, 1980), (0, 0), (-3, 4), (0.001, 0.0042), (0, 119)]
)
def test_ticks_are_few_and_enclose_what_is_drawn(low, high):
    found = ticks(low, high)
    assert found[0] <= low and found[-1] >= high and 2 <= len(found) <= 7
    steps = {round(b - a, 9) for a, b in pairwise(found)}
    assert len(steps) == 1 and steps.pop() > 0


def test_numbers_are_short():
    assert [number(v) for v in (20.0, 0.5, 1980.0)] == ["20", "0.5", "1980"]


def test_a_chart_has_axes_with_units_a_key_and_limits():
    panel = Panel("heat", "°C", (Line("GPU <0> & more", ((0, 40), (10, 60))),), (Limit("slows down", 90),))
    svg = chart("a title", "seconds", [panel])
    said = texts(svg)
    assert {"a title", "heat (°C)", "seconds", "slows down", "GPU <0> & more", "40", "90"} <= set(said)
    assert len(list(ElementTree.fromstring(svg).iter(f"{SVG}polyline"))) == 1
    assert "prefers-color-scheme: dark" in svg and 'aria-label="a title"' in svg


def test_points_stay_within_the_axes():
    lines = tuple(Line(str(n), tuple((t, n * 10 + math.sin(t)) for t in range(50))) for n in range(9))
    root = ElementTree.fromstring(chart("t", "x", [Panel("p", "u", lines)]))
    width, height = (float(v) for v in root.attrib["viewBox"].split()[2:])
    for line in root.iter(f"{SVG}polyline"):
        for point in line.attrib["points"].split():
            x, y = map(float, point.split(","))
            assert 70 <= x <= width and 0 <= y <= height


def test_nothing_is_drawn_of_nothing():
    assert "nothing was measured" in texts(chart("t", "x", [Panel("p", "u", (Line("a", ()),))]))


def test_a_panel_without_points_is_left_out():
    svg = chart("t", "x", [Panel("empty", "u", ()), Panel("full", "u", (Line("a", ((1, 1),)),))])
    assert "empty (u)" not in texts(svg) and "full (u)" in texts(svg)


def test_the_stress_chart_shows_what_was_sampled():
    said = texts(stress_chart(GOOD, "t"))
    wanted = {
        "temperature (°C)",
        "power (W)",
        "clock of the cores (MHz)",
        "matrix products (TFLOP/s)",
        "limit",
    }
    assert wanted <= set(said) and "GPU 1 H, float32" in said
    assert not any("memory" in text for text in said)


def test_the_curve_is_over_the_default_on_one_gpu():
    rows = [
        row("tf32", 1000),
        row("mixed_float16", 3000, xla=True),
        row("mixed_float16", 5000, xla=True, gpus=2),
    ]
    assert base_of(rows) is rows[0] and base_of(rows[1:]) is rows[1] and base_of([]) is None
    assert curves(rows) == [
        ("float32 (TF32)", [(1, 1000)]),
        ("mixed_float16 + XLA, hierarchical_copy", [(1, 3000), (2, 5000)]),
    ]
    said = texts(speedup_chart(bench(*rows), "t"))
    assert "resnet50: times 1000 images/s, one GPU, float32 (TF32) (speed-up)" in said
    assert "as many times one GPU" in said


def test_the_curve_of_nothing_says_so():
    assert "nothing was measured" in texts(speedup_chart(bench(row("tf32", 0, status="hung")), "t"))


def test_a_name_may_hold_what_xml_cannot() -> None:
    name = "H\x00\x1b[31m\uffff<&>\"'"
    text = chart(
        name, name, [Panel(name, name, (Line(name, ((0.0, 1.0), (1.0, 2.0))),), (Limit(name, 1.5),))]
    )
    assert "H\ufffd&lt;&amp;&gt;" in text
    ElementTree.fromstring(text)
