"""`kofa plot`: every plot as a picture in a file."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("typer")
pytest.importorskip("matplotlib")

import kofa  # noqa: E402
import kofa.plot  # noqa: E402
from commands import error, run  # noqa: E402
from kofa.cli.commands.plot import PLOTS  # noqa: E402

START = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
N = 40


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Two models, their tables, covariates, feature sets, and an evaluation."""
    folder = tmp_path_factory.mktemp("plots")
    rng = np.random.default_rng(0)
    ids = pd.Index([f"s{i}" for i in range(N)], name="id")
    z = rng.normal(size=(N, 2))
    x = pd.DataFrame(z @ rng.normal(size=(2, 16)) + 0.3 * rng.normal(size=(N, 16)), ids)
    x = x.add_prefix("g")
    y = pd.DataFrame({"y": z[:, 0] + 0.1 * rng.normal(size=N)}, ids)
    stage = pd.DataFrame({"stage": np.where(z[:, 0] > 0, "late", "early")}, ids)
    for name, frame in {"x": x, "y": y, "stage": stage}.items():
        frame.to_csv(folder / f"{name}.csv")
    stage.assign(age=rng.integers(30, 80, N)).to_csv(folder / "known.csv")
    sets = {"a": x.columns[:5], "b": x.columns[8:]}
    lines = ["\t".join([name, "-", *genes]) for name, genes in sets.items()]
    (folder / "sets.gmt").write_text("\n".join(lines), encoding="utf-8")
    data = {"x": x, "y": y}
    options = {"tol": 0.3, "random_state": 0}
    kofa.FactorModel(**options).fit(data).save(folder / "plain.kofa")
    views = {"x": kofa.Real(kernel="rbf", sparse=True), "y": kofa.Real()}
    kofa.FactorModel(views, outputs=["y"], **options).fit(data).save(folder / "vectors.kofa")
    views = {"x": kofa.Real(kernel=kofa.RBF(relevance="learn")), "y": kofa.Real()}
    kofa.FactorModel(views, outputs=["y"], **options).fit(data).save(folder / "learnt.kofa")
    views = {"x": kofa.Real(), "y": kofa.Real(), "stage": kofa.Categorical()}
    model = kofa.FactorModel(views, outputs=["y", "stage"], **options)
    found = kofa.compare(
        {"one": model, "two": model}, {**data, "stage": stage}, cv=2, return_predictions=True
    )
    for name, frame in zip(("scores", "held_out"), found, strict=True):
        frame.to_csv(folder / f"{name}.csv", index=False)
    return folder


@pytest.fixture
def here(place, monkeypatch):
    monkeypatch.chdir(place)
    return place


CALLS = {
    "data_overview": "plain.kofa",
    "bound": "plain.kofa --terms",
    "variance_explained": "plain.kofa",
    "factor_relevance": "plain.kofa --factor 0 --factor factor2",
    "factors": "plain.kofa --x 1 --y factor1 --covariates known.csv --colour stage",
    "factor_pairs": "plain.kofa --covariates known.csv:age --colour age --n 2",
    "factor_violins": "plain.kofa --by stage --covariates known.csv",
    "factor_correlation": "plain.kofa",
    "weights": "plain.kofa x --factor 1 --n 3 --scale weight",
    "top_weights": "plain.kofa x -f factor1 --n 4",
    "weights_heatmap": "plain.kofa x -f 0 -f 1",
    "weights_scatter": "plain.kofa x --x 0 --y 1",
    "data_heatmap": "plain.kofa x --view x=x.csv --n 5",
    "associations": "plain.kofa --covariates known.csv --show q",
    "enrichment": "plain.kofa x --sets sets.gmt --view x=x.csv",
    "agreement": "plain.kofa --other vectors.kofa",
    "feature_relevance": "learnt.kofa x --image-shape 4x4",
    "relevance_vectors": "vectors.kofa x --names",
    "kernel": "vectors.kofa x --view x=x.csv --by factor1",
    "kernel_weights": "vectors.kofa y",
    "predictions": "held_out.csv y --of two",
    "calibration": "held_out.csv y --bins 5",
    "confusion": "held_out.csv --of one",
    "compare": "scores.csv y --score r2",
}


def test_all_plots_are_listed_and_tried():
    assert set(PLOTS) == set(CALLS) == set(kofa.plot.__all__)
    shown = run("plot").stdout
    assert all(name in shown for name in PLOTS)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore")
def test_every_plot_becomes_a_picture(name, here):
    form = list(START)[list(CALLS).index(name) % 3]
    options = CALLS[name]
    out = f"{name}.{form}"
    if name == "enrichment":  # whose sets are smaller than the least that is tested
        assert "min_size" in error(f"plot {name} {options} -o {out}")
        wide = ["\t".join([n, "-", *(f"g{j}" for j in range(12))]) for n in ("a", "b")]
        (here / "wide.gmt").write_text("\n".join(wide), encoding="utf-8")
        options = options.replace("sets.gmt", "wide.gmt")
    assert run(f"plot {name} {options} -o {out}").stdout == f"{out}: {name}\n"
    assert (here / out).read_bytes().startswith(START[form])
    assert (here / out).stat().st_size > 3000


@pytest.mark.usefixtures("here")
def test_options_reach_the_function(monkeypatch):
    seen = {}

    def draw(model, **options):
        seen.update(options)
        return function(model, **options)

    function = kofa.plot.factors
    draw.__signature__ = inspect.signature(function)
    monkeypatch.setattr(kofa.plot, "factors", draw)
    run("plot factors plain.kofa --view x=x.csv --x 1 --y 0 --ellipses 0.5 --colour x:g3 -o f.png")
    assert (seen["x"], seen["y"], seen["ellipses"]) == ("factor2", "factor1", 0.5)
    assert seen["colour"] == ("x", "g3")
    assert list(seen["data"]) == ["x"]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            "plot varianc plain.kofa -o x.png",
            "no plot 'varianc'; did you mean 'variance_explained'",
        ),
        ("plot wieghts plain.kofa -o x.png", "no plot 'wieghts'; did you mean 'weights'?"),
        ("plot zzz plain.kofa -o x.png", "no plot 'zzz'; kofa plot lists them"),
        ("plot bound", "Expected a model; kofa plot bound model.kofa -o bound.png"),
        ("plot bound plain.kofa", "Expected -o with the file of the picture; add -o bound.png"),
        ("plot bound plain.kofa -o x.gif", "ends in .png, .svg, .pdf but got 'x.gif'"),
        ("plot bound plain.kofa -o -", "ends in .png"),
        ("plot bound plain.kofa --colour age -o x.png", "The plot bound takes no --colour"),
        ("plot bound plain.kofa x -o x.png", "The plot bound takes no view but got 'x'"),
        ("plot weights plain.kofa -o x.png", "The plot weights needs a view; name it behind"),
        ("plot weights plain.kofa xx -o x.png", "has no view 'xx'"),
        ("plot weights plain.kofa x -f 0 -f 1 -o x.png", "Expected one --factor"),
        ("plot weights plain.kofa x -f nine -o x.png", "has no factor 'nine'"),
        ("plot weights plain.kofa x --scale big -o x.png", "--scale"),
        ("plot weights plain.kofa x --n 0 -o x.png", "--n"),
        ("plot kernel vectors.kofa x -o x.png", "The plot kernel needs tables; add --study"),
        ("plot agreement plain.kofa -o x.png", "needs another model; add --other MODEL"),
        ("plot associations plain.kofa -o x.png", "needs covariates; add --covariates FILE"),
        ("plot factor_violins plain.kofa -o x.png", "needs classes; add --by COLUMN"),
        (
            "plot factors plain.kofa --covariates known.csv --colour agee -o x.png",
            "--colour: there is no column 'agee'; did you mean 'age'?",
        ),
        ("plot feature_relevance learnt.kofa x --image-shape 4 -o x.png", "ROWSxCOLUMNS"),
    ],
)
@pytest.mark.usefixtures("here")
def test_wrong_arguments_are_one_line_and_code_2(command, message):
    assert message in error(command, 2)
    assert not Path("x.png").exists()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("plot bound nope.kofa -o x.png", "there is no such file"),
        ("plot bound x.csv -o x.png", "pass what kofa evaluate -o wrote"),
        ("plot calibration plain.kofa -o x.png", "is of what kofa evaluate wrote"),
        ("plot bound plain.kofa -o no/x.png", "there is no folder 'no'"),
        ("plot relevance_vectors plain.kofa x -o x.png", "it has no relevance vectors"),
        ("plot calibration scores.csv -o x.png", "scores.csv: expected a table of"),
        ("plot agreement plain.kofa --other x.csv -o x.png", "x.csv: this is not a kofa model"),
    ],
)
@pytest.mark.usefixtures("here")
def test_wrong_files_are_one_line_and_code_1(command, message):
    assert message in error(command)
    assert not Path("x.png").exists()


def test_a_model_is_not_replaced_by_a_picture(here):
    (here / "model.png").write_bytes((here / "plain.kofa").read_bytes())
    assert "this is a file of kofa" in error("plot bound plain.kofa -o model.png")
