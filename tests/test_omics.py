"""AnnData and MuData in, factors and weights written into them."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import kofa
from kofa import omics
from kofa.data import stored
from kofa.data.stored import BackedRows

ad = pytest.importorskip("anndata")
md = pytest.importorskip("mudata")
pd = pytest.importorskip("pandas")

# What pandas 3 says of anndata 0.13 and mudata 0.4.
pytestmark = [
    pytest.mark.filterwarnings("ignore:The inplace keyword"),
    pytest.mark.filterwarnings("ignore:The 'future.infer_string' option"),
]

N = 60
STAGES = np.array(["early", "late"])


@pytest.fixture(autouse=True)
def _as_newer_mudata():
    """Columns of modalities are not copied to the MuData, as in mudata 0.4."""
    if hasattr(md, "set_options"):
        with md.set_options(pull_on_update=False):
            yield
    else:
        yield


def modality(values, names, prefix, **more):
    out = ad.AnnData(values, **more)
    out.obs_names = names
    out.var_names = [f"{prefix}{j}" for j in range(values.shape[1])]
    return out


def study(n=N, seed=0):
    """Two modalities with overlapping samples, a layer of counts, and columns of .obs."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 2))
    names = pd.Index([f"s{i}" for i in range(n)])
    counts = rng.poisson(np.exp(1.0 + 0.5 * z @ rng.normal(size=(2, 8))))
    protein = z @ rng.normal(size=(2, 5)) + 0.2 * rng.normal(size=(n, 5))
    seen, known = slice(0, n - 10), slice(10, n)
    rna = modality(np.log1p(counts[seen]), names[seen], "g", layers={"counts": counts[seen]})
    prot = modality(protein[known], names[known][::-1], "p")
    prot.X = protein[known][::-1].copy()
    mdata = md.MuData({"rna": rna, "prot": prot})
    stage = pd.Series(STAGES[(z[:, 0] > 0).astype(int)], index=names)
    mdata.obs["stage"] = pd.Categorical(stage.loc[mdata.obs_names])
    mdata["rna"].obs["depth"] = counts[seen].sum(axis=1)
    return mdata


def fast(views=None, **options):
    return kofa.FactorModel(views, **{"n_factors": 3, "tol": 1e-2, "max_iter": 50} | options)


@pytest.fixture
def mdata():
    return study()


@pytest.fixture
def adata(mdata):
    return mdata["rna"].copy()


# ---------------------------------------------------------------- in


def test_modalities_are_views_of_all_observations(mdata):
    tables = omics.from_mudata(mdata)
    assert list(tables) == ["rna", "prot"]
    for name, table in tables.items():
        assert table.index.equals(mdata.obs_names)
        assert table.columns.equals(mdata[name].var_names)
        own = table.loc[mdata[name].obs_names]
        np.testing.assert_array_equal(own, mdata[name].X)
        assert table.drop(index=mdata[name].obs_names).isna().all().all()


@pytest.mark.parametrize("name", ["rna:counts", "rna"])
def test_a_layer_is_taken_by_name_or_instead_of_x(mdata, name):
    layers = {"rna": "counts"} if name == "rna" else None
    table = omics.from_mudata(mdata, [name], layers=layers)[name]
    np.testing.assert_array_equal(table.dropna(), mdata["rna"].layers["counts"])


def test_columns_of_obs_are_views(mdata):
    tables = omics.from_mudata(mdata, ["stage", "rna:depth"])
    assert tables["stage"].columns.tolist() == ["stage"]
    depth = tables["rna:depth"]["depth"]
    assert depth.index.equals(mdata.obs_names)
    assert depth.isna().sum() == 10


def test_an_anndata_alone_is_one_view(adata):
    adata.obs["stage"] = STAGES[np.arange(adata.n_obs) % 2]
    assert list(omics.from_mudata(adata)) == ["X"]
    tables = omics.from_mudata(adata, ["X", "counts", "stage"])
    np.testing.assert_array_equal(tables["X"], adata.X)
    np.testing.assert_array_equal(tables["counts"], adata.layers["counts"])
    assert tables["stage"]["stage"].tolist() == adata.obs["stage"].tolist()


@pytest.mark.parametrize(
    "make", [sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array, sparse.csc_array]
)
def test_sparse_matrices_become_dense(adata, make):
    dense = np.where(adata.layers["counts"] > 2, adata.layers["counts"], 0)
    adata.layers["counts"] = make(dense)
    np.testing.assert_array_equal(omics.from_mudata(adata, ["counts"])["counts"], dense)
    assert sparse.issparse(adata.layers["counts"])


@pytest.mark.parametrize("part", [slice(None), slice(3, None)])
def test_fits_take_sparse_matrices_as_they_are(mdata, part, monkeypatch):
    """Also of a modality that lacks samples."""
    dense = mdata.copy()
    dense.mod["rna"] = dense.mod["rna"][part].copy()
    dense.update()
    whole = dense.copy()
    dense["rna"].X = sparse.csc_matrix(dense["rna"].X)
    views = {name: kofa.Real() for name in mdata.mod}
    expected = kofa.FactorModel(views).fit_transform(whole)
    monkeypatch.setattr(stored, "_AT_ONCE", 20)
    found = kofa.FactorModel(views).fit_transform(dense)
    assert found.index.equals(expected.index)
    np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
def test_matrices_in_files_are_read(adata, make, tmp_path):
    adata.X = make(adata.X)
    adata.write_h5ad(tmp_path / "x.h5ad")
    backed = ad.read_h5ad(tmp_path / "x.h5ad", backed="r")
    try:
        expected = omics.from_mudata(adata)["X"]
        pd.testing.assert_frame_equal(omics.from_mudata(backed)["X"], expected)
        assert fast().fit(backed).n_factors_ >= 1
        assert backed.isbacked
    finally:
        backed.file.close()


def test_a_part_of_a_file_is_read_but_not_fitted(adata, tmp_path):
    """anndata could not write the factors to it, which must not come out after the fit."""
    adata.write_h5ad(tmp_path / "x.h5ad")
    model = fast().fit(adata)
    backed = ad.read_h5ad(tmp_path / "x.h5ad", backed="r")
    try:
        part = backed[5:20]
        pd.testing.assert_frame_equal(model.transform(part), model.transform(adata[5:20]))
        with pytest.raises(kofa.DataError, match="without backed"):
            fast().fit(part)
    finally:
        backed.file.close()


def test_parts_of_an_anndata_are_read(adata):
    pd.testing.assert_frame_equal(
        omics.from_mudata(adata[5:20, ::2])["X"], omics.from_mudata(adata)["X"].iloc[5:20, ::2]
    )


# ---------------------------------------------------------------- errors


def twice(data, what):
    names = getattr(data, what).to_numpy().copy()
    names[1] = names[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # anndata says so too
        setattr(data, what, names)
    return data


@pytest.mark.parametrize("what", ["obs_names", "var_names"])
def test_names_that_occur_twice_are_an_error_with_the_cure(adata, what):
    with pytest.raises(kofa.DataError, match=f"'X': expected unique {what}.*{what}_make_unique"):
        fast().fit(twice(adata, what))


def test_a_view_that_is_nowhere_is_an_error_that_lists_what_there_is(mdata):
    with pytest.raises(
        kofa.DataError,
        match=r"'rnaa': expected the name of a modality.*'rna', 'prot', 'rna:counts', 'stage'",
    ):
        fast({"rnaa": kofa.Real(), "prot": kofa.Real()}).fit(mdata)


def test_the_view_of_an_anndata_is_called_x(adata):
    with pytest.raises(
        kofa.DataError, match=r"'rna': expected the name of a modality.*'X', 'counts'"
    ):
        fast({"rna": kofa.Real()}).fit(adata)


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ({"atac": "counts"}, "no modality 'atac'; the modalities are 'rna', 'prot'"),
        ({"rna": "raw"}, "'rna': there is no layer 'raw'; its layers are 'counts'"),
        ({"rna": "count"}, r"'rna': there is no layer 'count'; did you mean 'counts'\?"),
    ],
    ids=["modality", "layer", "slip"],
)
def test_layers_that_are_not_there_are_errors(mdata, layers, message):
    with pytest.raises(kofa.DataError, match=message) as caught:
        omics.from_mudata(mdata, layers=layers)
    assert caught.value.option == "layers"


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("views", "rna", r"views to be a list of names, or None but got 'rna'; write \['rna'\]"),
        ("layers", ["counts"], "layers to be a dict of modality → layer"),
    ],
)
def test_options_of_other_types_are_errors(mdata, option, value, message):
    with pytest.raises(kofa.DeclarationError, match=message) as caught:
        omics.from_mudata(mdata, **{option: value})
    assert caught.value.option == option


def test_other_objects_are_an_error():
    with pytest.raises(kofa.DataError, match="Expected a MuData or AnnData but got dict; pass a d"):
        omics.from_mudata({})


def test_an_anndata_without_values_is_an_error():
    empty = ad.AnnData(obs=pd.DataFrame(index=["u", "v", "w"]))
    with pytest.raises(kofa.DataError, match=r"'X': expected values in .X but there are none"):
        fast().fit(empty)


def test_modalities_of_the_same_variables_are_an_error():
    parts = {
        name: modality(np.ones((3, 2)), [f"{name}{i}" for i in range(3)], "g") for name in "uv"
    }
    with pytest.raises(kofa.DataError, match="axis=1"):
        fast().fit(md.MuData(parts, axis=1))


def test_a_mudata_that_is_out_of_date_is_an_error_with_the_cure(mdata):
    names = mdata["rna"].obs_names.to_numpy().copy()
    names[0] = "new"
    mdata["rna"].obs_names = names
    with pytest.raises(kofa.DataError, match=r"'rna'.*call .update\(\)"):
        fast().fit(mdata)


def test_a_text_column_in_a_real_view_is_the_usual_error(mdata):
    with pytest.raises(kofa.DataError, match="'stage', column 'stage': expected real numbers"):
        fast({"prot": kofa.Real(), "stage": kofa.Real()}).fit(mdata)


def test_predict_needs_another_view(adata):
    model = fast().fit(adata)
    with pytest.raises(kofa.DataError, match="at least one view other than 'X'"):
        model.predict(adata, "X")


# ---------------------------------------------------------------- fit, and what it writes


def test_fit_equals_that_of_tables(mdata):
    model, same = fast().fit(mdata), fast().fit(omics.from_mudata(mdata))
    assert model.lower_bound_ == same.lower_bound_
    assert list(model.views_) == ["rna", "prot"]


def test_factors_are_written_in_the_order_of_the_observations(mdata):
    model = fast().fit(mdata)
    Z = model.transform(mdata)
    assert Z.index.equals(mdata.obs_names)
    assert mdata.obsm["X_kofa"].shape == (N, model.n_factors_)
    np.testing.assert_allclose(mdata.obsm["X_kofa"], Z, atol=1e-8)


def test_fit_transform_writes_the_same(mdata):
    Z = fast().fit_transform(mdata)
    np.testing.assert_array_equal(mdata.obsm["X_kofa"], Z)
    assert "kofa" in mdata.uns


def test_weights_are_written_to_each_modality(mdata):
    model = fast().fit(mdata)
    for name in ("rna", "prot"):
        np.testing.assert_array_equal(mdata[name].varm["kofa"], model.weights(name))


def test_weights_of_a_layer_have_its_name(mdata):
    views = {
        "rna:counts": kofa.Count(),
        "prot": kofa.Real(kernel="rbf"),
        "stage": kofa.Categorical(),
    }
    model = fast(views).fit(mdata)
    assert list(mdata["rna"].varm) == ["kofa_counts"]
    assert mdata["rna"].varm["kofa_counts"].shape == (8, model.n_factors_)
    assert not list(mdata["prot"].varm)  # a kernel has weights of samples, not of variables


def test_a_later_fit_replaces_what_an_earlier_one_wrote(mdata):
    fast().fit(mdata)
    model = fast({"rna": kofa.Real(kernel="rbf"), "prot": kofa.Real()}, n_factors=1).fit(mdata)
    assert "kofa" not in mdata["rna"].varm
    assert mdata["prot"].varm["kofa"].shape == (5, 1)
    assert mdata.uns["kofa"]["n_factors"] == model.n_factors_ == 1


def test_the_summary_says_what_was_fitted(mdata):
    views = {
        "rna:counts": kofa.Count(),
        "prot": kofa.Real(kernel="rbf"),
        "stage": kofa.Categorical(),
    }
    model = fast(views, outputs=["stage"]).fit(mdata)
    summary = mdata.uns["kofa"]
    assert summary["lower_bound"] == model.lower_bound_
    assert summary["views"].tolist() == list(views)
    assert summary["kinds"].tolist() == ["Count", "Real", "Categorical"]
    assert summary["kernels"].tolist() == ["none", "RBF", "none"]
    assert summary["outputs"].tolist() == [False, False, True]


def test_the_data_themselves_do_not_change(mdata):
    before = mdata.copy()
    model = fast({"rna": kofa.Real(), "prot": kofa.Real(), "stage": kofa.Categorical()}).fit(mdata)
    model.predict(mdata, "stage")
    model.impute(mdata)
    pd.testing.assert_frame_equal(mdata.obs, before.obs)
    for name in ("rna", "prot"):
        np.testing.assert_array_equal(mdata[name].X, before[name].X)
        pd.testing.assert_frame_equal(mdata[name].obs, before[name].obs)
        pd.testing.assert_frame_equal(mdata[name].var, before[name].var)
        assert list(mdata[name].layers) == list(before[name].layers)


def test_a_part_of_an_anndata_gets_results_and_the_whole_does_not(adata):
    part = adata[:30]
    with pytest.warns(ad.ImplicitModificationWarning):  # what anndata says of all who write to it
        fast().fit(part)
    assert part.obsm["X_kofa"].shape[0] == 30
    assert "X_kofa" not in adata.obsm


def test_annotated_mudata_can_be_written_and_read(mdata, tmp_path):
    views = {"rna:counts": kofa.Count(), "prot": kofa.Real(), "stage": kofa.Categorical()}
    fast(views).fit(mdata)
    mdata.write(tmp_path / "x.h5mu")
    read = md.read_h5mu(tmp_path / "x.h5mu")
    np.testing.assert_array_equal(read.obsm["X_kofa"], mdata.obsm["X_kofa"])
    np.testing.assert_array_equal(read["prot"].varm["kofa"], mdata["prot"].varm["kofa"])
    assert read.uns["kofa"]["views"].tolist() == list(views)
    assert read.uns["kofa"]["n_factors"] == mdata.uns["kofa"]["n_factors"]


def test_annotated_anndata_can_be_written_and_read(adata, tmp_path):
    model = fast().fit(adata)
    adata.write_h5ad(tmp_path / "x.h5ad")
    read = ad.read_h5ad(tmp_path / "x.h5ad")
    np.testing.assert_array_equal(read.varm["kofa"], model.weights("X"))
    assert bool(read.uns["kofa"]["converged"]) == model.converged_


def test_annotate_fills_in_variables_that_the_model_does_not_have(adata):
    table = omics.from_mudata(adata, layers={"X": "counts"})["X"].iloc[::2, ::2]
    model = fast({"X": kofa.Count()})
    omics.annotate(adata, model, model.fit_transform({"X": table}))
    np.testing.assert_array_equal(adata.varm["kofa"][::2], model.weights("X"))
    assert not adata.varm["kofa"][1::2].any()
    assert not adata.obsm["X_kofa"][1::2].any()


# ---------------------------------------------------------------- use


def test_other_methods_take_a_mudata(mdata):
    views = {"rna": kofa.Real(), "prot": kofa.Real(), "stage": kofa.Categorical()}
    model, tables = fast(views, outputs=["stage"]).fit(mdata), omics.from_mudata(mdata, views)
    assert model.predict(mdata, "stage").equals(model.predict(tables, "stage"))
    pd.testing.assert_frame_equal(
        model.predict_proba(mdata, "stage"), model.predict_proba(tables, "stage")
    )
    assert model.score(mdata) == model.score(tables)
    filled = model.impute(mdata)["prot"]
    assert filled.shape == (N, 5)
    assert not filled.isna().any().any()
    assert list(model.reconstruct(mdata)) == list(views)


def test_new_data_may_lack_views_and_have_others(mdata):
    views = {"rna": kofa.Real(), "prot": kofa.Real(), "stage": kofa.Categorical()}
    model = fast(views, outputs=["stage"]).fit(mdata)
    new = md.MuData({"rna": study(seed=1)["rna"], "atac": study(seed=2)["prot"]})
    labels = model.predict(new, "stage")
    assert labels.index.equals(new.obs_names)
    assert "X_kofa" not in new.obsm
    with pytest.raises(kofa.DataError, match=r"'rna': expected the name of a modality.*'atac'"):
        model.transform(md.MuData({"atac": study(seed=2)["prot"]}))


def test_the_asked_view_is_not_read(mdata, monkeypatch):
    model = fast().fit(mdata)
    read = []
    dense = omics._of_modality
    monkeypatch.setattr(omics, "_of_modality", lambda *args: read.append(args[2]) or dense(*args))
    model.predict(mdata, "rna")
    assert read == ["prot"]


def test_a_model_of_a_mudata_can_be_saved(mdata, tmp_path):
    model = fast({"rna:counts": kofa.Count(), "stage": kofa.Categorical()}).fit(mdata)
    model.save(tmp_path / "m.kofa")
    loaded = kofa.load(tmp_path / "m.kofa")
    assert loaded.predict(mdata, "stage").equals(model.predict(mdata, "stage"))


@pytest.mark.parametrize("matrix", [sparse.csr_matrix, sparse.csc_matrix, np.asarray])
def test_backed_files_are_read_block_by_block(rng, tmp_path, matrix, monkeypatch):
    monkeypatch.setattr(stored, "_AT_ONCE", 100)
    counts = rng.poisson(1.0, size=(60, 5)).astype(np.float32)
    cells = ad.AnnData(matrix(counts))
    cells.write_h5ad(tmp_path / "x.h5ad")
    backed, views = ad.read_h5ad(tmp_path / "x.h5ad", backed="r"), {"X": kofa.Count()}
    try:
        table = omics.tables(backed, views)["X"]
        assert isinstance(table.values, BackedRows) == (matrix is not sparse.csc_matrix)
        if isinstance(table.values, BackedRows):
            some = np.array([7, 3, 7])
            np.testing.assert_array_equal(table.values[some], counts[some])
        options = {"callback": lambda i: i.n_iter >= 5}
        model = kofa.FactorModel(views, **options).fit(backed)
        expected = kofa.FactorModel(views, **options).fit({"X": counts})
        np.testing.assert_allclose(model.lower_bounds_, expected.lower_bounds_, rtol=1e-8)
        factors = model.transform(backed)
        np.testing.assert_allclose(factors, expected.transform({"X": counts}), atol=1e-7)
    finally:
        backed.file.close()
    if isinstance(table.values, BackedRows):
        with pytest.raises(kofa.FileError, match=r"x\.h5ad: it cannot be read any more"):
            table.values[:5]


def test_files_of_mofa_are_read_with_the_settings_of_the_howto(data_dir):
    page = Path(__file__).parents[1] / "docs" / "howto" / "anndata.md"
    settings = page.read_text(encoding="utf-8").split("```python\n")[1].split("rng = ")[0]
    with warnings.catch_warnings(), md.set_options(pull_on_update=None):
        exec(settings, {})
        assert md.read_h5mu(data_dir / "cll_mofa.h5mu").shape == (200, 9627)
