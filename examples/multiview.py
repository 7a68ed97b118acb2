"""Three tables about the same samples, none complete: fit, count the factors, predict a table."""

import numpy as np
import pandas as pd

import kofa


def make_tables(seed: int = 0) -> dict[str, pd.DataFrame]:
    """200 samples; two factors act on all tables and a third on `rna` and `protein` only."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(200, 3))
    samples = [f"s{i}" for i in range(200)]

    def table(name: str, n_columns: int, factors: int) -> pd.DataFrame:
        values = z[:, :factors] @ rng.normal(size=(factors, n_columns))
        values += 0.5 * rng.normal(size=values.shape)
        return pd.DataFrame(values, samples, [f"{name}{j}" for j in range(n_columns)])

    return {"rna": table("g", 40, 3), "protein": table("p", 12, 3), "clinic": table("c", 5, 2)}


def main() -> None:
    complete = make_tables()
    holes = np.random.default_rng(1).random((200, 40)) < 0.1
    data = {
        "rna": complete["rna"].mask(holes),  # a tenth of the entries is missing
        "protein": complete["protein"].iloc[:150],  # 50 samples lack the whole table
        "clinic": complete["clinic"].iloc[20:],  # and 20 others lack this one
    }
    model = kofa.FactorModel().fit(data)
    print("factors:", model.n_factors_)

    new = {"rna": data["rna"].iloc[150:], "clinic": data["clinic"].iloc[130:]}
    mean, std = model.predict(new, "protein", return_std=True)
    truth = complete["protein"].iloc[150:]
    inside = (mean - truth).abs() < 1.645 * std
    print(f"error:   {((mean - truth) ** 2).to_numpy().mean() ** 0.5:.2f} (the noise is 0.50)")
    print(f"covered: {inside.to_numpy().mean():.0%} of 90 % intervals")
    shown = pd.DataFrame({"mean": mean.loc["s150"], "std": std.loc["s150"]})
    print(shown.assign(truth=truth.loc["s150"]).head(3).round(2))


if __name__ == "__main__":
    main()
