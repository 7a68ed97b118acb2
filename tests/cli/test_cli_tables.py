"""What a model found, printed: every command on every kind of model."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("typer")

import kofa  # noqa: E402
from commands import error, run  # noqa: E402
from conftest import KINDS, mixed  # noqa: E402

N = 40
IDS = [f"s{i:02d}" for i in range(N)]


def named(data):
    """Tables with names of samples and columns."""
    frames = {}
    for name, values in data.items():
        values = values[:, None] if values.ndim == 1 else values
        columns = [f"{name}{j}" for j in range(values.shape[1])]
        frames[name] = pd.DataFrame(values, pd.Index(IDS, name="id"), columns)
    return frames


def curved(rng):
    x = rng.normal(size=(N, 3))
    return {"x": x, "y": np.sin(2 * x[:, [0]]) + 0.1 * rng.normal(size=(N, 1))}


def declared(kernel, **more):
    return {"x": kofa.Real(kernel=kernel, **more), "y": kofa.Real()}


def made(name):
    """A model, and the data that it is fitted to."""
    rng = np.random.default_rng(5)
    of_kinds, of_kernels = mixed(rng, n=N), curved(rng)
    learnt = kofa.RBF(relevance="learn")
    views, outputs, data = {
        "kinds": (KINDS, None, named(of_kinds)),
        "nameless": (KINDS, ["count"], of_kinds),
        "outputs": (KINDS, ["label", "binary"], named(of_kinds)),
        "rbf": (declared("rbf"), ["y"], named(of_kernels)),
        "linear": (declared("linear"), None, named(of_kernels)),
        "several": (declared(["rbf", "linear"]), ["y"], named(of_kernels)),
        "bank": (declared("bank"), ["y"], of_kernels),
        "learnt": (declared(learnt), ["y"], named(of_kernels)),
        "vectors": (declared("rbf", sparse=True), ["y"], named(of_kernels)),
        "sparse": ({"x": kofa.Real(sparse=True)}, None, {"x": named(of_kernels)["x"]}),
    }[name]
    model = kofa.FactorModel(views, outputs=outputs, tol=0.3, random_state=0)
    return model, data


MODELS = [
    "kinds", "nameless", "outputs", "rbf", "linear", "several", "bank", "learnt", "vectors",
    "sparse",
]  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A file of each model, fitted when it is asked for."""
    place, found = tmp_path_factory.mktemp("models"), {}

    def file(name):
        if name not in found:
            model, data = made(name)
            model.fit(data).save(place / f"{name}.kofa")
            found[name] = (place / f"{name}.kofa", data)
        return found[name]

    return file


@pytest.fixture(params=MODELS)
def fitted_file(request, files, tmp_path, monkeypatch):
    """The path of a model, the model, and a folder to write to."""
    monkeypatch.chdir(tmp_path)
    path, data = files(request.param)
    return path, kofa.load(path), data


def value(one):
    if isinstance(one, float):
        return None if np.isnan(one) else pytest.approx(one, rel=1e-9, abs=1e-300)
    return one


def check_json(command, frame):
    """That a command prints a table of the library as JSON."""
    rows = json.loads(run([*command, "--json"]).stdout)
    expected = [{str(k): value(v) for k, v in row.items()} for row in frame.to_dict("records")]
    assert rows == expected


def check_file(command, frame, name="out.csv"):
    """That a command writes the same to a file, and says so."""
    said = run([*command, "-o", name]).stdout
    assert said.startswith(f"{name}: {len(frame)} row")
    found = pd.read_parquet(name) if name.endswith("parquet") else pd.read_csv(name)
    assert list(found.columns) == [str(column) for column in frame.columns]
    for column in frame.columns:
        if frame[column].dtype.kind == "f":
            assert np.allclose(found[str(column)], frame[column], equal_nan=True)
        else:
            texts = ["" if pd.isna(one) else str(one) for one in found[str(column)]]
            assert texts == frame[column].astype(str).tolist()


def check_shown(command, *words):
    """That a command shows a table with these words."""
    shown = run(command).stdout
    for word in words:
        assert str(word) in shown
    return shown


# ---------------------------------------------------------------- every model


def test_weights(fitted_file):
    path, model, _ = fitted_file
    parts = [model.weights(name, tidy=True).assign(view=name) for name in model.views_]
    frame = pd.concat(parts, ignore_index=True)
    frame = frame[["view", *(c for c in frame.columns if c != "view")]]
    command = ["weights", path]
    check_json(command, frame)
    check_file(command, frame)
    first = model.factor_names_[0]
    view = next(iter(model.views_))
    own = frame[(frame.view == view) & (frame.factor == first)].reset_index(drop=True)
    check_json([*command, view, "--factor", "0"], own)
    top = json.loads(run([*command, view, "-f", first, "--n", "2", "--json"]).stdout)
    assert [row["feature"] for row in top] == model.top_features(view, 0, 2)["feature"].tolist()
    check_shown(command, "standardised", view, first)


def test_factors(fitted_file):
    path, model, data = fitted_file
    frame = model.factors().rename_axis("sample").reset_index()
    check_json(["factors", path], frame)
    check_file(["factors", path], frame, "out.parquet")
    check_shown(["factors", path], "sample", "factor1")
    if isinstance(next(iter(data.values())), np.ndarray):
        return
    view = next(iter(data))
    data[view].iloc[:7].to_csv("new.csv")
    found = json.loads(run(["factors", path, "--view", f"{view}=new.csv", "--json"]).stdout)
    expected = model.transform({view: data[view].iloc[:7]})
    assert [row["id"] for row in found] == IDS[:7]
    assert np.allclose([row["factor1"] for row in found], expected["factor1"])


@pytest.mark.parametrize("by", ["factor", "view", "feature"])
def test_variance(fitted_file, by):
    path, model, _ = fitted_file
    frame = model.variance_explained(by=by)
    check_json(["variance", path, "--by", by], frame)
    if by == "factor":
        check_file(["variance", path, "--by", by], frame)
    views = model.views_ if by != "feature" else list(model.views_)[:1]
    check_shown(["variance", path, "--by", by], *views)


def test_relevance(fitted_file):
    path, model, _ = fitted_file
    check_json(["relevance", path], model.factor_relevance())
    check_file(["relevance", path], model.factor_relevance())
    check_shown(["relevance", path], "label", "links", *model.views_)
    for by, method in (
        ("feature", model.feature_relevance),
        ("sample", model.relevance_vectors),
    ):
        parts = []
        for view in model.views_:
            try:
                parts.append(method(view).assign(view=view))
            except kofa.DataError:
                continue
        command = ["relevance", path, "--by", by]
        if not parts:
            assert "relevance" in error(command)
            continue
        frame = pd.concat(parts, ignore_index=True)
        check_json(command, frame[["view", *(c for c in frame.columns if c != "view")]])
        check_shown(command, "relevance")


def test_kernels(fitted_file):
    path, model, _ = fitted_file
    check_json(["kernels", path], model.kernel_weights())
    check_file(["kernels", path], model.kernel_weights())
    check_shown(["kernels", path], "weight")
    outputs = [name for name, view in model.views_.items() if view.role.output]
    for name in outputs:
        frame = model.kernel_weights(name)
        frame.insert(0, "output", name)
        check_json(["kernels", path, "--outputs", name], frame)
    assert "no output 'nope'" in error(["kernels", path, "--outputs", "nope"], 2)


def test_associate(fitted_file):
    path, model, _ = fitted_file
    rng = np.random.default_rng(0)
    known = pd.DataFrame(
        {"age": rng.integers(30, 80, N), "ward": rng.choice(["a", "b", "c"], N)},
        pd.Index(IDS, name="id"),
    )
    known.to_csv("known.csv")
    frame = model.associate(known)
    check_json(["associate", path, "known.csv"], frame)
    check_file(["associate", path, "known.csv"], frame)
    only = json.loads(run(["associate", path, "known.csv:age", "--ranks", "--json"]).stdout)
    assert {row["covariate"] for row in only} == {"age"}
    assert {row["statistic"] for row in only} == {"rho"}
    check_shown(["associate", path, "known.csv"], "ward", "eta_squared")


def test_info_and_predictions_of_every_model(fitted_file):
    path, model, _ = fitted_file
    assert json.loads(run(["info", path, "--json"]).stdout)["factors"] == model.n_factors_


# ---------------------------------------------------------------- feature sets


@pytest.fixture
def genes(tmp_path, monkeypatch):
    """A model of 60 genes, its table, and two feature sets in a file."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    names = [f"g{j}" for j in range(60)]
    w = rng.normal(size=(1, 60))
    w[:, :15] += 2
    x = rng.normal(size=(N, 1)) @ w + rng.normal(size=(N, 60))
    rna = pd.DataFrame(x, pd.Index(IDS, name="id"), names)
    rna.to_csv("rna.csv")
    kofa.FactorModel(random_state=0).fit({"rna": rna}).save("genes.kofa")
    sets = {"up": names[:15], "other": names[30:50]}
    lines = ["\t".join([name, "about", *genes]) for name, genes in sets.items()]
    Path("sets.gmt").write_text("\n".join(lines), encoding="utf-8")
    pairs = [(name, gene) for name, genes in sets.items() for gene in genes]
    pd.DataFrame(pairs, columns=["set", "feature"]).to_csv("sets.csv", index=False)
    return kofa.load("genes.kofa"), sets, rna


@pytest.mark.parametrize("file", ["sets.gmt", "sets.csv"])
def test_enrich(genes, file):
    model, sets, rna = genes
    command = ["enrich", "genes.kofa", "rna", file]
    check_json(command, model.enrich("rna", sets))
    with_data = [*command, "--view", "rna=rna.csv", "--n-leading", "2", "--factor", "0"]
    check_json(with_data, model.enrich("rna", sets, "factor1", {"rna": rna}, n_leading=2))
    frame = model.enrich("rna", sets)
    check_file(command, frame.assign(leading=[", ".join(one) for one in frame["leading"]]))
    shown = check_shown(command, "up", "leading")
    assert "features count as independent" in shown
    assert "independent" not in run(with_data).stdout


@pytest.mark.usefixtures("genes")
def test_enrich_says_what_is_wrong():
    assert "no set has a number of features" in error(
        "enrich genes.kofa rna sets.gmt --min-size 50"
    )
    assert error("enrich genes.kofa rna sets.gmt --sign up", 2).startswith("--sign: expected sign")
    assert "has no view 'ran'; did you mean 'rna'?" in error("enrich genes.kofa ran sets.gmt", 2)
    assert "no factor 'factr1'" in error("enrich genes.kofa rna sets.gmt -f factr1", 2)
    assert error("enrich genes.kofa rna rna.csv").startswith("rna.csv, column 'set'")


# ---------------------------------------------------------------- what is shown


@pytest.mark.usefixtures("genes")
def test_a_few_weights_are_shown_and_it_is_said_where_all_are():
    shown = run("weights genes.kofa").stdout
    rows = len(kofa.load("genes.kofa").weights("rna", tidy=True))
    assert "the 5 largest of each factor and view" in shown
    assert f"-o FILE or --json has all {rows:,} rows" in shown
    assert len(run("weights genes.kofa -o -").stdout.splitlines()) == rows + 1


@pytest.mark.usefixtures("genes")
def test_tables_fit_into_the_terminal():
    from typer.testing import CliRunner

    from kofa.cli.app import app

    for width in ("80", "120"):
        for command in ("weights genes.kofa", "enrich genes.kofa rna sets.gmt", "plot"):
            result = CliRunner().invoke(app, command.split(), env={"COLUMNS": width})
            assert result.exit_code == 0
            assert max(len(line) for line in result.stdout.splitlines()) <= int(width)
    narrow = CliRunner().invoke(app, ["weights", "genes.kofa"], env={"COLUMNS": "40"}).stdout
    assert "not shown: " in narrow


def test_the_table_of_variance_has_a_column_for_each_view(files):
    path, _ = files("kinds")
    model = kofa.load(path)
    lines = run(["variance", path]).stdout.splitlines()
    assert lines[0].split() == ["factor", *model.views_]
    total = model.variance_explained(by="view")["r2"]
    last = next(line for line in lines if line.startswith("all "))
    assert np.allclose([float(x) for x in last.split()[1:]], total, atol=2e-3)


def test_a_table_from_a_python_model_of_tuples_and_markup_is_shown(tmp_path):
    columns = ["[red]a", "\x1b[31mb", "ü"]
    x = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 3)), columns=columns)
    path = tmp_path / "m.kofa"
    kofa.FactorModel(tol=1.0, n_factors=1).fit({"x": x}).save(path)
    shown = run(["weights", path]).stdout
    assert "[red]a" in shown
    assert "\x1b" not in shown
    features = {row["feature"] for row in json.loads(run(["weights", path, "--json"]).stdout)}
    assert features == set(columns)


# ---------------------------------------------------------------- tables that are needed


def test_models_without_samples_say_how_to_give_tables(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path, data = files("kinds")
    kofa.load(path).save("bare.kofa", samples=False)
    data["real"].to_csv("real.csv")
    cure = "add --study STUDY or --view NAME=FILE"
    for command in ("factors bare.kofa", "associate bare.kofa real.csv"):
        message = error(command, 2)
        assert message.startswith("bare.kofa: this model keeps no samples")
        assert message.endswith(cure)
        run(f"{command} --view real=real.csv")
    assert error("variance bare.kofa --by sample", 2).endswith(cure)
    frame = kofa.load(path).variance_explained({"real": data["real"]}, by="sample")
    command = ["variance", "bare.kofa", "--by", "sample", "--view", "real=real.csv"]
    check_json(command, frame)


@pytest.mark.usefixtures("model")
def test_tables_of_a_study_are_taken():
    model = kofa.load("model.kofa")
    shown = json.loads(run("variance model.kofa --by view --study study.toml --json").stdout)
    data = {
        name: pd.read_csv(f"{file}.csv", index_col=0, dtype={0: str})
        for name, file in (("rna", "rna"), ("protein", "protein"))
    }
    stage = pd.read_csv("clinical.csv", index_col=0, dtype={0: str})[["stage"]]
    expected = model.variance_explained({**data, "stage": stage}, by="view")
    assert np.allclose([row["r2"] for row in shown], expected["r2"])


def test_a_table_comes_from_stdin(model):
    from typer.testing import CliRunner

    from kofa.cli.app import app

    text = Path("rna.csv").read_bytes()

    def piped(*command, code=0):
        result = CliRunner().invoke(app, [*command], input=text, prog_name="kofa")
        assert result.exit_code == code, result.output
        return result

    expected = run(f"transform {model} --view rna=rna.csv").stdout
    assert piped("transform", str(model), "--view", "rna=-").stdout == expected
    shown = piped("associate", str(model), "-", "--json").stdout
    known = pd.read_csv("rna.csv", index_col=0, dtype={0: str})[["g0"]]
    first = kofa.load(model).associate(known)["value"][0]
    assert json.loads(shown)[0]["value"] == pytest.approx(first)
    fitted = piped("fit", "--view", "rna=-:g0,g1", "--max-iter", "2", "-o", "in.kofa", "-q")
    assert fitted.output == ""
    assert list(kofa.load("in.kofa").views_["rna"].inputs) == ["g0", "g1"]
    twice = piped("transform", str(model), "-v", "rna=-", "-v", "protein=-", code=2)
    assert "only one table can be read from stdin" in twice.stderr
    text = b"id,a\n"
    wrong = piped("transform", str(model), "--view", "rna=-", code=1)
    assert wrong.stderr.startswith("error: stdin")


# ---------------------------------------------------------------- wrong arguments


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("weights", "Missing argument 'MODEL'"),
        ("weights model.kofa ran", "has no view 'ran'; did you mean 'rna'?"),
        ("weights model.kofa --factor factor99", "has no factor 'factor99'"),
        ("weights model.kofa --factor 99", "has no factor '99'"),
        ("weights model.kofa --n 0", "--n"),
        ("weights model.kofa --json -o x.csv", "Expected --out or --json but got both"),
        ("variance model.kofa --by fctor", "Expected --by factor, view, feature, sample but got"),
        ("relevance model.kofa --by view", "Expected --by factor, feature, sample but got"),
        ("relevance model.kofa nope", "has no view 'nope'"),
        ("kernels model.kofa --outputs rna", "has no output 'rna'"),
        ("kernels model.kofa --output stage", "There is no --output; write --outputs NAME"),
        ("associate model.kofa", "Missing argument 'COVARIATES'"),
        ("associate model.kofa rna.csv:g0:g1", "Expected FILE[:COLUMNS]"),
        ("enrich model.kofa rna", "Missing argument 'SETS'"),
        ("factors model.kofa --view rnaa=rna.csv", "has no view 'rnaa'"),
        ("factors model.kofa --nope", "No such option"),
        ("factors model.kofa --sep ;", "--sep is for tables given by --view"),
    ],
)
@pytest.mark.usefixtures("model")
def test_wrong_arguments_are_one_line_and_code_2(command, message):
    assert message in error(command, 2)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("weights nope.kofa", "there is no such file"),
        ("weights rna.csv", "this is not a kofa model"),
        ("factors model.kofa -o no/x.csv", "there is no folder 'no'"),
        ("factors model.kofa -o x.docx", "ends in .csv"),
        ("factors model.kofa -o model.kofa", "ends in .csv"),
        ("associate model.kofa nope.csv", "there is no such file"),
        ("associate model.kofa rna.csv:nope", "there is no column 'nope'"),
        ("associate model.kofa rna.csv -o rna.csv", "this is a file that is read"),
        ("enrich model.kofa rna nope.gmt", "there is no such file"),
    ],
)
@pytest.mark.usefixtures("model")
def test_wrong_files_are_one_line_and_code_1(command, message):
    assert message in error(command)


def test_help_speaks_of_no_types():
    from kofa.cli.app import app

    for command in [one.callback.__name__ for one in app.registered_commands]:
        shown = run(f"{command} --help").stdout
        assert not re.search(r"TEXT|INTEGER|FLOAT|PATH|<\w+>|x>=|None\]|BOOL|\bbool\b", shown)
        assert re.search(r"kofa \w+", shown)
