"""The folder in which hostile commands run: tables, models, and what is not what it seems."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd

import kofa
from experiments.fuzz.hostile_files import STUDY, make_bad_files


def tables(n: int = 40) -> dict[str, pd.DataFrame]:
    rng = np.random.default_rng(0)
    z = rng.standard_normal((n, 2))
    ids = pd.Index([f"{i:03d}" for i in range(n)], name="id")
    rna = pd.DataFrame(z @ rng.standard_normal((2, 4)), ids).add_prefix("g")
    rna = rna.mask(rng.random(rna.shape) < 0.1)
    protein = pd.DataFrame(z @ rng.standard_normal((2, 3)), ids).add_prefix("p")
    stage = pd.DataFrame({"stage": np.where(z[:, 0] > 0, "late", "early")}, ids)
    sick = pd.DataFrame({"a": z[:, 0] > 0, "a_p": z[:, 1] > 0}, ids).astype(int)
    return {"rna": rna, "protein": protein, "stage": stage, "sick": sick}


def make_folder(folder: Path) -> None:
    """Tables, a study, models, and everything in the folder that is not what it seems."""
    frames = tables()
    for name, frame in frames.items():
        frame.to_csv(folder / f"{name}.csv")
    rna = frames["rna"]
    rna.to_parquet(folder / "rna.parquet")
    rna.to_csv(folder / "rna.csv.gz")
    np.savez(folder / "rna.npz", rna=rna, samples=list(rna.index), columns=list(rna.columns))
    import anndata

    anndata.AnnData(rna).write_h5ad(folder / "rna.h5ad")
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    kinds = {"rna": kofa.Real(), "protein": kofa.Real(), "stage": kofa.Categorical(),
             "sick": kofa.Binary()}  # fmt: skip
    model = kofa.FactorModel(kinds, outputs=["stage"], max_iter=5, random_state=0)
    model.fit(frames).save(folder / "model.kofa")
    shutil.copy(folder / "model.kofa", folder / "model.csv")
    odd = {"a/b": rna, "a_b": frames["protein"], "\x1b[31m": rna}
    kofa.FactorModel(max_iter=3, random_state=0).fit(odd).save(folder / "odd.kofa")
    (folder / "sets.gmt").write_text("a\t-\tg0\tg1\nb\t-\tg2\tg3\n", encoding="utf-8")
    checkpoint = folder / "old.checkpoint"
    kofa.FactorModel(max_iter=3, checkpoint=checkpoint).fit({"x": rna})
    (folder / "sub").mkdir()
    for name in ("rna.csv", "stage.csv", "study.toml"):
        shutil.copy(folder / name, folder / "sub" / name)
    (folder / "odd").mkdir()
    rna.rename(columns={"g0": "\x1b[31m\x7f"}).to_csv(folder / "odd" / 'new\nline".csv')
    rna.to_csv(folder / "odd" / "\udcff.csv")
    os.symlink("loop.csv", folder / "loop.csv")
    os.symlink("no/where.csv", folder / "dangling.csv")
    os.symlink("real.csv", folder / "link.csv")
    (folder / "real.csv").write_text("mine", encoding="utf-8")
    os.link(folder / "rna.csv", folder / "RNA2.csv")
    os.mkfifo(folder / "pipe.csv")
    (folder / "secret").mkdir(0o700)
    shutil.copy(folder / "rna.csv", folder / "secret" / "rna.csv")
    shutil.copy(folder / "rna.csv", folder / "secret.csv")
    (folder / "secret.csv").chmod(0o600)
    folder.chmod(0o755)
    make_bad_files(folder / "bad", folder)


def contents(folder: Path) -> dict[str, bytes]:
    """Everything in a folder, links and pipes by what they are."""
    found = {}
    for place, folders, files in os.walk(os.fsencode(folder)):
        for name in [*folders, *files]:
            path = os.path.join(place, name)
            if os.path.islink(path):
                found[os.fsdecode(path)] = b"link to " + os.readlink(path)
            elif os.path.isfile(path):
                found[os.fsdecode(path)] = Path(os.fsdecode(path)).read_bytes()
            else:
                found[os.fsdecode(path)] = b"folder" if os.path.isdir(path) else b"pipe"
    return found


def restore(before: dict[str, bytes], after: dict[str, bytes]) -> None:
    """Undo what a command did."""
    for path in sorted(after.keys() - before.keys(), key=len, reverse=True):
        if after[path] == b"folder":
            shutil.rmtree(path)
        else:
            os.unlink(path)
    for path, content in before.items():
        if after.get(path) == content:
            continue
        if content.startswith(b"link to "):
            Path(path).unlink(missing_ok=True)
            os.symlink(content.removeprefix(b"link to "), path)
        elif content == b"pipe":
            os.mkfifo(path)
        else:
            Path(path).write_bytes(content)
