"""Bad input gets an error that names the view, the column and the cure."""

from __future__ import annotations

import pickle
import re
import warnings
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kofa
from conftest import KINDS, mixed, two_views
from kofa import DataError, DeclarationError, FileError
from kofa.checks import check_number, check_word, hint

X = np.arange(12.0).reshape(6, 2) ** 1.5


def with_value(value, row=0, column=1):
    x = X.copy()
    x[row, column] = value
    return x


def empty_column():
    x = X.copy()
    x[:, 1] = np.nan
    return x


FRAME = pd.DataFrame(X, columns=["a", "b"], index=list("uvwxyz"))

BAD_DATA = {
    "empty dict": ({}, r"at least one view but got an empty dict; pass such as \{'x': table\}\.$"),
    "not a dict": (X, r"dict.*got ndarray.*wrap"),
    "nothing observed": ({"x": np.full((6, 2), np.nan)}, "'x': there is no observed value"),
    "empty column": ({"x": empty_column()}, "'x', column 1: all values are missing"),
    "named empty column": (
        {"x": pd.DataFrame(empty_column(), columns=["a", "b"])},
        "'x', column 'b': all values",
    ),
    "infinite": ({"x": with_value(np.inf)}, "'x', column 1: expected finite.*infinity"),
    "other rows": ({"x": X, "y": X[:4]}, "'x' 6, 'y' 4.*index"),
    "frame and array": (
        {"x": FRAME, "z": FRAME.iloc[::-1], "y": X},
        "'y': expected sample names in every view.*without sample names it is matched by position",
    ),
    "samples without a name in a level": (
        {
            "x": FRAME.set_index(
                pd.MultiIndex.from_arrays([list("aabbcc"), [0, 1, 0, np.nan, 0, 1]])
            )
        },
        "'x': expected a name for every sample but number 3",
    ),
    "samples without a name": (
        {"x": FRAME.rename({"v": np.nan})}, "'x': expected a name for every sample but number 1",
    ),
    "duplicated samples": (
        {"x": FRAME.rename({"v": "u"})}, "'x': expected unique sample names but 'u'",
    ),
    "duplicated columns": (
        {"x": FRAME.rename(columns={"b": "a"})}, "'x': expected unique column names but 'a'",
    ),
    "strings": ({"x": np.array([["1", "a"], ["2", "b"]])}, "'x', column 0.*'1'"),
    "dates": (
        {"x": pd.DataFrame({"d": pd.date_range("2020", periods=6)})},
        "'x', column 'd': .*; convert the dates to numbers",
    ),
    "complex": ({"x": X + 1j}, "'x', column 0: expected real numbers"),
    "ragged": ({"x": [[1.0], [1.0, 2.0]]}, "'x': expected a table but its rows differ.*; give"),
    "numbers as text": (
        {"x": pd.DataFrame({"a": ["1.5", "2", "1.5"]})}, r"'x', column 'a': .*'1.5'; .*numbers as",
    ),
    "a word among numbers": (
        {"x": pd.DataFrame({"a": [1.5, 2.0, 2.5, "n/a"]})},
        "'x', column 'a': .*'n/a'; replace it, or mark it as missing with NaN",
    ),
    "words beside numbers in a list": (
        {"x": [[1, "a"], [2, "b"], [3, "a"]]}, "'x', column 1: .*got 'a'; encode or drop",
    ),
    "a list of tables": ([X, X], "got list; name each table, such as"),
    "a dict as a table": ({"x": {"a": [1.0]}}, "'x': expected a table.*DataFrame.* of it"),
    "words in a column alone": (
        {"x": pd.Series(list("mfmf"), name="sex")}, r"'sex': .*; encode.*the view as kofa\.C",
    ),
    "names of another kind": (
        {"x": FRAME, "y": pd.DataFrame(X)}, "'x': it shares no sample.*'u', theirs such as 0",
    ),
    "partly named kernel": (
        {"k": pd.DataFrame(X @ X.T, index=list("uvwxyz"), columns=list("uvwxyo"))},
        "'k': expected the columns.*'z' is not among them",
    ),
    "strings in a frame": (
        {"x": pd.DataFrame({"a": [1.0, 2.0], "sex": ["m", "f"]})},
        "'x', column 'sex'.*'m'; encode or drop the column, or make it a categorical view",
    ),
    "one sample": ({"x": X[:1]}, "at least 2 samples but got 1"),
    "three dimensions": ({"x": X[None]}, "'x': expected a table.*3-D.*; make each sample one row"),
    "no columns": ({"x": X[:, :0]}, "'x': expected at least one column"),
    "not a table": ({"x": "table.csv"}, "'x': expected a table such as.*'table.csv'; read the"),
    "rows that are used up": ({"x": (row for row in X)}, "'x': expected a table.*gener.*; pass"),
    "no table": ({"x": X, "mutations": None}, "'mutations': .*got None; pass its data, or leave"),
    "integers beyond floats": (
        {"x": [[10**400, 1.0], [2.0, 3.0]]}, "'x', column 0: expected real numbers but got 1000",
    ),
    "integers beyond print": (
        {"x": [[10**5000, 1.0], [2.0, 3.0]]}, "'x', column 0: .*int that is too large to print",
    ),
    "integers beyond floats in a frame": (
        {"x": pd.DataFrame({"a": [10**400, 1]}, dtype=object)}, "'x', column 'a': .*1000.*missing",
    ),
    "signalling decimals": (
        {"x": [[Decimal("sNaN"), 1.0], [2.0, 3.0]]}, r"'x', column 0: .*sNaN.*missing",
    ),
    "decimals without end": ({"x": [Decimal("Infinity"), 1, 2]}, "'x', column 0: .*infinity"),
    "complex numbers in a list": ({"x": [[1j, 1.0], [2.0, 3.0]]}, "'x', column 0: .*1j"),
    "arrays in cells": ({"x": pd.DataFrame({"a": [X, X]})}, "'x', column 'a': .*array.*drop"),
    "words in a masked array": (
        {"x": np.ma.array(np.array([["a"], [1], [2]], dtype=object))}, "'x', column 0: .*'a'",
    ),
    "names in a column": (
        {"x": FRAME.reset_index()}, r"'x', column 'index': .*'u'; all its.*set_index\('index'\)",
    ),
    "transposed array": ({"x": X, "y": np.ones((4, 6)), "z": X}, "'y': .*'y' 4.*it has as many"),
    "transposed frame": (
        {"x": FRAME, "y": FRAME.T.rename("m{}".format)},
        "'x': it shares no sample.*columns of 'y' are its samples: transposed.*the .T of 'y'",
    ),
    "transposed frames": (
        {"x": FRAME.T, "y": FRAME.T.rename("m{}".format)},
        "shares no sample.*shares columns with 'y' instead.*transposed.*of each table",
    ),
    "sparse complex": ({"x": scipy.sparse.eye(4, dtype=complex).tocsr()}, "'x': .*complex"),
    "sparse infinity": ({"x": scipy.sparse.diags([1.0, np.inf]).tocsr()}, "'x', column 1: .*inf"),
}  # fmt: skip


@pytest.mark.parametrize(("data", "message"), BAD_DATA.values(), ids=BAD_DATA)
def test_bad_data_in_fit(data, message):
    kernelized = isinstance(data, dict) and "k" in data
    views = {"k": kofa.Real(kernel="precomputed")} if kernelized else None
    with pytest.raises(DataError, match=message):
        kofa.FactorModel(views).fit(data)


REAL = {"x": kofa.Real()}


def real(**options):
    return {"views": {"x": kofa.Real(**options)}}


def sparse(keep):
    return real(kernel="rbf", sparse=True, landmarks=kofa.Landmarks(keep=keep))


BAD_DECLARATIONS = {
    "no factors": ({"views": REAL, "n_factors": 0}, "n_factors .*at least 1 or None but got 0"),
    "half a factor": ({"views": REAL, "n_factors": 2.5}, "n_factors.*2.5"),
    "no starts": ({"views": REAL, "n_init": 0}, "n_init"),
    "no views": ({"views": {}}, r"dict of name → view but got \{\}; write such as.*kofa\.Real"),
    "views as a list": ({"views": [kofa.Real()]}, r"dict of name → view but got \[Real.*; write"),
    "not a view": ({"views": {"x": "real"}}, r"'x': expected a view such as kofa.Real\(\)"),
    "noise": ({"views": {"x": kofa.Real(noise="both")}}, "'x': expected noise.*'both'"),
    "sparse": ({"views": {"x": kofa.Real(sparse="yes")}}, "'x': expected sparse.*'yes'"),
    "landmarks": ({"views": {"x": kofa.Real(kernel="rbf", landmarks=0)}}, "'x'.*landmarks"),
    "kernel": ({"views": {"x": kofa.Real(kernel="gauss")}}, "'x'.*kernel among.*'gauss'"),
    "degree": ({"views": {"x": kofa.Real(kernel=kofa.Polynomial(0.5))}}, "'x'.*degree.*0.5"),
    "tiny width": ({"views": {"x": kofa.Real(kernel=kofa.RBF(1e-200))}}, "'x'.*width"),
    "tolerance": ({"views": REAL, "tol": "small"}, "tol.*'small'"),
    "callback": ({"views": REAL, "callback": 3}, "callback to be a function, or None but got 3"),
    "seed": ({"views": REAL, "random_state": -1}, "random_state.*-1"),
    "unknown output": ({"views": REAL, "outputs": ["z"]}, "Unknown output 'z'.*'x'"),
    "output as a string": ({"views": REAL, "outputs": "x"}, r"but got 'x'; write outputs=\['x'\]"),
    "sparse of another kind": (real(kernel="rbf", sparse="rvm"), "'x': expected sparse.*'rvm'"),
    "sparse as a number": (real(kernel="rbf", sparse=1), "'x': expected sparse.*got 1"),
    "no share": (sparse(0.0), "'x'.*keep.*above 0.*got 0"),
    "share above one": (sparse(2.0), "'x'.*share.*at most 1.*got 2"),
    "share as a word": (sparse("few"), "'x'.*share.*'few'"),
    "share of nothing": (sparse(np.nan), "'x'.*share.*nan"),
    "a cap on nothing": (
        real(kernel="rbf", landmarks=kofa.Landmarks(keep=0.1)),
        "'x': keep in its landmarks limits.*; add sparse=True, or leave keep out",
    ),
    "a cap without a kernel": (
        real(sparse=True, landmarks=kofa.Landmarks(keep=9)),
        "'x': keep in its landmarks limits.*; add a kernel and sparse=True",
    ),
    "landmarks without a kernel": (
        real(landmarks=kofa.Landmarks(9)), "'x': landmarks are for kernels.*; add a kernel such as",
    ),
    "a number of landmarks without a kernel": (
        real(landmarks=9), "'x': landmarks are for kernels.*or leave landmarks out",
    ),
    "no landmarks left": (sparse(0), r"'x'.*landmarks\.keep.*whole number of at least 2.*got 0"),
    "one landmark left": (sparse(1), r"'x'.*landmarks\.keep.*whole number of at least 2.*got 1"),
    "half a landmark": (sparse(2.5), r"'x'.*keep.*2\.5"),
    "no caps": (sparse((0.5, "few")), r"'x'.*keep.*\(0\.5, 'few'\)"),
    "many caps": (sparse((0.5, 3, 4)), "'x'.*a pair.*0.5, 3, 4"),
    "choice of landmarks": (
        real(kernel="rbf", landmarks=kofa.Landmarks(by="kmeans")),
        r"'x'.*landmarks\.by to be 'random', .*'kmeans'; did you mean 'kmeans\+\+'\?$",
    ),
    "landmarks in landmarks": (
        real(kernel="rbf", landmarks=kofa.Landmarks(kofa.Landmarks(5))),
        r"'x'.*landmarks to be 'auto'.*got Landmarks\(n=5",
    ),
    "landmarks as a word": (real(kernel="rbf", landmarks="many"), "'x'.*landmarks.*'many'"),
    "negative relevance": (
        real(kernel=kofa.RBF(relevance=[-1, 1])), "'x'.*relevance.*at least 0.*-1",
    ),
    "infinite relevance": (real(kernel=kofa.Linear(relevance=[1, np.inf])), "'x'.*relevance.*inf"),
    "relevance as a word": (real(kernel=kofa.RBF(relevance="yes")), "'x'.*relevance.*'yes'"),
    "relevance of words": (real(kernel=kofa.RBF(relevance=["a", "b"])), "'x'.*relevance.*'a'"),
    "too many relevances": (
        real(kernel=kofa.RBF(relevance=[1, 1, 1])), "'x'.*relevance.*each of its 2 columns.*got 3",
    ),
    "too few groups": (
        real(kernel=kofa.RBF(relevance="learn", groups=["a"])),
        "'x'.*groups.*each of its 2 columns.*got 1",
    ),
    "relevance inside a mixture": (
        real(kernel=kofa.Mixture([kofa.RBF(relevance=[1])])), "'x'.*relevance.*2 columns.*got 1",
    ),
    "negative sparsity": (
        real(kernel=kofa.RBF(relevance="learn", sparsity=-1)), "'x'.*sparsity.*got -1",
    ),
    "empty mixture": (real(kernel=kofa.Mixture([])), "'x'.*kernels of a mixture"),
    "weights of a mixture": (
        real(kernel=kofa.Mixture([kofa.RBF(), kofa.Linear()], weights=[1.0])),
        "'x'.*one for each of the 2 kernels",
    ),
    "negative weights": (
        real(kernel=kofa.Mixture([kofa.RBF(), kofa.Linear()], weights=[1, -1])),
        "'x'.*weights to be numbers of at least 0",
    ),
    "weights as a word": (
        real(kernel=kofa.Mixture([kofa.RBF()], weights="equal")), "'x'.*weights.*'equal'",
    ),
    "nested mixture": (
        real(kernel=kofa.Mixture([kofa.Mixture([kofa.RBF()])])), "'x'.*mixture of kernels",
    ),
    "number for weights": (
        real(kernel=kofa.Mixture([kofa.RBF()], weights=5)), "'x'.*weights to be 'learn' or one.*5",
    ),
    "number for relevance": (real(kernel=kofa.RBF(relevance=5)), "'x'.*relevance to be None.*5"),
    "number in a mixture": (real(kernel=kofa.Mixture([3])), "'x'.*mixture of kernels.*3"),
    "width in a mixture": (real(kernel=kofa.Mixture([kofa.RBF(-1)])), "'x'.*width.*-1"),
    "no kernels": (real(kernel=[]), "'x'.*at least one kernel"),
    "one of several kernels": (real(kernel=["rbf", "gauss"]), "'x'.*kernel among.*'gauss'"),
    "kernels in kernels": (real(kernel=["rbf", ["linear"]]), "'x'.*expected a kernel"),
    "only outputs": ({"views": REAL, "outputs": ["x"]}, "not an output"),
    # Values of any sort in any place:
    "outputs as a number": ({"views": REAL, "outputs": 3}, "outputs to be a list of names.*got 3"),
    "outputs in a list": ({"views": REAL, "outputs": [["x"]]}, r"Unknown output \['x'\].*'x'"),
    "outputs that are used up": (
        {"views": REAL, "outputs": (n for n in ["x"])}, "outputs to be a list of names.*generator",
    ),
    "outputs with a slip": (
        {"views": REAL, "outputs": ["X"]}, r"Unknown output 'X'; did you mean 'x'\?$",
    ),
    "factors beyond sizes": ({"views": REAL, "n_factors": 10**400}, "n_factors.*got 1000"),
    "iterations beyond print": ({"views": REAL, "max_iter": -(10**5000)}, "max_iter.*too large"),
    "tolerance of nothing": ({"views": REAL, "tol": np.nan}, "tol.*nan"),
    "tolerances": ({"views": REAL, "tol": np.ones(2)}, "tol.*array"),
    "tolerance in decimals": ({"views": REAL, "tol": Decimal("sNaN")}, "tol.*sNaN"),
    "seconds": ({"views": REAL, "checkpoint_every": [1]}, r"checkpoint_every.*\[1\]"),
    "progress": ({"views": REAL, "progress": np.ones(2)}, "progress.*True or False.*array"),
    "noise as an array": (real(noise=np.ones(2)), r"'x': expected noise.*array\(\[1"),
    "noise as a list": (real(noise=["view"]), r"'x': expected noise.*\['view'\]"),
    "noise that is not there": (real(noise=pd.NA), "'x': expected noise.*<NA>"),
    "scale as an array": (real(scale=np.ones(2)), "'x': expected scale.*array"),
    "choices of landmarks": (
        real(kernel="rbf", landmarks=kofa.Landmarks(by=np.ones(2))), r"'x'.*landmarks\.by.*array",
    ),
    "landmarks beyond sizes": (real(kernel="rbf", landmarks=10**400), "'x'.*landmarks.*1000"),
    "degree of nothing": (real(kernel=kofa.Polynomial(degree=np.nan)), "'x'.*degree.*nan"),
    "endless degree": (real(kernel=kofa.Polynomial(degree=np.inf)), "'x'.*degree.*inf"),
    "complex degree": (real(kernel=kofa.Polynomial(np.complex128(2))), "'x'.*degree.*2"),
    "offset of nothing": (real(kernel=kofa.Polynomial(offset=np.nan)), "'x'.*offset.*nan"),
    "width as an array": (real(kernel=kofa.RBF(np.ones(2))), "'x'.*width.*array"),
    "width beyond floats": (real(kernel=kofa.RBF(10**400)), "'x'.*width.*1000"),
    "mixture of a number": (real(kernel=kofa.Mixture(3)), "'x'.*list of kernels but got 3.*write"),
    "mixture of a word": (real(kernel=kofa.Mixture("rbf")), "'x'.*list of kernels but got 'rbf'"),
    "mixture with a slip": (real(kernel=kofa.Mixture(["RBF"])), "'x'.*mixture.*mean 'rbf'"),
    "weights of words": (
        real(kernel=kofa.Mixture(["rbf"], weights=["a"])),
        "'x'.*weights to be numbers of at least 0.*'a'",
    ),
    "weight of nothing": (
        real(kernel=kofa.Mixture(["rbf"], weights=[np.nan])),
        "'x'.*weights to be numbers of at least 0.*nan",
    ),
    "relevance without dimensions": (real(kernel=kofa.RBF(relevance=np.array(3))), "'x'.*relev.*3"),
    "relevance beyond floats": (real(kernel=kofa.RBF(relevance=[10**400, 1])), "'x'.*relevance.*1"),
    "sparsity beyond floats": (
        real(kernel=kofa.RBF(relevance="learn", sparsity=10**400)), "'x'.*sparsity.*1000",
    ),
    "groups that cannot be told apart": (
        real(kernel=kofa.RBF(relevance=[1, 1], groups=[[1], [2]])), r"'x'.*groups.*\[1\]",
    ),
    "class of another tool": (real(kernel=dict), r"'x'.*got the class dict; write dict\("),
    "class of a mixture": (real(kernel=kofa.Mixture), "'x'.*got the class Mixture"),
    # Habits of other tools:
    "kernel in capitals": (real(kernel="RBF"), "'x'.*kernel among.*'RBF'; did you mean 'rbf'"),
    "kernel with a slip": (real(kernel="polinomial"), "'x'.*did you mean 'polynomial'"),
    "kernel of another name": (real(kernel="Gaussian"), "'x'.*'Gaussian'; did you mean 'rbf'"),
    "gaussian": ({"views": {"x": "gaussian"}}, r"'x': .*got 'gaussian'; write kofa\.Real\(\)"),
    "bernoulli": ({"views": {"x": "Bernoulli"}}, r"'x': .*write kofa\.Binary\(\)"),
    "poisson": ({"views": {"x": "poisson"}}, r"'x': .*write kofa\.Count\(\)"),
    "multinomial": ({"views": {"x": "multinomial"}}, r"'x': .*write kofa\.Categorical\(\)"),
    "log-normal": ({"views": {"x": "log-normal"}}, r"'x': .*write kofa\.Positive\(\)"),
    "counts": ({"views": {"x": "counts"}}, r"'x': .*write kofa\.Count\(\)"),
    "kernel as a view": ({"views": {"x": "rbf"}}, r"'x': .*write kofa\.Real\(kernel='rbf'\)"),
    "view with a slip": ({"views": {"x": "binery"}}, r"'x': .*; write kofa\.Binary\(\)\.$"),
    "view as a word": ({"views": {"x": "table"}}, r"'x': .*; write kofa\.Real\(\) or .*kofa\.C"),
    "view as a class": ({"views": {"x": kofa.Count}}, r"'x': .*; write kofa\.Count\(\)\.$"),
    "table as a view": ({"views": {"x": X}}, "'x': .*; declare the kind of the table here, and"),
    "view that is None": ({"views": {"x": None}}, r"'x': .*write kofa\.Real\(\), or leave"),
}  # fmt: skip


@pytest.mark.parametrize(("options", "message"), BAD_DECLARATIONS.values(), ids=BAD_DECLARATIONS)
def test_bad_declarations_in_fit(options, message):
    with pytest.raises(DeclarationError, match=message):
        kofa.FactorModel(**options).fit({"x": X})


def test_declared_view_must_be_in_the_data():
    model = kofa.FactorModel({"x": kofa.Real(), "y": kofa.Real()})
    with pytest.raises(DataError, match="'y': it is declared but not in the data; pass its table"):
        model.fit({"x": X})
    with pytest.raises(DataError, match=r"'y': it is declared but not.*'z', which is not decl"):
        model.fit({"x": X, "z": X})
    with pytest.raises(DataError, match="Unknown view 'z'; the model has 'x', 'y'"):
        model.fit({"x": X, "y": X, "z": X})


def test_kernel_that_cannot_take_holes():
    model = kofa.FactorModel({"ecg": kofa.Real(kernel=lambda A, B: A @ B.T)})
    with pytest.raises(DataError, match=r"'ecg', column 1: the .* kernel cannot.*impute them"):
        model.fit({"ecg": with_value(np.nan)})
    model.fit({"ecg": with_value(np.nan, row=2, column=slice(None))})  # whole rows may be missing
    with pytest.raises(DataError, match=r"'ecg', column 1.*cannot take missing"):
        model.transform({"ecg": with_value(np.nan)})


def test_precomputed_kernel_of_the_wrong_shape():
    model = kofa.FactorModel({"k": kofa.Real(kernel="precomputed")})
    with pytest.raises(DataError, match=r"'k': expected a precomputed kernel.*\(6, 2\)"):
        model.fit({"k": X})
    model.fit({"k": X @ X.T})
    with pytest.raises(DataError, match="'k': expected 6 columns as in fit but got 2"):
        model.transform({"k": X})


def test_kernel_that_is_not_finite():
    with pytest.raises(DataError, match=r"'x': expected finite values of the Polynomial kernel"):
        kofa.FactorModel({"x": kofa.Real(kernel=kofa.Polynomial(4000))}).fit({"x": 1e3 * X})


@pytest.mark.parametrize(
    "kernel", [kofa.RBF(1.0, relevance="learn"), kofa.RBF(1.0, relevance=[1]),
               kofa.Mixture([kofa.Linear()]), kofa.RBF()],
)  # fmt: skip
def test_kernel_that_cannot_be_called_yet(kernel):
    with pytest.raises(DeclarationError, match=r"left to the data; set|relevance for each of 2"):
        kernel(X, X)


def test_callable_kernel_of_the_wrong_shape():
    with pytest.raises(DataError, match=r"'x'.*shape \(6, 6\) but got \(6,\)"):
        kofa.FactorModel({"x": kofa.Real(kernel=lambda A, _: A[:, 0])}).fit({"x": X})


POSITIVE = FRAME + 1.0
BAD_KINDS = {
    "one class": (kofa.Categorical(), list("aaaaaa"), "'y'.*two classes.*are 'a'; leave"),
    "one class in an array": (
        kofa.Categorical(), np.array(list("aaaaaa")), "'y'.*two classes.*are 'a'; leave",
    ),
    "one number as class": (kofa.Categorical(), np.ones(6, int), "'y'.*two classes.*are 1; leave"),
    "as many classes as samples": (
        kofa.Categorical(), list("abcdef"), r"'y'.*6 labels occurs once.*kofa\.Real",
    ),
    "no label": (kofa.Categorical(), [None] * 6, "'y': there is no observed value; leave"),
    "two columns of labels": (
        kofa.Categorical(), FRAME, r"'y'.*one column.*got 2.*view of its own.*kofa\.Binary",
    ),
    "lists as labels": (
        kofa.Categorical(), pd.Series([[1], [2], [1], [2], [1], [2]]), "'y'.*words or numbers",
    ),
    "negative counts": (
        kofa.Count(), FRAME.round() - 1.0, r"'y', column 'a'.*counts.*got -1;.*kofa\.Real",
    ),
    "fractional counts": (kofa.Count(), FRAME, r"'y', column 'a'.*whole.*got 2\.8.*round"),
    "counts in an array": (kofa.Count(), -X, "'y', column 0.*counts.*got -2.8"),
    "zeros in a positive view": (
        kofa.Positive(), POSITIVE.assign(b=0.0), "'y', column 'b'.*positive.*got 0;.*missing",
    ),
    "a two among zeros and ones": (
        kofa.Binary(), 0 * FRAME + [0.0, 2.0], "'y', column 'b'.*0, 1 or missing.*got 2;.*recode",
    ),
    "words in a binary view": (
        kofa.Binary(), pd.DataFrame({"sex": list("mfmfmf")}), "'y', column 'sex'.*'m'.*encode",
    ),
    "kernelized counts": (kofa.Count(kernel="rbf"), -X, "'y', column 0.*counts.*got -2.8"),
    "kernelized zeros": (kofa.Positive(kernel="rbf"), 0 * X, "'y', column 0.*positive.*got 0"),
}  # fmt: skip


@pytest.mark.parametrize(("view", "values", "message"), BAD_KINDS.values(), ids=BAD_KINDS)
def test_bad_values_of_a_kind_in_fit(view, values, message):
    index = values.index if hasattr(values, "index") and not isinstance(values, list) else None
    x = X if index is None else pd.DataFrame(X, index=index)
    with pytest.raises(DataError, match=message):
        kofa.FactorModel({"x": kofa.Real(), "y": view}).fit({"x": x, "y": values})


@pytest.mark.parametrize(
    "option",
    ["kernel", "sparse", "landmarks", "landmarks_by", "max_landmarks", "share", "noise", "scale"],
)
def test_labels_have_no_options(option):
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{option}'"):
        kofa.Categorical(**{option: None})


@pytest.mark.parametrize("view", [kofa.Binary, kofa.Count])
def test_kinds_without_noise(view):
    with pytest.raises(TypeError, match="unexpected keyword argument 'noise'"):
        view(noise="view")


@pytest.fixture(scope="module")
def mixed_model():
    return kofa.FactorModel(KINDS, callback=lambda _: True).fit(mixed(np.random.default_rng(0)))


BAD_USE = {
    "unseen class": (
        lambda m: m.transform({"label": ["ant", "emu"]}),
        "'label': class 'emu' was not seen in fit; mark it as missing.*'ant', 'bee', 'cat', 'dog'",
    ),
    "unseen class of an input": (
        lambda m: m.predict({"label": ["emu"]}, "real"), "'label': class 'emu' was not seen",
    ),
    "unseen class to score": (
        lambda m: m.score({"label": ["emu"]}), "'label': class 'emu' was not seen",
    ),
    "two columns of labels": (lambda m: m.transform({"label": X}), "'label'.*one column.*got 2"),
    "negative counts": (
        lambda m: m.transform({"count": np.full((2, 4), -1)}), "'count', column 0.*got -1.*Real",
    ),
    "zeros in a positive view": (
        lambda m: m.impute({"positive": np.zeros((2, 4))}), "'positive', column 0.*got 0.*missing",
    ),
    "a two among zeros and ones": (
        lambda m: m.transform({"binary": np.full((2, 4), 2)}), "'binary', column 0.*got 2.*recode",
    ),
    "probabilities of real numbers": (
        lambda m: m.predict_proba({"label": ["ant"]}, "real"), "'real'.*no probabilities.*predict",
    ),
    "probabilities of counts": (
        lambda m: m.predict_proba({"label": ["ant"]}, "count"), "'count'.*no probab.*predict",
    ),
    "standard deviation of labels": (
        lambda m: m.predict({"real": np.zeros((1, 4))}, "label", return_std=True),
        "'label'.*no standard deviation.*predict_proba",
    ),
    "standard deviation of ones": (
        lambda m: m.predict({"real": np.zeros((1, 4))}, "binary", return_std=True),
        "'binary'.*no standard deviation.*predict_proba",
    ),
    "quantiles of ones": (
        lambda m: m.predict_quantiles({"label": ["ant"]}, "binary", [0.5]),
        "'binary'.*no quantiles.*predict_proba",
    ),
    "quantiles of labels": (
        lambda m: m.predict_quantiles({"real": np.zeros((1, 4))}, "label", [0.5]),
        "'label'.*no quantiles.*predict_proba",
    ),
    "quantile above one": (
        lambda m: m.predict_quantiles({"label": ["ant"]}, "real", [0.5, 1.5]),
        r"'real'.*between 0 and 1.*1\.5",
    ),
    "quantile of one": (
        lambda m: m.predict_quantiles({"label": ["ant"]}, "real", 1.0), "'real'.*between 0 and 1",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("use", "message"), BAD_USE.values(), ids=BAD_USE)
def test_bad_use_of_a_fitted_model(mixed_model, use, message):
    with pytest.raises(DataError, match=message):
        use(mixed_model)


def test_messages_call_a_kind_as_the_user_does(mixed_model):
    for view, use in (("real", "predict_proba"), ("label", "predict"), ("binary", "predict")):
        options = {"return_std": True} if use == "predict" else {}
        with pytest.raises(DataError, match=f"a {type(KINDS[view]).__name__} view has no"):
            getattr(mixed_model, use)({"positive": np.ones((1, 4))}, view, **options)


def test_unseen_class_does_not_matter_in_the_view_that_is_predicted(mixed_model):
    data = {"real": np.zeros((1, 4)), "label": ["emu"]}
    assert mixed_model.predict(data, "label")[0] in list(mixed_model.classes_["label"])


@pytest.fixture
def model(rng):
    return kofa.FactorModel().fit(two_views(rng))


def test_unknown_views_after_fit(model):
    with pytest.raises(DataError, match="Unknown view 'z'; the model has 'x', 'y'"):
        model.predict({"x": np.zeros((1, 5))}, "z")
    with pytest.raises(DataError, match="Unknown view 'z'"):
        model.transform({"z": np.zeros((1, 5))})
    for data in ({"x": np.zeros((1, 5))}, {}):
        with pytest.raises(
            DataError, match=r"other than 'x' to .*; pass a table of 'y', or use rec"
        ):
            model.predict(data, "x")
    with pytest.raises(DataError, match=r"got only None for tables; pass such as .*are 'x', 'y'"):
        model.predict({"x": None}, "y")


def test_the_view_to_predict_has_to_be_named_where_there_are_several(rng):
    data = two_views(rng) | {"z": rng.normal(size=(len(two_views(rng)["x"]), 1))}
    views = dict.fromkeys(data, kofa.Real())
    model = kofa.FactorModel(views, 2, outputs=["y", "z"], callback=lambda _: True).fit(data)
    with pytest.raises(
        DataError, match=r"view to predict; name it: .*the outputs 'y', 'z'"
    ) as caught:
        model.predict({"x": data["x"]})
    assert (caught.value.option, caught.value.view) == ("view", None)


def test_other_columns_than_in_fit(model):
    with pytest.raises(DataError, match=r"'x': expected 5 columns as in fit but got 3"):
        model.transform({"x": np.zeros((2, 3))})
    named = kofa.FactorModel().fit({"x": FRAME})
    with pytest.raises(DataError, match=r"'x', column 'b': .*but this one is missing; pass it"):
        named.transform({"x": FRAME[["a"]]})
    with pytest.raises(DataError, match=r"dict of view name"):
        named.predict(FRAME.to_numpy(), "x")
    with pytest.raises(DataError, match=r"'x', column 'c': .*but this one is new; leave it out"):
        named.transform({"x": FRAME.assign(c=1.0)})


def test_transposed_tables_after_fit(model):
    with pytest.raises(DataError, match=r"'x': expected 5 columns.*got 7; transposed\?"):
        model.transform({"x": np.zeros((5, 7))})
    with pytest.raises(
        DataError, match=r"'x': expected 5 columns.*got 1; .*write \[\[…\]\] for one"
    ):
        model.transform({"x": [1.0, 2.0, 3.0, 4.0, 5.0]})
    with pytest.raises(DataError, match=r"'x': .*rows have their names; transposed\?"):
        kofa.FactorModel().fit({"x": FRAME}).transform({"x": FRAME.T})


@pytest.mark.parametrize(
    "quantiles", [["a"], "half", [[0.5]], np.ones((1, 2, 1)), [10**400], [None], [pd.NA], {}, [1j],
                  [Decimal("sNaN")], [True], []],
)  # fmt: skip
def test_quantiles_that_are_none(model, quantiles):
    with pytest.raises(DataError, match="'y': expected quantiles as a list of numbers between 0"):
        model.predict_quantiles({"x": np.zeros((1, 5))}, "y", quantiles)


WRONG_VIEW = "(Unknown view|Expected the name of one view but got) .*"


@pytest.mark.parametrize("view", [["y"], None, np.array(["y", "x"]), {}, pd.NA, pd.Series([1, 2])])
def test_views_that_are_none(model, view):
    for ask in (model.weights, model.feature_relevance, model.selected_features):
        with pytest.raises(DataError, match=f"{WRONG_VIEW}; the model has 'x', 'y'"):
            ask(view)
    none = "Expected the view to predict; name it: the model has no outputs, .*'x', 'y'"
    with pytest.raises(DataError, match=none if view is None else WRONG_VIEW):
        model.predict({"x": np.zeros((1, 5))}, view)


def test_unknown_views_suggest_the_nearest(model):
    with pytest.raises(DataError, match=r"Unknown view 'Y'; did you mean 'y'\?$"):
        model.weights("Y")


def test_odd_choices_of_features(rng):
    data = two_views(rng)
    model = kofa.FactorModel({"x": kofa.Real(sparse=True), "y": kofa.Real()}).fit(data)
    for threshold in ("much", [1.0], np.ones(2), np.nan, 10**400):
        with pytest.raises(
            DataError, match="'x': expected threshold to be a number, or None but got"
        ):
            model.selected_features("x", threshold=threshold)
    with pytest.raises(DataError, match=r"'x': expected top.*True"):
        model.selected_features("x", top=True)


@pytest.mark.parametrize("odd", [np.ones(2), pd.NA, pd.Series([True, False])])
def test_switches_are_true_or_false(model, odd):
    x = {"x": np.random.default_rng(0).normal(size=(9, 5))}
    for name, ask in {
        "return_cov": lambda: model.transform(x, return_cov=odd),
        "return_std": lambda: model.predict(x, "y", return_std=odd),
        "proba": lambda: model.reconstruct(x, proba=odd),
        "resume": lambda: kofa.FactorModel().fit(x, resume=odd),
    }.items():
        with pytest.raises(DeclarationError, match=f"{name} to be True or False"):
            ask()


@pytest.mark.parametrize("wrong", [["a", "b"], "abc", [[1.0], [1.0, 2.0]], {"a": 1}, 10**400])
def test_kernel_functions_that_return_no_numbers(wrong):
    def odd(*_):
        return wrong

    with pytest.raises(DataError, match="'x': expected the kernel function odd to return an array"):
        kofa.FactorModel({"x": kofa.Real(kernel=odd)}).fit({"x": X})


@pytest.mark.parametrize(
    ("make", "name", "meant"),
    [
        (kofa.FactorModel, "factors", "n_factors"),
        (kofa.FactorModel, "n_components", "n_factors"),
        (kofa.KernelFactorRegressor, "gamma", "kernel"),
        (kofa.FactorModel, "seed", "random_state"),
        (kofa.FactorModel, "output", "outputs"),
        (kofa.KernelFactorRegressor, "kernels", "kernel"),
        (kofa.KernelFactorAnalysis, "n_factor", "n_factors"),
        (kofa.Real, "kernal", "kernel"),
        (kofa.Count, "landmark", "landmarks"),
        (kofa.RBF, "gamma", "width"),
        (kofa.Laplacian, "length_scale", "width"),
        (kofa.Polynomial, "coef0", "offset"),
        (kofa.Linear, "relevances", "relevance"),
        (kofa.Diffusion, "neighbors", "neighbours"),
        (kofa.Mixture, "weight", "weights"),
    ],
)
def test_unexpected_parameters_suggest_the_nearest(make, name, meant):
    message = rf"{make.__name__}\(\) got an unexpected.*'{name}'; did you mean '{meant}'\?"
    with pytest.raises(TypeError, match=message):
        make(**{name: 10})


def test_unexpected_parameters_without_a_near_one():
    with pytest.raises(TypeError, match="'colour'; there are 'views', 'n_factors', 'outp"):
        kofa.FactorModel(colour="red")


def test_all_errors_are_one_family():
    assert issubclass(DataError, kofa.KofaError)
    assert issubclass(DeclarationError, kofa.KofaError)
    assert issubclass(DataError, ValueError)


# ---------------------------------------------------------------- fields

FIELDS = {
    "a whole sentence": (DataError("View 'x' is odd."), "View 'x' is odd."),
    "a path in front": (FileError("x.csv: damaged"), "x.csv: damaged"),
    "view": (DataError("expected counts", "x"), "View 'x': expected counts."),
    "column": (DataError("expected counts", "x", 0), "View 'x', column 0: expected counts."),
    "value": (DataError("expected counts", "x", "a", got="b"), "View 'x', column 'a': expected "
              "counts but got 'b'."),
    "no value": (DataError("expected a table", "x", got=None), "View 'x': expected a table but "
                 "got None."),
    "only a value": (DataError("expected 2 samples", got=1), "Expected 2 samples but got 1."),
    "cure": (DataError("expected counts", "x", cure="round them"), "View 'x': expected counts; "
             "round them."),
    "question": (DataError("unknown view 'a'", cure="did you mean 'b'?"), "Unknown view 'a'; did "
                 "you mean 'b'?"),
    "kinds": (DataError("expected counts", "x", cure="round them", kinds=["Real", "Positive"]),
              "View 'x': expected counts; round them, or declare the view as kofa.Real() or "
              "kofa.Positive()."),
    "use": (DataError("no quantiles", "x", use=["return_std"]), "View 'x': no quantiles; use "
            "return_std."),
    "file": (FileError("it is empty", Path("x.csv")), "x.csv: it is empty."),
    "line": (FileError("expected a number", "x.csv", 3, "a"), "x.csv, line 3, column 'a': expected "
             "a number."),
    "lines": (FileError("the id 'a' occurs twice", "x.csv", "lines 2 and 4"), "x.csv, lines 2 and "
              "4: the id 'a' occurs twice."),
    "file of a view": (DataError("expected counts", "x", "a").as_error(DataError, source="x.csv"),
                       "x.csv: View 'x', column 'a': expected counts."),
    "file in front": (DataError("View 'x' is odd.").as_error(FileError, source="x.csv", line=2),
                           "x.csv, line 2: View 'x' is odd."),
}  # fmt: skip


@pytest.mark.parametrize(("error", "message"), FIELDS.values(), ids=FIELDS)
def test_messages_are_composed_of_fields(error, message):
    assert str(error) == message
    again = pickle.loads(pickle.dumps(error))  # as joblib does between processes
    assert (type(again), str(again), vars(again)) == (type(error), message, vars(error))


def test_cures_in_the_words_of_the_command_line():
    error = DataError("expected counts", "x", kinds=["Real"], use=["return_std"])
    words = {"Real": "kind real", "return_std": "--std"}
    assert error.message(words).endswith("; declare the view as kind real, or use --std.")


def test_errors_of_data_have_fields():
    with pytest.raises(DataError) as caught:
        kofa.FactorModel({"y": kofa.Count()}).fit({"y": FRAME})
    error = caught.value
    assert (error.view, error.column, error.kinds) == ("y", "a", ("Real", "Positive"))
    assert error.cure == "round them, or declare the view as kofa.Real() or kofa.Positive()"
    with pytest.raises(DeclarationError) as caught:
        kofa.FactorModel(max_iter=0).fit({"x": X})
    assert caught.value.option == "max_iter"


OPTIONS = {
    "number": ({"least": 0}, -1, "a number of at least 0"),
    "positive": ({"above": 0, "most": 1}, 2, "a positive number of at most 1"),
    "above": ({"above": 2}, 2, "a number above 2"),
    "whole": ({"whole": True, "least": 1}, 1.5, "a whole number of at least 1"),
    "words": ({"words": ["auto", None]}, True, "a number, 'auto' or None"),
    "array": ({"words": ["auto"]}, np.ones(2), "a number or 'auto'"),
    "infinity": ({}, np.inf, "a number"),
}


@pytest.mark.parametrize(("limits", "value", "expected"), OPTIONS.values(), ids=OPTIONS)
def test_numbers_within_limits(limits, value, expected):
    with pytest.raises(DeclarationError, match=re.escape(f"'x': expected n to be {expected} but")):
        check_number("n", value, view="x", **limits)


def test_options_that_are_fine():
    check_number("n", 3, whole=True, least=1)
    check_number("n", np.float32(0.5), above=0, most=1)
    check_number("n", None, ["auto", None])
    check_word("noise", "auto", ["auto", "view"])
    check_word("scale", np.bool_(True), [True, False])


@pytest.mark.parametrize(
    ("word", "known", "found"),
    [
        ("Y", ["x", "y"], "did you mean 'y'?"),
        ("z", ["zx", "y"], "there are 'zx', 'y'"),  # one letter is like too many
        ("xs", ["x", "rna"], "there are 'x', 'rna'"),
        ("gg1", ["g1", "g2"], "did you mean 'g1'?"),
        ("rma", ["rna", 7], "did you mean 'rna'?"),
        (71, [710, 17], "did you mean 710?"),
        ("x", [], "there are none"),
    ],
)
def test_hints(word, known, found):
    assert hint(word, known, "there are") == found


@pytest.mark.parametrize("value", [1, "True", None, np.ones(2), [True]])
def test_words_are_not_mixed_up(value):
    with pytest.raises(DeclarationError, match="Expected scale to be True, False or 'ard' but got"):
        check_word("scale", value, [True, False, "ard"])


# ---------------------------------------------------------------- warnings


NOISE = np.random.default_rng(0).standard_normal((40, 4))
FORTY = {"x": NOISE[:, 1:], "y": NOISE[:, :1]}
OFF = kofa.RBF(3.0, relevance="learn", sparsity=1e6)
TWO_STEPS = kofa.KernelFactorRegressor(None, max_iter=2)


def fit_on(kernel, data, **options):
    views = {"x": kofa.Real(kernel=kernel, **options), "y": kofa.Real()}
    kofa.FactorModel(views, outputs=["y"]).fit(data)


WARNINGS = {
    "fit": (lambda: kofa.FactorModel(max_iter=2).fit(FORTY), "still growing"),
    "fit_transform": (lambda: kofa.FactorModel(max_iter=2).fit_transform(FORTY), "still growing"),
    "estimator": (lambda: TWO_STEPS.fit(FORTY["x"], NOISE[:, 0]), "still growing"),
    "fit_transform of an estimator": (
        lambda: kofa.KernelFactorAnalysis(max_iter=2).fit_transform(NOISE), "still growing",
    ),
    "pipeline": (
        lambda: make_pipeline(StandardScaler(), TWO_STEPS).fit(FORTY["x"], NOISE[:, 0]), "growing",
    ),
    "cross-validation": (
        lambda: cross_val_score(TWO_STEPS, FORTY["x"], NOISE[:, 0], cv=2), "still growing",
    ),
    "search": (
        lambda: GridSearchCV(TWO_STEPS, {"sparse": [False]}, cv=2).fit(FORTY["x"], NOISE[:, 0]),
        "still growing",
    ),
    "empty column": (
        lambda: kofa.KernelFactorAnalysis().fit(np.insert(NOISE, 1, np.nan, axis=1)), "Left out",
    ),
    "distances": (
        lambda: kofa.FactorModel({"x": kofa.Real(kernel="precomputed")}, 2).fit(
            {"x": np.abs(NOISE[:, :1] - NOISE[:, 0])}
        ),
        "far from positive",
    ),
    "features switched off": (lambda: fit_on(OFF, FORTY), "no feature tells anything"),
    "samples switched off": (
        lambda: fit_on(kofa.RBF(3.0), FORTY | {"x": np.ones((40, 1))}, sparse=True),
        "no sample's kernel tells anything",
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*same value in all samples")
@pytest.mark.parametrize(("act", "message"), WARNINGS.values(), ids=WARNINGS)
def test_warnings_point_at_the_line_of_the_user(act, message):
    with pytest.warns(UserWarning, match=message) as caught:
        act()
    assert {warning.filename for warning in caught} == {__file__}


def of_slips(data, views=None):
    with pytest.warns(UserWarning, match="View") as caught:
        kofa.FactorModel(views, 2).fit(data)
    assert {warning.filename for warning in caught} == {__file__}
    return [str(warning.message) for warning in caught]


def test_zeros_and_ones_taken_as_real_are_warned_of():
    mutated = (NOISE > 0).astype(float)
    holed = np.where(NOISE > 1, np.nan, mutated)
    for table in (mutated, mutated.astype(bool), pd.DataFrame(mutated.astype(int)), holed):
        (said,) = of_slips({"mutations": table})
        assert "'mutations' holds only zeros and ones" in said
        assert "kofa.Binary()" in said
    for view in (kofa.Real(), kofa.Binary()):  # the user's choice
        kofa.FactorModel({"mutations": view}, 2).fit({"mutations": mutated})
    kofa.FactorModel(n_factors=2).fit({"mutations": mutated + (NOISE > 2)})  # and twos


@pytest.mark.parametrize(
    ("view", "value", "effect"),
    [(kofa.Real(), 3.0, "explains nothing"), (kofa.Count(), 0.0, "explains nothing"),
     (kofa.Real(kernel="rbf"), 3.0, "does not tell samples apart"),
     (kofa.Real(kernel=["rbf", "linear"]), 3.0, "does not tell")],
)  # fmt: skip
def test_constant_columns_are_warned_of(view, value, effect):
    x = np.abs(NOISE).round()
    x[:, 1] = value
    x[3, 1] = np.nan
    (said,) = of_slips({"x": x}, {"x": view})
    assert said.startswith("View 'x', column 1: a column that has the same value in all samples")
    assert effect in said
    (said,) = of_slips({"x": pd.DataFrame(np.hstack([x, np.ones((40, 5))]))}, {"x": view})
    assert "column 1, column 4, column 5 and 3 more" in said


def test_constant_columns_in_folds_are_not_warned_of():
    x = np.column_stack([NOISE, np.ones(40)])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kofa.KernelFactorAnalysis("rbf", n_factors=2).fit(x)
    assert [str(warning.message) for warning in caught] == []


def test_an_index_that_became_a_column_is_warned_of():
    frame = pd.DataFrame(NOISE, columns=list("abcd"))
    for first in (0, 1):
        counted = frame.assign(id=np.arange(first, 40 + first))
        (said,) = of_slips({"x": counted})
        assert "View 'x', column 'id' only counts the samples" in said
        assert ".set_index('id')" in said
    named = frame.assign(time=np.arange(40)).set_axis(range(3, 43))
    kofa.FactorModel(n_factors=2).fit({"x": named})


def test_the_library_warns_in_one_place():
    """Other places would have to count the lines between themselves and the user."""
    source = Path(kofa.__file__).parent
    calls = [p.name for p in source.rglob("*.py") if "warnings.warn(" in p.read_text("utf-8")]
    assert calls == ["errors.py"]
