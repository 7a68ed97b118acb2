"""Plots of features, samples and kernels that matter."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

import kofa
from drawn import LONG, every_kind, texts, tick_names, two_kernels, values_of
from kofa.plot import style

model = pytest.fixture(lambda: every_kind()[0])
data = pytest.fixture(lambda: every_kind()[1])
kernels = pytest.fixture(lambda: two_kernels())


@pytest.mark.parametrize("features", [3, 30_000])
def test_the_most_relevant_features_are_bars(features):
    table = pd.DataFrame({"feature": [f"{LONG}{j}" for j in range(features)]})
    table = table.assign(relevance=np.arange(features)[::-1], selected=table.index < 2)
    ax = kofa.plot.feature_relevance(table)
    shown = min(features, 20)
    assert [bar.get_width() for bar in ax.patches] == table["relevance"].iloc[:shown].tolist()
    colours = [bar.get_facecolor()[:3] for bar in ax.patches]
    assert colours == [to_rgb(style.MAIN)] * 2 + [to_rgb(style.FAINT)] * (shown - 2)
    assert ax.get_xlabel() == f"relevance, {shown} of {features:,} features"


def test_features_as_an_image_in_the_order_of_the_columns(kernels):
    model, _ = kernels
    ax = kofa.plot.feature_relevance(model, "w", image_shape=(2, 1))
    by_feature = model.feature_relevance("w").set_index("feature")["relevance"]
    assert values_of(ax.images[0]).ravel() == pytest.approx(by_feature.loc[[0, 1]].to_numpy())


def test_pixels_with_names_are_in_the_order_of_the_data():
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(60, 4)), columns=["d", "c", "b", "a"])
    views = {"x": kofa.Real(kernel=kofa.RBF(relevance="learn")), "y": kofa.Real()}
    data = {"x": x, "y": np.sin(2 * x[["b"]])}
    model = kofa.FactorModel(views, outputs=["y"]).fit(data)
    ax = kofa.plot.feature_relevance(model, "x", image_shape=(2, 2))
    assert np.argmax(values_of(ax.images[0])) == 2


@pytest.mark.parametrize("shape", [(3, 2), (5,), 4, "ab", (2.0, 2.0)])
def test_images_of_another_size_are_refused(shape):
    table = pd.DataFrame({"feature": range(4), "relevance": 1.0, "selected": True})
    with pytest.raises(kofa.DeclarationError, match="product is 4"):
        kofa.plot.feature_relevance(table, image_shape=shape)


def test_relevance_vectors_among_the_samples(kernels):
    model, _ = kernels
    ax = kofa.plot.relevance_vectors(model, "x", x="factor2", y=0, names=True)
    table = model.relevance_vectors("x")
    kept = table[table["kept"]]
    z = model.factors()[["factor2", "factor1"]]
    everyone, vectors = ax.collections
    assert np.asarray(everyone.get_offsets()) == pytest.approx(z.to_numpy())
    assert np.asarray(vectors.get_offsets()) == pytest.approx(z.loc[kept["sample"]].to_numpy())
    relevance = kept["relevance"].clip(lower=0).to_numpy()
    assert np.argmax(vectors.get_sizes()) == np.argmax(relevance)
    assert set(texts(ax)) <= set(map(str, kept["sample"]))
    assert ax.get_title(loc="left") == f"{len(kept)} relevance vectors of 60 samples"


def test_relevance_vectors_of_named_samples_and_one_factor():
    names = [f"{LONG}{i}" for i in range(40)]
    x = pd.DataFrame({"a": np.linspace(-3, 3, 40)}, names)
    views = {"x": kofa.Real(kernel="rbf", sparse=True), "y": kofa.Real()}
    model = kofa.FactorModel(views, outputs=["y"], n_factors=1).fit({"x": x, "y": np.sin(x)})
    ax = kofa.plot.relevance_vectors(model, "x", names=True)
    kept = model.relevance_vectors("x").query("kept")["sample"]
    rows = [names.index(sample) for sample in kept]
    assert np.asarray(ax.collections[1].get_offsets())[:, 0].tolist() == rows
    assert all(len(text) <= 18 for text in texts(ax))


def test_shares_of_kernels(kernels):
    model, _ = kernels
    for output in (None, "y"):
        ax = kofa.plot.kernel_weights(model, output)
        share = model.kernel_weights(output)["weight"]
        assert [bar.get_width() for bar in ax.patches] == pytest.approx(100 * share)
        assert tick_names(ax.yaxis) == ["x, RBF", "w, RBF"]
    assert ax.get_xlabel() == "share in y (%)"


def test_views_without_kernels_have_their_name():
    table = pd.DataFrame({"view": ["x", "x", "age"], "kernel": ["RBF", "Linear", "none"]})
    ax = kofa.plot.kernel_weights(table.assign(weight=[0.5, 0.3, 0.2]))
    assert tick_names(ax.yaxis) == ["x, RBF", "x, Linear", "age"]
    colours = [bar.get_facecolor() for bar in ax.patches]
    assert colours[0] == colours[1] != colours[2]


def test_a_kernel_its_reconstruction_and_the_error(kernels):
    model, data = kernels
    figure = kofa.plot.kernel(model, data, "x", by=None)
    kernel, back, error = (values_of(ax.images[0]) for ax in figure.axes[:3])
    assert back == pytest.approx(np.asarray(model.reconstruct(data, "x")))
    assert error == pytest.approx(kernel - back)
    assert np.abs(error).max() < 0.2 * np.abs(kernel).max()
    limits = {ax.images[0].get_clim() for ax in figure.axes[:3]}
    ((low, high),) = limits
    assert low == -high


def test_kernels_are_ordered_by_a_factor(kernels):
    model, data = kernels
    plain, ordered = (
        values_of(kofa.plot.kernel(model, data, "w", by=by).axes[0].images[0]) for by in (None, 0)
    )
    order = np.argsort(np.asarray(model.transform(data))[:, 0])
    assert np.sort(ordered, axis=1) == pytest.approx(np.sort(plain[order], axis=1))


def test_samples_that_lack_a_kernelized_view_are_grey():
    x = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 2)))
    data = {"x": x.iloc[:20], "w": x**2}
    model = kofa.FactorModel({"x": kofa.Real(kernel="rbf"), "w": kofa.Real()}).fit(data)
    figure = kofa.plot.kernel(model, data, "x", by=None)
    assert np.isnan(values_of(figure.axes[0].images[0])).all(axis=1).sum() == 10
    assert not np.isnan(values_of(figure.axes[1].images[0])).any()


def test_views_without_a_kernel_are_refused(kernels, model, data):
    with pytest.raises(kofa.DataError, match=r"View 'real': expected a view with a kernel"):
        kofa.plot.kernel(model, data, "real")
    kernel_model, tables = kernels
    with pytest.raises(kofa.DataError, match=r"(?i)data have no view 'x'"):
        kofa.plot.kernel(kernel_model, {"w": tables["w"]}, "x")
