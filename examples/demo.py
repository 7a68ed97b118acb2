"""The main job in two parts, on data that ship with scikit-learn. Run it with `make demo`."""

import time

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kofa

SHADES = " .:-=+*#%@"


def title(text: str) -> None:
    print(f"\n{text}\n{'=' * len(text)}\n")


# ---------------------------------------------------------------- part 1: views with holes


def tumours() -> tuple[dict[str, pd.DataFrame], pd.Series]:
    """Logarithms of 30 measurements of 569 tumours as three views of 10; 1 = malignant."""
    bunch = load_breast_cancer(as_frame=True)
    logs = np.log(bunch.data + 1e-3)
    views = {}
    for start, (view, word) in enumerate(
        [("mean", "mean "), ("error", " error"), ("worst", "worst ")]
    ):
        columns = logs.iloc[:, 10 * start : 10 * start + 10]
        views[view] = columns.rename(columns=lambda name, word=word: name.replace(word, ""))
    return views, 1 - bunch.target


def punch_holes(
    views: dict[str, pd.DataFrame], lacking: pd.Index
) -> tuple[dict[str, pd.DataFrame], dict[str, pd.DataFrame]]:
    """Hide a tenth of all entries, and the view 'worst' of some samples."""
    rng = np.random.default_rng(0)
    hidden = {
        name: pd.DataFrame(rng.random(table.shape) < 0.1, table.index, table.columns)
        for name, table in views.items()
    }
    hidden["worst"].loc[lacking] = True
    return {name: table.mask(hidden[name]) for name, table in views.items()}, hidden


def r_squared(truth: pd.DataFrame, guess: pd.DataFrame, seen: pd.DataFrame, where: pd.DataFrame):
    """1 − squared error / squared error of the column means, columns in units of their spread."""
    error = ((truth - guess) / seen.std())[where]
    base = ((truth - seen.mean()) / seen.std())[where]
    return 1 - np.nansum(error**2) / np.nansum(base**2)


def show_imputation(model, views, seen, hidden, lacking) -> None:
    filled = model.impute(seen)
    print("Held-out R2 of the filled entries (column means score 0):\n")
    for name, table in views.items():
        scattered = hidden[name].copy()
        if name == "worst":
            scattered.loc[lacking] = False
        r2 = r_squared(table, filled[name], seen[name], scattered)
        print(f"  {name:6} scattered entries   {r2:5.2f}   ({scattered.to_numpy().sum()} entries)")
    whole = hidden["worst"].copy()
    whole.loc[whole.index.difference(lacking)] = False
    r2 = r_squared(views["worst"], filled["worst"], seen["worst"], whole)
    print(f"  worst  whole view missing  {r2:5.2f}   ({whole.to_numpy().sum()} entries)")

    mean, std = model.predict({n: seen[n].loc[lacking] for n in ("mean", "error")}, "worst", True)
    surprise = ((views["worst"].loc[lacking] - mean) / std).abs().to_numpy()
    for level, width in ((50, 0.674), (90, 1.645)):
        print(f"  {level} % intervals of the missing view cover {(surprise < width).mean():.0%}")


def show_factors(model, seen, malignant) -> None:
    """Share of each view's variance that each factor explains, as bars."""
    Z = model.transform(seen).to_numpy()
    share = {
        name: (q.weights.mean**2).mean(axis=0) * Z.var(axis=0)
        for name, q in model.posterior_.items()
    }
    order = np.argsort(-sum(share.values()))
    large = [k for k in order if max(s[k] for s in share.values()) >= 0.03]
    print("\nShare of each view's variance by factor (one # is 2 %):\n")
    print(("  factor   " + " ".join(f"{name:30}" for name in share)).rstrip())
    for rank, k in enumerate(large, 1):
        bars = [f"{s[k]:4.0%} {'#' * round(50 * s[k]):25}" for s in share.values()]
        print("  " + " ".join([f"{rank:<8}", *bars]).rstrip())
    rest = [f"{sum(s) - sum(s[large]):4.0%} {'':25}" for s in share.values()]
    fitted = model.reconstruct(seen)
    whole = [
        f"{r_squared(seen[name], fitted[name], seen[name], seen[name].notna()):4.0%} {'':25}"
        for name in share
    ]
    print("  " + " ".join([f"{len(order) - len(large):<2} small", *rest]).rstrip())
    print("  " + " ".join(["together", *whole]).rstrip())
    print("\nThe last line is the R2 of the fit. Factors are slightly correlated, so the shares")
    print("above it need not add up to it.")
    auc = roc_auc_score(malignant, Z[:, order[0]])
    print(f"\nFactor 1 tells malignant from benign with an AUC of {max(auc, 1 - auc):.2f};")
    print("the model has not seen the diagnosis.")


def show_new_sample(model, tables: dict[str, pd.DataFrame]) -> None:
    row = {name: tables[name] for name in ("mean", "error")}
    mean, std = model.predict(row, "worst", return_std=True)
    mean, std, truth = mean.iloc[0], std.iloc[0], tables["worst"].iloc[0]
    print("\nA tumour the model has not seen: 'worst' predicted from 'mean' and 'error'\n")
    print(f"  {'':20}{'predicted':>12}{'90 % interval':>22}{'measured':>12}")
    for column in mean.index:
        low, high = (np.exp(mean[column] + s * 1.645 * std[column]) for s in (-1, 1))
        mark = "" if low <= np.exp(truth[column]) <= high else "  outside"
        print(
            f"  {column:20}{np.exp(mean[column]):12.4g}{low:12.4g}{high:10.4g}"
            f"{np.exp(truth[column]):12.4g}{mark}"
        )


def part_one() -> None:
    title("1. Three views of 569 tumours, with holes")
    views, malignant = tumours()
    aside = malignant.sample(1, random_state=0).index
    stranger = {name: table.loc[aside] for name, table in views.items()}
    views = {name: table.drop(index=aside) for name, table in views.items()}
    lacking = views["worst"].sample(frac=0.2, random_state=0).index
    seen, hidden = punch_holes(views, lacking)
    print("Views of 10 columns each: mean, error and worst of the cell nuclei (logarithms).")
    print(f"Hidden: a tenth of all entries, and all of 'worst' for {len(lacking)} tumours.\n")
    begin = time.perf_counter()
    model = kofa.FactorModel().fit(seen)
    seconds = time.perf_counter() - begin
    print(f"{model.n_factors_} factors, {model.n_iter_} iterations, {seconds:.1f} s\n")
    show_imputation(model, views, seen, hidden, lacking)
    show_factors(model, seen, malignant.drop(index=aside))
    show_new_sample(model, stranger)


# ---------------------------------------------------------------- part 2: outputs by a kernel


def compare(name: str, X, Y, n_train: int):
    """Predict Y from X through an RBF kernel whose width is learnt, and by linear regression."""
    order = np.random.default_rng(0).permutation(len(X))
    train, test = order[:n_train], order[n_train:]
    X = X[:, np.ptp(X[train], axis=0) > 0]  # some pixels are white in all digits
    model = kofa.FactorModel(
        {"x": kofa.Real(kernel=kofa.RBF()), "y": kofa.Real()}, outputs=["y"]
    ).fit({"x": X[train], "y": Y[train]})
    mean, std = model.predict({"x": X[test]}, "y", return_std=True)
    ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 4, 15)))
    linear = ridge.fit(X[train], Y[train]).predict(X[test]).reshape(mean.shape)
    scores = [r2_score(Y[test], guess, multioutput="variance_weighted") for guess in (linear, mean)]
    covered = (np.abs(Y[test].reshape(mean.shape) - mean) < 1.645 * std).mean()
    print(
        f"  {name:24}{n_train:8}{mean.shape[1]:9}{scores[0]:9.2f}{scores[1]:8.2f}"
        f"{model.kernels_['x'].width:8.2f}{covered:10.0%}"
    )
    return test, mean


def picture(half_rows: np.ndarray) -> list[str]:
    """Pixels of 0 to 16 as characters, two wide."""
    level = np.clip(np.round(half_rows / 16 * 9), 0, 9).astype(int)
    return ["".join(SHADES[p] * 2 for p in row) for row in level]


def show_digits(images, test, mean, keep, chosen) -> None:
    right = np.zeros((len(chosen), 32))
    right[:, keep] = mean[chosen]
    right = right.reshape(-1, 8, 4)
    given, truth = images[test[chosen], :, :4], images[test[chosen], :, 4:]
    print("\nFive digits that were not in the training data, the first of the test set.")
    for what, shown in (("left half given | right half predicted", right), ("the truth", truth)):
        print(f"\n  {what}:\n")
        cells = [
            [f"{a}|{b}" for a, b in zip(picture(g), picture(r), strict=True)]
            for g, r in zip(given, shown, strict=True)
        ]
        for line in zip(*cells, strict=True):
            print("  " + "   ".join(line).rstrip())


def part_two() -> None:
    title("2. Predicting outputs through a kernel")
    print("Held-out R2; the width of the RBF kernel is learnt from the outputs.\n")
    print(
        f"  {'':24}{'train':>8}{'outputs':>9}{'linear':>9}{'kofa':>8}{'width':>8}{'90 % int.':>10}"
    )
    X, y = load_diabetes(return_X_y=True)
    compare("diabetes, progression", X, y, 300)
    images = load_digits().images
    right = images[:, :, 4:].reshape(-1, 32)
    keep = right.std(axis=0) > 0.5  # the margin is empty
    left = images[:, :, :4].reshape(-1, 32)
    test, mean = compare("digits, left to right", left, right[:, keep], 300)
    show_digits(images, test, mean, keep, np.arange(5))


def main() -> None:
    begin = time.perf_counter()
    part_one()
    part_two()
    print(f"\nWhole demo: {time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
