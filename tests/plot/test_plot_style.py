"""Names, colours and places that all plots share."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib import colormaps, pyplot
from matplotlib.colors import to_rgb

from drawn import tick_names
from kofa.plot import parts, style
from kofa.plot.ticks import name_axis


def test_names_are_clipped_in_the_middle_and_never_formulas():
    assert style.clipped("short") == "short"
    assert style.clipped(17) == "17"
    long = style.clipped("begin" + "x" * 100 + "end", 12)
    assert len(long) == 12
    assert long.startswith("begin")
    assert long.endswith("end")
    assert style.clipped("$a$") == r"\$a\$"
    assert "\x1b" not in style.clipped("\x1b[31m")


def test_formulas_in_names_are_drawn_as_they_are():
    figure, ax = pyplot.subplots()
    name_axis(ax.xaxis, ["$broken{", "$x^2$"])
    ax.set_xlim(-0.5, 1.5)
    figure.draw_without_rendering()
    assert [label.get_text() for label in ax.get_xticklabels()] == [r"\$broken{", r"\$x^2\$"]


def test_colours_differ_for_all_and_classes_beyond_them_differ_by_marker():
    assert len(set(style.COLOURS)) == len(style.COLOURS) == len(style.MARKERS)
    looks = [(style.colour(i), style.marker(i)) for i in range(30)]
    assert len(set(looks)) == 30


def test_neighbouring_classes_differ_in_grey_by_marker():
    assert len({style.marker(i) for i in range(7)}) == 7


@pytest.mark.parametrize("n", [3, 40, 3000])
@pytest.mark.parametrize("axis", ["x", "y"])
def test_names_along_an_axis_are_as_many_as_fit(n, axis):
    _, ax = pyplot.subplots(figsize=(3, 3))
    one = getattr(ax, f"{axis}axis")
    getattr(ax, f"set_{axis}lim")(-0.5, n - 0.5)
    name_axis(one, [f"a name that is long {i}" for i in range(n)])
    shown = tick_names(one)
    assert shown[0] == "a name that is long 0"
    assert len(shown) <= 27
    assert (len(shown) == n) == (n == 3)


def test_names_are_not_thinned_for_ever():
    figure, ax = pyplot.subplots(figsize=(3, 1))
    ax.set_ylim(29.5, -0.5)
    name_axis(ax.yaxis, range(30))
    few = len(tick_names(ax.yaxis))
    figure.set_size_inches(3, 8)
    assert few < len(tick_names(ax.yaxis)) == 30


def test_names_between_the_places_are_empty():
    _, ax = pyplot.subplots()
    name_axis(ax.xaxis, ["a", "b"])
    assert [ax.xaxis.get_major_formatter()(x) for x in (-1, 0, 0.5, 1, 2)] == ["", "a", "", "b", ""]


def test_places_are_moved_apart_within_limits_and_keep_their_order():
    places = np.array([0.1, 0.11, 0.12, 0.9])
    moved = parts.spread_out(places, 0.1, 0.0, 1.0)
    assert (np.diff(moved) >= 0.1 - 1e-12).all()
    assert moved.min() >= 0
    assert moved.max() <= 1
    assert moved[3] == pytest.approx(0.9)
    assert len(parts.spread_out(np.empty(0), 0.1, 0, 1)) == 0


def test_names_of_points_do_not_overlap_and_the_first_have_priority():
    figure, ax = pyplot.subplots(figsize=(3, 3))
    ax.set(xlim=(0, 1), ylim=(0, 1))
    x = np.array([0.5, 0.501, 0.502, 0.503, 0.504, 0.1])
    parts.name_points(ax, x, np.full(6, 0.5), [f"name{i}" for i in range(6)], np.arange(6))
    shown = [text.get_text() for text in ax.texts]
    assert shown[0] == "name0"
    assert "name5" in shown
    assert len(shown) < 6
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_a_heat_map_is_centred_at_zero_if_signed_and_hatched_where_missing():
    _, ax = pyplot.subplots()
    image = parts.heatmap(ax, np.array([[1.0, np.nan], [-3.0, 0.0]]), "ab", "cd", signed=True)
    assert image.get_clim() == (-3.0, 3.0)
    assert np.ptp(image.to_rgba(np.array([[0.0]]))[0, 0, :3]) < 0.1  # grey
    assert image.get_array().mask.tolist() == [[False, True], [False, False]]
    assert ax.get_facecolor()[:3] == to_rgb("white")
    assert ax.patch.get_hatch()


@pytest.mark.parametrize("name", [style.AMOUNT, style.VALUE, style.SIGNED])
def test_colours_of_values_are_ordered_in_print_without_colour(name):
    """Also negative and positive ones of the same size differ."""
    grey = colormaps[name](np.linspace(0.0, 1.0, 21))[:, :3] @ [0.299, 0.587, 0.114]
    assert (np.abs(np.diff(grey)) > 0.01).all()
    assert len(set(np.sign(np.diff(grey)))) == 1


def test_labels_of_scales_are_broken_into_lines_before_words_are_clipped():
    assert parts.in_lines("standardised weight", 30) == "standardised weight"
    assert parts.in_lines("standardised weight", 12) == "standardised\nweight"
    assert parts.in_lines("a_name_that_is_long", 9) == "a_na…long"


def test_text_in_cells_is_white_on_dark_ones_and_left_out_where_it_does_not_fit():
    _, ax = pyplot.subplots()
    image = parts.heatmap(ax, np.array([[0.0, 1.0]]), "a", "bc")
    parts.write_in_cells(ax, [["bright", "dark"]], parts.is_dark(image))
    assert [text.get_color() for text in ax.texts] == ["black", "white"]
    _, ax = pyplot.subplots(figsize=(1, 1))
    parts.write_in_cells(ax, [["long text"] * 20], [[True] * 20])
    assert not ax.texts


def test_many_points_are_a_picture_and_small():
    _, ax = pyplot.subplots()
    few, many = (parts.points(ax, np.zeros(n), np.zeros(n)) for n in (10, 5000))
    assert not few.get_rasterized()
    assert many.get_rasterized()
    assert many.get_sizes()[0] < few.get_sizes()[0]


def test_axes_of_another_style_get_ours():
    _, ax = pyplot.subplots()
    assert ax.xaxis.label.get_size() > style.TEXT
    assert style.axes(ax) is ax
    assert ax.xaxis.label.get_size() == style.TEXT
    assert not ax.spines["top"].get_visible()
    ax.plot([0, 1])
    assert {label.get_size() for label in ax.get_xticklabels()} == {style.SMALL}
