"""One table with columns of five kinds and many holes: fit, fill the holes, see how well."""

import numpy as np
import pandas as pd

import kofa

VIEWS = {
    "labs": kofa.Real(),
    "cost": kofa.Positive(),
    "visits": kofa.Count(),
    "history": kofa.Binary(),
    "ward": kofa.Categorical(),
}


def make_patients(seed: int = 0) -> dict[str, pd.DataFrame]:
    """400 patients; two factors (say, age and severity) act on all views."""
    rng = np.random.default_rng(seed)
    age, ill = rng.normal(size=(2, 400))
    noise = rng.normal(size=(7, 400))
    ward = np.select([ill + noise[0] / 3 > 0.8, age + noise[1] / 3 > 0.3], ["icu", "old"], "day")
    tables = {
        "labs": {"crp": ill + 0.4 * noise[2], "egfr": -age - 0.3 * ill + 0.4 * noise[3]},
        "cost": {"euro": np.exp(6 + ill + 0.2 * age + 0.3 * noise[4])},
        "visits": {"gp": rng.poisson(np.exp(1 + 0.6 * age)), "er": rng.poisson(np.exp(0.7 * ill))},
        "history": {"surgery": ill + 0.5 * noise[5] > 0, "implant": age + 0.5 * noise[6] > 0.5},
        "ward": {"ward": ward},
    }
    kinds = {"visits": "Int64", "history": "boolean", "ward": "category"}
    names = [f"p{i}" for i in range(400)]
    return {n: pd.DataFrame(t, names).astype(kinds.get(n, float)) for n, t in tables.items()}


def main() -> None:
    complete = make_patients()
    rng = np.random.default_rng(1)
    holes = {n: t.isna() | (rng.random(t.shape) < 0.3) for n, t in complete.items()}
    data = {n: t.mask(holes[n]) for n, t in complete.items()}
    model = kofa.FactorModel(VIEWS).fit(data)
    filled = model.impute(data)

    print("As it came:", pd.concat(data, axis=1).droplevel(0, axis=1).head(4).round(1), sep="\n")
    print("\nFilled:", pd.concat(filled, axis=1).droplevel(0, axis=1).head(4).round(1), sep="\n")
    print("\nHow good the filled entries are:")
    for name, table in complete.items():
        for column in table:
            truth, guess = (t[column][holes[name][column]] for t in (table, filled[name]))
            if name in ("history", "ward"):
                usual = (truth == data[name][column].mode()[0]).mean()
                print(f"  {column:8} {(truth == guess).mean():.0%} right (commonest: {usual:.0%})")
            else:
                print(f"  {column:8} rank correlation {truth.corr(guess, method='spearman'):.2f}")


if __name__ == "__main__":
    main()
