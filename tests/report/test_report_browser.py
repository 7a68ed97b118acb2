"""Reports in a headless Chromium: `make test-browser`."""

from __future__ import annotations

import csv
import io
import re
from contextlib import contextmanager

import numpy as np
import pytest

from experiments import browser
from reports import GALLERY, IMAGE, SCRIPT, problem

pytestmark = pytest.mark.browser
OUTSIDE = """() => Array.from(document.querySelectorAll("figure")).filter((figure) => {
  const frame = figure.getBoundingClientRect();
  const svg = figure.querySelector(".main-svg").getBoundingClientRect();
  return svg.right > frame.right + 1 || svg.left < frame.left - 1 || svg.height < 50;
}).length"""
SIZES = [(1440, 900), (390, 844)]


@pytest.fixture(scope="session")
def chromium():
    if browser.found() is None:
        pytest.fail(browser.INSTALL)
    with browser.browser() as running:
        yield running


@pytest.fixture(scope="session")
def report(tmp_path_factory):
    """Where the report of a model of the gallery is."""
    folder, made = tmp_path_factory.mktemp("reports"), {}

    def path(name):
        if name not in made:
            model, given = problem(name)
            made[name] = folder / f"{name}.html"
            model.report(made[name], **given)
        return made[name]

    return path


@contextmanager
def opened(chromium, path, size=SIZES[0], theme="light"):
    """A page once all of it is drawn; what it complained of or asked for is an error."""
    page = chromium.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=theme)
    page.set_default_timeout(60_000)  # a machine may have a lot to do
    seen = []
    page.on("console", lambda message: seen.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: seen.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (seen.append("dialog"), dialog.dismiss()))
    page.on("request", lambda request: seen.append(f"request: {request.url}"))
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]")
    yield page
    page.close()
    # Blobs are what a user saves from the page.
    asked = [one for one in seen if not one.startswith("request: blob:")]
    assert asked == [f"request: {path.as_uri()}"]


def points(page):
    return page.evaluate(
        "Array.from(document.querySelectorAll('#scatter .point'), p => p.getAttribute('transform'))"
    )


def colours(page):
    return page.evaluate(
        "Array.from(document.querySelectorAll('#scatter .point'), p => getComputedStyle(p).fill)"
    )


def choose(page, label, option):
    page.locator("#scatter").get_by_label(label, exact=True).select_option(label=option)


def cells(page, panel, column):
    rows = page.locator(f"{panel} tbody tr")
    return rows.evaluate_all(f"rows => rows.map(row => row.cells[{column}].textContent)")


def saved(page, click):
    """The name and the text of a file that a click saves."""
    with page.expect_download() as waiting:
        click()
    return waiting.value.suggested_filename, waiting.value.path().read_bytes()


# ---------------------------------------------------------------- every report


@pytest.mark.parametrize("size", SIZES, ids=["wide", "narrow"])
@pytest.mark.parametrize("name", GALLERY)
def test_nothing_is_asked_cut_off_or_complained_of(chromium, report, name, size):
    with opened(chromium, report(name), size) as page:
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= size[0]  # the page has no scroll bar to the side
        # Pictures stay inside of their frames, and each has something in it.
        assert page.evaluate(OUTSIDE) == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", ["wine", "kinds", "unfinished", "hostile"])
def test_accessibility(chromium, report, name, theme):
    from axe_playwright_python.sync_playwright import Axe

    with opened(chromium, report(name), theme=theme) as page:
        found = Axe().run(page).response["violations"]
    serious = [one for one in found if one["impact"] in ("serious", "critical")]
    assert [(one["id"], one["nodes"][0]["html"]) for one in serious] == []


def test_names_stay_text(chromium, report):
    with opened(chromium, report("hostile")) as page:
        assert page.locator("img").count() == 0
        assert page.locator("script").count() == 3
        assert cells(page, "#scatter", 0)[:2] == [SCRIPT, IMAGE]
        assert page.locator("h1").text_content() == f"{IMAGE} from {SCRIPT}"
        names = page.locator("#scatter select").first.locator("option").all_text_contents()
        assert names[:2] == [SCRIPT, IMAGE]
        first = page.locator("#scatter .point").first
        first.hover(force=True)
        page.wait_for_selector("#scatter .hovertext")
        assert "<" in page.locator("#scatter .hovertext").text_content()
        ticks = page.locator('[data-panel="weights"] .ytick').all_text_contents()
        assert "<b>bold</b>" in ticks


# ---------------------------------------------------------------- samples


def test_axes_change_where_points_are(chromium, report):
    model, _ = problem("wine")
    factors = model.factors()
    with opened(chromium, report("wine")) as page:
        before = points(page)
        assert len(before) == len(factors)
        choose(page, "Across", "factor3")
        after = points(page)
        assert before != after
        across = [float(re.match(r"translate\(([-\d.]+),", one)[1]) for one in after]
        assert page.locator("#scatter .xtitle").text_content() == "factor3"
        shown = page.evaluate("scatter.drawn.map(row => scatter.axes[scatter.x].values[row])")
        assert shown == pytest.approx(factors["factor3"].tolist())
        assert len(across) == len(factors)


def test_a_colour_changes_how_points_look(chromium, report):
    with opened(chromium, report("wine")) as page:
        before = colours(page)
        n = len(points(page))
        choose(page, "Colour by", "color_intensity")
        assert colours(page) != before
        assert len(points(page)) == n
        choose(page, "Colour by", "nothing")
        assert len(set(colours(page))) == 1


def test_a_lasso_selects_what_is_in_it(chromium, report):
    model, _ = problem("wine")
    z = model.factors()
    with opened(chromium, report("wine")) as page:
        path = browser.around(page, "#scatter", 0.5, 0.02, 0.98, 0.98)
        browser.drag(page, path[:-1])
        browser.drop(page, path[-1])
        page.wait_for_selector("#scatter caption:has-text('Selected')")
        left = page.evaluate("""() => {
            const axis = document.querySelector("#scatter .picture")._fullLayout.xaxis;
            return axis.p2d(axis._length / 2);
        }""")
        inside = z[z["factor1"] > left]
        n = page.evaluate("scatter.selected.size")
        assert abs(n - len(inside)) <= 3  # at the edges
        name, text = saved(page, page.locator("#scatter").get_by_text("Save as CSV").click)
        rows = list(csv.DictReader(io.StringIO(text.decode())))
        assert name == "selected-samples.csv"
        assert len(rows) == n
        for row in rows:
            assert float(row["factor2"]) == pytest.approx(z.loc[row["sample"], "factor2"])
        page.get_by_text("Show all, select none").click()
        assert page.locator("#scatter caption").text_content() == "All 178 samples"


def test_samples_are_selected_by_name(chromium, report):
    with opened(chromium, report("wine")) as page:
        box = page.get_by_label("Select by name")
        box.fill("WINE 17")
        box.press("Enter")
        assert page.locator("#scatter caption").text_content().startswith("Selected: 9 samples")
        faint = page.evaluate(
            "Array.from(document.querySelectorAll('#scatter .point'))"
            ".filter(p => Number(p.style.opacity) > 0.5).length"
        )
        assert faint == 9


# ---------------------------------------------------------------- tables


def test_tables_are_sorted_by_what_is_clicked(chromium, report):
    model, _ = problem("wine")
    panel = '[data-panel="variance"]'
    with opened(chromium, report("wine")) as page:
        head = page.locator(f"{panel} th").filter(has_text="r2")
        assert head.get_attribute("aria-sort") == "none"
        head.get_by_role("button").click()
        head = page.locator(f"{panel} th").filter(has_text="r2")
        assert head.get_attribute("aria-sort") == "descending"
        shown = [float(one.removesuffix(" %").replace("−", "-")) for one in cells(page, panel, 2)]
        table = model.variance_explained().sort_values("r2", ascending=False)
        assert shown == pytest.approx((100 * table["r2"]).head(15).tolist(), abs=0.051)
        page.keyboard.press("Enter")  # the heading has the focus
        assert head.get_attribute("aria-sort") == "ascending"
        assert cells(page, panel, 2) != shown


def test_tables_are_searched_and_saved(chromium, report):
    model, _ = problem("wine")
    panel = '[data-panel="weights"]'
    with opened(chromium, report("wine")) as page:
        page.locator(panel).get_by_label("Factor", exact=True).select_option(label="every factor")
        page.locator(panel).get_by_label("Search the table").fill("ALCOHOL")
        assert set(cells(page, panel, 0)) == {"alcohol"}
        name, text = saved(page, page.locator(panel).get_by_text("Save as CSV").click)
        rows = list(csv.DictReader(io.StringIO(text.decode())))
        assert name == "weights.csv"
        table = model.weights("chemistry", tidy=True).query("feature == 'alcohol'")
        assert [row["factor"] for row in rows] == table["factor"].tolist()
        assert [float(row["weight"]) for row in rows] == pytest.approx(table["weight"].tolist())
        page.locator(panel).get_by_label("Search the table").fill("nothing like it")
        assert cells(page, panel, 0) == []


def test_pages_of_tables_turn(chromium, report):
    names = problem("wine")[0].factors().index.tolist()
    with opened(chromium, report("wine")) as page:
        assert cells(page, "#scatter", 0) == names[:15]
        back = page.locator("#scatter").get_by_text("Previous rows")
        assert back.is_disabled()
        page.locator("#scatter").get_by_text("Next rows").click()
        assert cells(page, "#scatter", 0) == names[15:30]
        back.click()
        assert cells(page, "#scatter", 0) == names[:15]


def test_weights_are_chosen_by_view_factor_and_size(chromium, report):
    model, _ = problem("kinds")
    panel = '[data-panel="weights"]'
    with opened(chromium, report("kinds")) as page:
        page.locator(panel).get_by_label("View", exact=True).select_option("=count")
        page.locator(panel).get_by_label("Factor", exact=True).select_option("=factor2")
        best = model.top_features("count", "factor2", 3)
        assert cells(page, panel, 0) == best["feature"].tolist()
        caption = page.locator(f"{panel} caption").text_content()
        assert caption == "Weights (view: count, factor: factor2)"  # not a column each
        least = float(np.sort(best["standardised"].abs())[1])
        page.locator(panel).get_by_label("Least size of standardised").fill(f"{least - 1e-6}")
        assert cells(page, panel, 0) == best["feature"].tolist()[:2]
        assert page.locator(f"{panel} .point").count() == 2


def test_columns_follow_the_view(chromium, report):
    panel = '[data-panel="truth"]'
    with opened(chromium, report("kinds")) as page:
        page.locator(panel).get_by_label("View", exact=True).select_option("=count")
        column = page.locator(panel).get_by_label("Column", exact=True)
        assert column.input_value() == "=read0"
        assert "column: read0" in page.locator(f"{panel} caption").text_content()
        truth = problem("kinds")[1]["data"]["count"]["read0"]
        assert [float(one) for one in cells(page, panel, 1)] == truth.tolist()[:15]


# ---------------------------------------------------------------- pictures, colours, keys


def test_pictures_are_saved(chromium, report):
    with opened(chromium, report("kinds")) as page:
        figure = page.locator('[data-panel="variance"] figure')
        name, content = saved(page, figure.get_by_text("SVG").click)
        assert name == "variance.svg"
        assert content.lstrip().startswith(b"<svg")
        name, content = saved(page, figure.get_by_text("PNG").click)
        assert name == "variance.png"
        assert content.startswith(b"\x89PNG")


def test_colours_are_those_of_the_system_until_they_are_switched(chromium, report):
    paper = "getComputedStyle(document.body).backgroundColor"
    with opened(chromium, report("kinds"), theme="dark") as page:
        switch = page.locator("#theme")
        assert switch.get_attribute("aria-pressed") == "true"
        dark = page.evaluate(paper)
        text = page.locator("#scatter .xtitle").evaluate("one => getComputedStyle(one).fill")
        switch.click()
        assert page.evaluate(paper) != dark
        assert text != page.locator("#scatter .xtitle").evaluate(
            "one => getComputedStyle(one).fill"
        )


def test_the_keyboard_reaches_the_contents(chromium, report):
    with opened(chromium, report("kinds")) as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the summary"
        assert page.locator(".skip").bounding_box()["x"] >= 0
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"


def test_paper_is_white_and_nothing_on_it_is_a_button(chromium, report):
    with opened(chromium, report("kinds"), theme="dark") as page:
        page.emulate_media(media="print")
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        assert page.evaluate("document.documentElement.dataset.theme") == "light"
        assert not page.locator("nav").is_visible()
        assert not page.locator("#theme").is_visible()
        page.evaluate("window.dispatchEvent(new Event('afterprint'))")
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
