"""AnnData and MuData: modalities as views, and results written where users look for them."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np

from kofa.checks import hint, is_among, listed, require, shown
from kofa.data.stored import BackedRows, Named, Placed, SparseRows, is_sparse
from kofa.errors import DataError
from kofa.kernels.kernel_map import KernelMap
from kofa.kernels.mixture import kernel_name

__all__ = ["annotate", "from_mudata"]

FACTORS = "X_kofa"  # in .obsm, named as embeddings are
KEY = "kofa"  # in .varm and .uns
_MATRIX = "X"  # the view of an AnnData that stands alone


def is_omics(data: Any) -> bool:
    """Whether data are an AnnData or MuData; neither is loaded for the question."""
    return _is(data, "anndata", "AnnData") or _is_mudata(data)


def _is_mudata(data: Any) -> bool:
    return _is(data, "mudata", "MuData")


def _is(data: Any, module: str, name: str) -> bool:
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(data, kind)


# ---------------------------------------------------------------- in


def from_mudata(
    data: Any, views: Iterable[str] | None = None, *, layers: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Tables of a MuData or AnnData, for any method of `FactorModel`.

    `FactorModel` takes these objects themselves; this is for what its names cannot say, such as
    counts of a layer under the name of the modality, or tables to be changed before a fit.

    Parameters
    ----------
    data : MuData or AnnData
        What to take tables from.
    views : names, or None
        A modality stands for its ``.X``, ``"rna:counts"`` for a layer of it, and other names for
        columns of ``.obs`` (also ``"rna:batch"`` for one of a modality). The ``.X`` of an AnnData
        is called ``"X"``, its layers go by their names. None takes all modalities.
    layers : dict of modality → layer, or None
        Layers to be taken instead of ``.X``.

    Returns
    -------
    dict of name → DataFrame (n_obs, D), indexed by ``data.obs_names``. Samples that a modality
    lacks are missing. Sparse matrices become dense, one modality after the other; `FactorModel`
    itself takes them as they are.

    Examples
    --------
    >>> import numpy as np, kofa
    >>> from anndata import AnnData
    >>> cells = AnnData(np.zeros((3, 2)), layers={"counts": np.ones((3, 2), dtype=int)})
    >>> kofa.omics.from_mudata(cells, layers={"X": "counts"})["X"].sum().tolist()
    [3, 3]
    """
    return _tables(data, views, layers, dense=True)


def _tables(data: Any, views: Any, layers: Any, dense: bool) -> dict[str, Any]:
    modalities = _modalities(data)
    fine = layers is None or isinstance(layers, Mapping)
    require(fine, "layers", "a dict of modality → layer, or None", layers)
    fine = views is None or (isinstance(views, Collection) and not isinstance(views, str))
    cure = f"write [{views!r}]" if isinstance(views, str) else ""
    require(fine, "views", "a list of names, or None", views, cure=cure)
    chosen = dict(layers or {})
    for name, layer in chosen.items():
        _check_layer(modalities, name, layer)
    found = {}
    for name in modalities if views is None else list(views):
        place = f"{name}:{chosen[name]}" if is_among(name, chosen) else name
        found[name] = _table(data, place, dense) if isinstance(name, str) else None
        if found[name] is None:
            raise _not_there(data, name)
    return found


def tables(data: Any, views: Any, whole: bool = True) -> Any:
    """What a model reads of a MuData or AnnData; anything else as it is.

    With `whole` all views must be there, and a place for what is found, else one of the views.
    """
    if not is_omics(data):
        return data
    if whole and data.isbacked and data.is_view:  # nothing can be written to it; not after an hour
        what = "expected data to which factors can be written but got a part of data in a file"
        raise DataError(what, cure="read the file without backed, then take the part")
    names = list(views) if isinstance(views, Mapping) else None
    if whole or not names:
        return _tables(data, names, None, dense=False)
    read = {name: _table(data, name, dense=False) for name in names}
    found = {name: table for name, table in read.items() if table is not None}
    if not found:
        raise _not_there(data, names[0])
    return found


def _modalities(data: Any) -> Mapping[str, Any]:
    """The AnnData of each modality; one alone is called X."""
    if not is_omics(data):
        cure = "pass a dict of tables to fit as it is" if isinstance(data, Mapping) else ""
        raise DataError(f"expected a MuData or AnnData but got {type(data).__name__}", cure=cure)
    if not _is_mudata(data):
        return {_MATRIX: data}
    if data.axis == 1:
        what = (
            "expected modalities of the same observations but this MuData has modalities of the "
            "same variables (axis=1)"
        )
        raise DataError(what, cure="build it with axis=0")
    return dict(data.mod)


def _check_layer(modalities: Mapping[str, Any], name: str, layer: str) -> None:
    if name not in modalities:
        cure = hint(name, modalities, "the modalities are")
        raise DataError(f"there is no modality {shown(name)}", option="layers", cure=cure)
    known = _layers(modalities[name])
    if not is_among(layer, known):
        what, cure = f"there is no layer {shown(layer)}", hint(layer, known, "its layers are")
        raise DataError(what, name, option="layers", cure=cure)


def _table(data: Any, place: str, dense: bool) -> Any:
    """The table at a place, such as ``rna``, ``rna:counts`` or ``stage``, or None."""
    modality, layer = _split(data, place)
    if modality is not None and (layer is None or layer in modality.layers):
        _check_names(data, modality, place)
        return _of_all(data, _of_modality(modality, layer, place, dense))
    if place in data.obs:
        return data.obs[[place]]
    if modality is not None and layer in modality.obs:  # MuData has a copy only once pulled
        _check_names(data, modality, place)
        return _of_all(data, modality.obs[[layer]])
    return None


def _of_all(data: Any, table: Any) -> Any:
    """A table with a row for every observation, in their order."""
    if not isinstance(table, Named):
        return table if table.index.equals(data.obs_names) else table.reindex(data.obs_names)
    if table.samples.equals(data.obs_names):
        return table
    place = table.samples.get_indexer(data.obs_names)
    rows = SparseRows(table.values) if is_sparse(table.values) else table.values
    return Named(Placed(rows, place), data.obs_names, table.columns)


def _check_names(data: Any, modality: Any, view: str) -> None:
    """Raise unless every observation and variable is known by one name."""
    for what in ("obs_names", "var_names"):
        index = getattr(modality, what)
        if not index.is_unique:
            twice = index[index.duplicated()][0]
            cure = f"call .{what}_make_unique() on the AnnData"
            said = f"expected unique {what} but {twice!r} occurs more than once"
            raise DataError(said, view, cure=cure)
    if not modality.obs_names.isin(data.obs_names).all():
        said = "the modality has observations that the MuData does not know of"
        raise DataError(said, view, cure="call .update() on the MuData")


def _split(data: Any, place: str) -> tuple[Any, str | None]:
    """The AnnData of a place, None if there is none, and what of it is meant: a layer, or .X."""
    modalities = _modalities(data)
    if place in modalities:
        return modalities[place], None
    head, _, tail = place.partition(":")
    if head in modalities and tail:
        return modalities[head], tail
    return (None, None) if _is_mudata(data) else (data, place)


def _of_modality(modality: Any, layer: str | None, view: str, dense: bool) -> Any:
    """A matrix of an AnnData as a DataFrame, or sparse with its names, from memory or its file."""
    import pandas as pd  # anndata needs it too

    matrix = modality.X if layer is None else modality.layers[layer]
    if matrix is None:
        cure = f"name a layer instead, as {view + ':counts'!r}"
        raise DataError("expected values in .X but there are none", view, cure=cure)
    rows = None if dense else BackedRows.of(matrix, str(modality.filename))
    if rows is not None:
        return Named(rows, modality.obs_names, modality.var_names)
    matrix = matrix.to_memory() if hasattr(matrix, "to_memory") else matrix  # sparse, in a file
    if is_sparse(matrix) and not dense:
        return Named(matrix, modality.obs_names, modality.var_names)
    matrix = matrix.toarray() if hasattr(matrix, "toarray") else matrix
    return pd.DataFrame(np.asarray(matrix), modality.obs_names, modality.var_names)


def _not_there(data: Any, view: Any) -> DataError:
    """An error for a view of which there is nothing in the data."""
    layers = [
        f"{name}:{layer}" if _is_mudata(data) else layer
        for name, modality in _modalities(data).items()
        for layer in _layers(modality)
    ]
    known = [*_modalities(data), *layers, *data.obs.columns]
    what = "expected the name of a modality, a layer or a column of .obs"
    return DataError(what, view, cure=f"the data have {listed(known, 10)}")


def _layers(modality: Any) -> list[str]:
    """Names of layers; from anndata 0.13 on, .X is among them as None."""
    return [layer for layer in modality.layers if layer is not None]


# ---------------------------------------------------------------- out


def annotate(data: Any, model: Any, factors: Any) -> None:
    """Write what a model found into a MuData or AnnData, as ``model.fit(data)`` does.

    Only these are written, in place of what an earlier fit left there:

    - ``data.obsm["X_kofa"]``: the factors (n_obs, K), zero for samples that have none;
    - ``.varm["kofa"]`` of each modality that is explained directly: its weights (n_vars, K), zero
      for variables that the model does not have; those of a layer are ``.varm["kofa_<layer>"]``;
    - ``data.uns["kofa"]``: number of factors, bound, and the views with their kinds and kernels.

    Parameters
    ----------
    data : MuData or AnnData
        What to write into.
    model : FactorModel
        The fitted model.
    factors : DataFrame (n, K)
        From ``model.transform`` of tables indexed by ``obs_names``.

    Examples
    --------
    >>> import numpy as np, kofa
    >>> from anndata import AnnData
    >>> rng = np.random.default_rng(0)
    >>> cells = AnnData(rng.normal(size=(50, 1)) + 0.1 * rng.normal(size=(50, 4)))
    >>> tables = kofa.omics.from_mudata(cells)
    >>> model = kofa.FactorModel()
    >>> kofa.omics.annotate(cells, model, model.fit_transform(tables))
    >>> cells.obsm["X_kofa"].shape, cells.varm["kofa"].shape
    ((50, 1), (4, 1))
    """
    data.obsm[FACTORS] = factors.reindex(data.obs_names).fillna(0.0).to_numpy()
    for name, view in model.views_.items():
        modality, layer = _split(data, view.source)
        if modality is not None and (layer is None or layer in modality.layers):
            _write_weights(modality, KEY if layer is None else f"{KEY}_{layer}", model, name)
    data.uns[KEY] = _summary(model)


def _write_weights(modality: Any, key: str, model: Any, name: str) -> None:
    if isinstance(model.views_[name].encoder, KernelMap):  # has weights of samples
        modality.varm.pop(key, None)
        return
    weights = model.weights(name).reindex(modality.var_names).fillna(0.0)
    modality.varm[key] = weights.to_numpy()


def _summary(model: Any) -> dict[str, Any]:
    """What h5ad and h5mu files can hold: numbers and arrays, no names of views as keys."""
    views = model.views_
    kernels = [
        kernel_name(v.encoder.kernel) if isinstance(v.encoder, KernelMap) else "none"
        for v in views.values()
    ]
    return {
        "n_factors": int(model.n_factors_),
        "lower_bound": float(model.lower_bound_),
        "lower_bounds": np.array(model.lower_bounds_),
        "n_iter": int(model.n_iter_),
        "converged": bool(model.converged_),
        "views": np.array(list(views), dtype=str),
        "kinds": np.array([view.declared for view in views.values()], dtype=str),
        "kernels": np.array(kernels, dtype=str),
        "outputs": np.array([view.role.output for view in views.values()]),
    }
