"""Do forty models still give the same results? For changes that should change none.

`python -m experiments.same_results write FILE` before the change, `… compare FILE` after it. Every
kind of view, kernel and option is in one of the models.
"""

from __future__ import annotations

import io
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import kofa
from experiments.tasks import Array
from kofa import RBF, Diffusion, FactorModel, Laplacian, Mixture, Polynomial

N = 60
WITHIN = 1e-10


def tables() -> dict[str, Any]:
    """Views of every kind of three factors, with holes."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((N, 3))

    def eta(columns: int) -> Array:
        return np.asarray(Z @ rng.standard_normal((3, columns)))

    def holed(y: Array, share: float = 0.1) -> Array:
        return np.where(rng.random(y.shape) < share, np.nan, y)

    x = eta(6) + 0.3 * rng.standard_normal((N, 6))
    wide = eta(80) + 0.5 * rng.standard_normal((N, 80))
    y = np.sin(eta(2)) + 0.1 * rng.standard_normal((N, 2))
    lacking = holed(eta(5) + 0.3 * rng.standard_normal((N, 5)))
    lacking[::3] = np.nan
    labels = np.array(["a", "b", "c"])[np.argmax(eta(3), axis=1)]
    few = labels.astype(object)
    few[12:] = None
    return {
        "x": x,
        "wide": wide,
        "y": y,
        "holed": holed(x),
        "lacking": lacking,
        "positive": holed(np.exp(0.5 * eta(4) + 0.1 * rng.standard_normal((N, 4)))),
        "binary": holed((eta(5) + rng.standard_normal((N, 5)) > 0.5).astype(float)),
        "count": holed(rng.poisson(3.0 * np.logaddexp(0.0, eta(4))).astype(float)),
        "labels": labels,
        "few": few,
        "kernel": x @ x.T,
    }


def models() -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Views and options of each model."""
    real, output = kofa.Real(), {"outputs": ["y"]}
    kinds: dict[str, Any] = {
        "positive": kofa.Positive(),
        "binary": kofa.Binary(),
        "count": kofa.Count(),
        "labels": kofa.Categorical(),
        "holed": real,
        "lacking": real,
    }
    kernels: dict[str, Any] = {
        "linear": "linear",
        "rbf": "rbf",
        "rbf-width": RBF(width=2.0),
        "rbf-relevance": RBF(relevance="learn"),
        "laplacian": "laplacian",
        "laplacian-relevance": Laplacian(relevance="learn"),
        "polynomial": Polynomial(degree=2),
        "bank": "bank",
        "mixture": Mixture(["linear", "rbf"]),  # type: ignore[arg-type]
        "list": ["linear", "rbf"],
    }
    found: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    for name, view in kinds.items():
        found[f"with-{name}"] = ({"x": real, name: view}, {})
        found[f"from-{name}"] = ({"x": real, name: view, "y": real}, output)
        found[f"to-{name}"] = ({"x": kofa.Real(kernel="rbf"), name: view}, {"outputs": [name]})
    for name, kernel in kernels.items():
        found[f"kernel-{name}"] = ({"holed": kofa.Real(kernel=kernel), "y": real}, output)
    return found | {
        "kernel-unsupervised": ({"x": kofa.Real(kernel="rbf"), "y": real}, {}),
        "precomputed": ({"kernel": kofa.Real(kernel="precomputed"), "y": real}, output),
        "diffusion": (
            {"x": kofa.Real(kernel=Diffusion()), "few": kofa.Categorical()},
            {"outputs": ["few"]},
        ),
        "bank-few-labels": (
            {"x": kofa.Real(kernel="bank"), "few": kofa.Categorical()},
            {"outputs": ["few"]},
        ),
        "landmarks": ({"x": kofa.Real(kernel="rbf", landmarks=20), "y": real}, output),
        "k-means": (
            {"x": kofa.Real(kernel="rbf", landmarks=kofa.Landmarks(20, by="kmeans++")), "y": real},
            output,
        ),
        "relevance-vectors": ({"x": kofa.Real(kernel="rbf", sparse=True), "y": real}, output),
        "residual-vectors": ({"x": kofa.Real(kernel="rbf", sparse=True)}, {}),
        "sparse-features": ({"wide": kofa.Real(sparse=True), "y": real}, output),
        "as-published": (
            {"x": kofa.Real(kernel="rbf", sparse=True), "y": real},
            output | {"max_iter": 30, "n_factors": 10, "as_published": True},
        ),
        "wide": ({"wide": real, "y": real}, output),
        "few-factors": ({"x": real, "wide": real, "lacking": real}, {"n_factors": 2}),
        "three-starts": ({"x": real, "wide": real}, {"n_init": 3, "random_state": 1}),
        "own-units": ({"x": kofa.Real(scale=False, noise="view"), "y": real}, {}),
        "two-outputs": (
            {"x": real, "y": real, "binary": kofa.Binary()},
            {"outputs": ["y", "binary"]},
        ),
    }


def results(views: dict[str, Any], options: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """What one model says of the first samples, before and after it was saved."""
    given = {name: data[name] for name in views}
    model = FactorModel(views, **options).fit(given)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.kofa")
        loaded = kofa.load(Path(folder) / "model.kofa")
    found = {"bounds": model.lower_bounds_, "factors": model.transform(given)}
    found["score"] = loaded.score_samples(given)
    for name, view in views.items():
        new = {n: table[:10] for n, table in given.items() if n != name}
        if not new or getattr(view, "kernel", None) is not None:
            continue
        predict = loaded.predict_proba if name in ("labels", "few", "binary") else loaded.predict
        found[f"predict {name}"] = predict(new, name)
        if name in ("x", "y", "positive", "count"):
            found[f"quantiles {name}"] = np.array(loaded.predict_quantiles(new, name, [0.1, 0.9]))
    filled = {n: np.asarray(t) for n, t in model.impute(given).items() if t.dtype == float}
    return found | {f"impute {name}": table for name, table in filled.items()}


def all_results() -> dict[str, Array]:
    data, found = tables(), {}
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        for name, (views, options) in models().items():
            for what, values in results(views, options, data).items():
                found[f"{name}: {what}"] = np.asarray(values, dtype=float)
    return found


def differences(before: dict[str, Array], now: dict[str, Array]) -> dict[str, float]:
    """Largest change of each result relative to its size; infinite where shapes differ."""
    found = dict.fromkeys(before.keys() ^ now.keys(), np.inf)
    for name in before.keys() & now.keys():
        a, b = before[name], now[name]
        if a.shape != b.shape or (np.isnan(a) != np.isnan(b)).any():
            found[name] = np.inf
        elif a.size:
            size = max(1.0, float(np.nanmax(np.abs(a))))
            found[name] = float(np.nanmax(np.abs(a - b))) / size
    return found


def main() -> int:
    action, path = sys.argv[1], Path(sys.argv[2])
    now = all_results()
    if action == "write":
        packed = io.BytesIO()
        np.savez_compressed(packed, **now)  # type: ignore[arg-type]
        path.write_bytes(packed.getvalue())
        print(f"{len(models())} models, {len(now)} results")
        return 0
    with np.load(path) as file:
        found = differences(dict(file), now)
    for name in sorted(found, key=found.__getitem__, reverse=True)[:10]:
        print(f"{found[name]:.1e}  {name}")
    wrong = sum(value > WITHIN for value in found.values())
    print(
        f"{wrong} of {len(found)} results of {len(models())} models differ by more than {WITHIN:g}"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
