"""The built site in a headless Chromium: `make docs test-browser`."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments import browser

pytestmark = pytest.mark.browser

SITE = Path(__file__).parents[1] / "build" / "docs"
PAGES = (
    "index",
    "start/index",
    "generated/start/plot_1_five_minutes",
    "generated/tutorials/plot_1_tables_with_holes",
    "generated/tutorials/plot_6_images",
    "generated/gallery/index",
    "howto/from_mofa",
    "reference/api",
    "reference/commands",
    "generated/api/kofa.FactorModel",
    "method",
    "benchmarks",
)
UNSEEN = "[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)"


@pytest.fixture(scope="module")
def chromium():
    if browser.found() is None:
        pytest.fail(browser.INSTALL)
    if not (SITE / "index.html").exists():
        pytest.skip("there is no site; run make docs")
    with browser.browser() as running:
        yield running


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_pages_fit_into_their_window(chromium, width, scheme):
    context = chromium.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True
    )
    page, complaints = context.new_page(), []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    for name in PAGES:
        page.goto((SITE / f"{name}.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        assert page.evaluate("document.documentElement.dataset.theme") == scheme, name
        assert page.evaluate(UNSEEN) == [], name
    context.close()
    assert complaints == []
