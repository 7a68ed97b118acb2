"""Which features, which patients and which kernels matter, on the diabetes data."""

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.metrics import r2_score

import kofa


def title(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}")


def load(n_test: int = 142) -> tuple[dict[str, pd.DataFrame], dict[str, pd.DataFrame]]:
    """442 patients: ten measurements, and how far the disease is a year later."""
    bunch = load_diabetes(as_frame=True, scaled=False)
    rows = np.random.default_rng(0).permutation(len(bunch.data))
    names = [f"patient {i}" for i in range(len(rows))]
    tables = {"patient": bunch.data.set_axis(names), "disease": bunch.target.to_frame("progress")}
    tables["disease"].index = pd.Index(names)
    test, train = rows[:n_test], np.sort(rows[n_test:])
    return tuple({n: t.iloc[part] for n, t in tables.items()} for part in (train, test))


def fit(train: dict[str, pd.DataFrame], **options) -> kofa.FactorModel:
    views = {"patient": kofa.Real(**options), "disease": kofa.Real()}
    return kofa.FactorModel(views, outputs=["disease"]).fit(train)


def score(model: kofa.FactorModel, test: dict[str, pd.DataFrame]) -> float:
    return r2_score(test["disease"], model.predict({"patient": test["patient"]}, "disease"))


def show_features(train: dict[str, pd.DataFrame], test: dict[str, pd.DataFrame]) -> None:
    title("Which features matter: λ of an RBF kernel")
    model = fit(train, kernel=kofa.RBF(relevance="learn", sparsity=1.0))
    table = model.feature_relevance("patient")
    for row in table.itertuples():
        bar = "#" * round(30 * row.relevance / table.relevance.max())
        print(f"{row.feature:4} {row.relevance:5.2f} {bar or '.' if row.selected else '(off)'}")
    kept = model.selected_features("patient")
    alone = fit({**train, "patient": train["patient"][kept]}, kernel="rbf")
    few = {**test, "patient": test["patient"][kept]}
    print(
        f"R² {score(model, test):.2f}; a plain RBF kernel of these {len(kept)} alone "
        f"{score(alone, few):.2f}, of all ten {score(fit(train, kernel='rbf'), test):.2f}"
    )


def show_patients(train: dict[str, pd.DataFrame], test: dict[str, pd.DataFrame]) -> None:
    title("Which patients carry the prediction: relevance vectors")
    model = fit(train, kernel="rbf", sparse=True)
    vectors = model.relevance_vectors("patient")
    kept = vectors[vectors.kept].set_index("sample")
    columns = train["patient"][["age", "bmi", "bp", "s5"]].join(train["disease"])
    print(columns.loc[kept.index].assign(relevance=kept.relevance.round(1)))
    print(f"R² {score(model, test):.2f} with {len(kept)} of {len(vectors)} patients")


def show_kernels(train: dict[str, pd.DataFrame], test: dict[str, pd.DataFrame]) -> None:
    title("Which kernels help: linear, RBF and Laplacian as one view")
    model = fit(train, kernel="bank")
    for row in model.kernel_weights("disease").itertuples():
        print(f"{row.kernel:9} {row.weight:4.0%} {'#' * round(30 * row.weight)}")
    print(f"R² {score(model, test):.2f}")


def main() -> None:
    train, test = load()
    show_features(train, test)
    show_patients(train, test)
    show_kernels(train, test)


if __name__ == "__main__":
    main()
