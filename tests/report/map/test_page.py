"""The page in a browser: it draws, says the right things, finds, and complains of nothing."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from xla_stalloc import hlo
from xla_stalloc.report.map.arena import aligned, arena
from xla_stalloc.report.map.boxes import MemoryMap, memory_map
from xla_stalloc.report.map.page import View, page
from xla_stalloc.report.map.planned import planned_map

_CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
_OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--window-size=1400,1000",
    "--use-angle=swiftshader",  # WebGL without a GPU
    "--enable-unsafe-swiftshader",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    webdriver = pytest.importorskip("selenium.webdriver")
    driver = shutil.which("chromedriver")
    if not (_CHROMIUM and driver):
        pytest.skip("no chromium and chromedriver on PATH (on Debian: apt install chromium chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = _CHROMIUM
    for option in _OPTIONS:
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield started
    started.quit()


@pytest.fixture(scope="module")
def drawn() -> tuple[MemoryMap, MemoryMap]:
    """Stock and planned."""

    def step(w: Any, x: Any) -> Any:
        return jax.grad(lambda w: sum((jnp.tanh(x @ a) ** 2).sum() for a in w))(w)

    ws = [jax.ShapeDtypeStruct((128, 128), jnp.float32)] * 4
    compiled = jax.jit(step, donate_argnums=0).lower(ws, jax.ShapeDtypeStruct((512, 128), jnp.float32)).compile()
    module = hlo.open(compiled)
    stock, planned = aligned([memory_map(module), planned_map(module)])
    return stock, planned


@pytest.fixture
def opened(browser: Any, drawn: tuple[MemoryMap, MemoryMap], tmp_path: Path) -> Any:
    """The browser with both maps side by side, once all is drawn."""
    file = tmp_path / "map.html"
    file.write_text(page([View(*arena([one])) for one in drawn], "source"))
    browser.get(file.as_uri())
    _wait(browser, "return Boolean(window.Bokeh && Bokeh.documents.length && Bokeh.documents[0].is_idle)")
    return browser


def _wait(browser: Any, condition: str) -> Any:
    for _ in range(200):
        if found := browser.execute_script(condition):
            return found
        time.sleep(0.05)
    raise AssertionError(f"never came true: {condition}")


def _set(browser: Any, name: str, attribute: str, value: Any) -> None:
    browser.execute_script(
        "Bokeh.documents[0].get_model_by_name(arguments[0]).setv({[arguments[1]]: arguments[2]})",
        name,
        attribute,
        value,
    )


def _texts(browser: Any) -> str:
    """All text on the page, through the shadow roots that bokeh draws into."""
    return browser.execute_script("""
        const gather = (node) => [...node.childNodes].map((inner) =>
            inner.nodeType === 3 ? inner.data : ["STYLE", "SCRIPT"].includes(inner.nodeName) ? "" :
            gather(inner) + (inner.shadowRoot ? gather(inner.shadowRoot) : "")).join(" ")
        return gather(document.body)""")


def _no_complaints(browser: Any) -> None:
    assert [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []


def _pixels(browser: Any, box: dict[str, float]) -> tuple[float, float]:
    """Where on the page a time and an address of the first map are."""
    return tuple(
        browser.execute_script(
            """
            const view = Bokeh.index.find_one(Bokeh.documents[0].get_model_by_name('map stock'))
            const frame = view.frame
            const area = view.canvas_view.el.getBoundingClientRect()
            return [area.x + frame.x_scale.compute(arguments[0]), area.y + frame.y_scale.compute(arguments[1])]
            """,
            box["time"],
            box["address"],
        )
    )


def test_it_draws_without_a_complaint_and_needs_no_network(opened: Any, drawn: Any) -> None:
    for one in drawn:
        count = opened.execute_script(
            "return Bokeh.documents[0].get_model_by_name(arguments[0]).data.left.length", f"boxes {one.title}"
        )
        assert count == len(one.values)
        assert f"{one.title}: temps" in _texts(opened)
    assert opened.execute_script("return performance.getEntriesByType('resource').length") == 0
    _no_complaints(opened)


def test_hover_shows_the_right_buffer(opened: Any, drawn: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    stock = drawn[0]
    area = (stock.end - stock.start) * stock.size * (stock.band == 0)
    number = int(area.argmax())
    # Away from the line of the peak, which is in front.
    where = {
        "time": stock.start[number] + 0.3 * float(stock.end[number] - stock.start[number]),
        "address": stock.address[number] + 0.4 * float(stock.size[number]),
    }
    x, y = _pixels(opened, {key: float(value) for key, value in where.items()})
    ActionChains(opened).move_by_offset(int(x), int(y)).perform()
    value = stock.values[number]
    for _ in range(100):
        if f"{value.instruction.name} = {value.instruction.opcode}" in " ".join(_texts(opened).split()):
            break
        time.sleep(0.05)
    text = " ".join(_texts(opened).split())
    assert f"{value.instruction.name} = {value.instruction.opcode}" in text
    assert str(value.shape) in text and value.shape.element_type in text
    assert f"address {stock.address[number]:,}" in text
    assert Path(value.instruction.source_file).name in text
    ActionChains(opened).move_by_offset(-int(x), -int(y)).perform()
    _no_complaints(opened)


def test_search_finds_outlines_and_centres(opened: Any, drawn: Any) -> None:
    stock = drawn[0]
    number = int((stock.size * (stock.band == 0)).argmax())
    name = stock.values[number].instruction.name
    _set(opened, "search", "value", name)
    said = _wait(opened, "return Bokeh.documents[0].get_model_by_name('found').text")
    assert said.endswith(" found") and int(said.split()[0]) >= 1
    found = opened.execute_script(
        "return Object.fromEntries(Object.entries(Bokeh.documents[0].get_model_by_name('found stock').data)"
        ".map(([side, numbers]) => [side, Array.from(numbers)]))"
    )
    outlined = list(zip(found["left"], found["right"], found["bottom"], found["top"], strict=True))
    box = (stock.start[number], stock.end[number], stock.address[number], stock.address[number] + stock.size[number])
    assert tuple(map(int, box)) in outlined
    ranges = opened.execute_script(
        "const d = Bokeh.documents[0].get_model_by_name('map stock');"
        "return [d.x_range.start, d.x_range.end, d.y_range.start, d.y_range.end]"
    )
    assert ranges[0] <= box[0] and box[1] <= ranges[1] and ranges[2] <= box[2] and box[3] <= ranges[3]
    said = "return Bokeh.documents[0].get_model_by_name('found').text"
    click = "Bokeh.index.find_one(Bokeh.documents[0].get_model_by_name(arguments[0])).el"
    steps = []
    for button in ("next", "next", "previous"):
        opened.execute_script(f"{click}.shadowRoot.querySelector('button').click()", button)
        steps.append(_wait(opened, said))
    assert f": {name}" in steps[0] and steps[0] == steps[2]
    assert steps[0].startswith("1 of ")
    _set(opened, "search", "value", "no such thing")
    assert _wait(opened, "return Bokeh.documents[0].get_model_by_name('found').text").startswith("0")
    _no_complaints(opened)


def test_colours_and_bands_change(opened: Any) -> None:
    read = (
        "const d = Bokeh.documents[0];"
        "return [d.get_model_by_name('legend kind').visible, d.get_model_by_name('map stock').y_range.end]"
    )
    by_source, temps = opened.execute_script(read)
    _set(opened, "colour", "active", 0)
    labels = opened.execute_script("return Bokeh.documents[0].get_model_by_name('extent').labels")
    _set(opened, "extent", "active", labels.index("all"))
    by_kind, everything = opened.execute_script(read)
    assert not by_source and by_kind
    assert everything > temps
    _no_complaints(opened)
