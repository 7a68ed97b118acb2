"""Commands that no one should give: wrong options, damaged files, mutated studies, odd places.

Each command is a good one in which one to three things are wrong. It must end in time, with the
code that belongs to what is wrong, with one line that says so, and leave nothing half-written.
KOFA_SEED repeats a run, KOFA_COMMANDS says how many.
"""

from __future__ import annotations

import math
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from typer.testing import CliRunner

import kofa
from benchmarks.hostile_files import STUDY, bad_studies, make_zoo, mutated, mutated_study
from benchmarks.report import Benchmark, Mark, Result
from kofa.cli.app import app
from kofa.files import containers

COMMANDS = int(os.environ.get("KOFA_COMMANDS", "1200"))
SECONDS = 60  # that a command may take, on a busy machine
MOST_MEMORY = 6 * 2**30  # bytes
MAIN = "import sys; sys.argv[0] = 'kofa'; from kofa.cli import main; main()"
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e]")
# What Python says about Ctrl-C where nothing can be done about it, such as in garbage collection.
_IGNORED = re.compile(r"Exception ignored in.*?^KeyboardInterrupt: ?$\n?", re.M | re.S)
OK, DATA, OPTION, STOPPED = (frozenset({code}) for code in (0, 1, 2, 130))
ANY = OK | DATA | OPTION


@dataclass(frozen=True)
class Twist:
    """Something wrong: arguments that are added, and the codes a command may end with."""

    arguments: tuple[str, ...]
    codes: frozenset[int]

    @property
    def option(self) -> object:
        """The same for things of which the last one counts."""
        name = self.arguments[0].partition("=")[0]
        repeat = ("-v", "--missing", "--kernel", "--output", "--quiet", "--nothing", "--")
        return self if name in repeat else name


@dataclass
class Verdict:
    """What was wrong with how a command ended."""

    command: Sequence[str]
    code: int
    complaints: list[str] = field(default_factory=list)
    shown: str = ""


def twists(option: str, codes: frozenset[int], *values: str) -> list[Twist]:
    """An option with each of some values, which may look like options themselves."""
    long = option.startswith("--")
    return [Twist((f"{option}={v}",) if long else (option, v), codes) for v in values]


# ---------------------------------------------------------------- what may be wrong

ODD_NAMES = ("\x1b[31mred\x1b[0m", "\x9b2J", "a\nb", "\u202egpj", "ü", "\udcff\udcfe", "y" * 300)
WHOLE = ("²", "x", "1.5", "1e3", "nan", "", "9" * 5000, "--5", "0x10", "-1", "\x1b[31m", "1 2")
PLACES = {  # of a table that is to be written
    ".": DATA, "..": DATA, "/": DATA, "no/x.csv": DATA, "x.docx": DATA, "x": DATA,
    "x.csv/": OK | DATA,
    "loop.csv": DATA, "pipe.csv": DATA, "/dev/null": DATA, "/dev/full": DATA, "/proc/x.csv": DATA,
    "rna.csv": DATA, "RNA2.csv": DATA, "model.kofa": DATA, "study.toml": DATA, "link.csv": OK,
    "y" * 300 + ".csv": DATA, "\x1b[31m.csv": OK, "\udcff.csv": OK, ".csv": OK, "out.parquet": OK,
    "-": OK, "out.tsv.gz": OK, "sub": DATA, "dangling.csv": DATA, "": OPTION, "model.csv": DATA,
}  # fmt: skip
MODEL_PLACES = {
    ".": DATA, "..": DATA, "/": DATA, "no/m": DATA, "loop.csv": DATA, "pipe.csv": DATA,
    "/dev/null": DATA, "/proc/m": DATA, "rna.csv": DATA, "RNA2.csv": DATA, "study.toml": DATA,
    "y" * 300: DATA, "\x1b[31m": OK, "\udcff": OK, "model.kofa": OK, "": OPTION, "sub": DATA,
    "old.checkpoint": DATA, "zoo/cut.kofa": OK | DATA, "-": OK,
}  # fmt: skip


def odd_tables(zoo: Sequence[str]) -> Iterator[Twist]:
    """Options --view that name what is no table for the view rna."""
    for file in ("no.csv", "sub", "pipe.csv", "loop.csv", "/dev/null", "/dev/zero", "/dev/stdin",
                 "dangling.csv", "/", ".", "model.kofa", "study.toml", "y" * 5000):  # fmt: skip
        yield Twist(("-v", f"rna={file}"), DATA)
    for name in ODD_NAMES:
        yield Twist(("-v", f"rna={name}.csv"), DATA)
        yield Twist(("-v", f"{name}=rna.csv"), ANY)
        yield Twist(("-v", f"rna=rna.csv:{name}"), DATA)
    for part in (
        "",
        ":",
        "::",
        ":::",
        ":nope",
        ":g0:",
        ":g0:real",
        ":g[",
        ":*",
        ":g0,,g1",
        ":real",
    ):
        yield Twist(("-v", f"rna=rna.csv{part}"), ANY)
    for part in (":g0:gaussian", ":g0:real:more", ":g0:REAL", ":g0:²"):
        yield Twist(("-v", f"rna=rna.csv{part}"), OPTION)
    for text in ("", "=", "x", "x=", "=rna.csv", "\x1b", "²"):
        yield Twist(("-v", text), OPTION)
    for file in zoo:
        yield Twist(("-v", f"rna=zoo/{file}"), OK | DATA)


READING = [
    *twists("--index", DATA, "²", "--5", "9" * 5000, "99", "-99", "x", "", "\x1b[31m", "1.5", " "),
    *twists("--index", OK | DATA, "0", "1", "-1", "id", "false", "None", "00"),
    *twists("--sep", OPTION, "", "ab", '"', "\n", "\r", "1", "e", "\x1b[", "²", "é", "-"),
    *twists("--sep", OK | DATA, ";", "tab", "\\t", "|", " ", "\U0001f600", ",", "'"),
    *twists("--decimal", OPTION, "", "ab", "1", "e", "\n", '"', "-", "+", " "),
    *twists("--decimal", OK | DATA, ",", "·", "'", "\U0001f600"),
    *twists("--missing", OK | DATA, "", "?", "1", "\x1b", "\n", "x" * 5000),
    *twists("--encoding", OPTION, "undefined", "hex", "rot13", "nope", "", "base64", "a" * 5000,
            "\x1b[31m", "../..", "²", "zlib"),
    *twists("--encoding", OK | DATA, "utf-16", "utf-32", "cp037", "ascii", "latin-1", "UTF_8",
            "utf-7", "unicode_escape", "raw_unicode_escape", "punycode", "utf-8-sig", "shift_jis",
            "utf_16_le", "hz", "idna", "iso2022_jp"),
]  # fmt: skip
MODELLING = [
    *(twist for option in ("--factors", "--init", "--max-iter", "--seed")
      for twist in twists(option, OPTION, *WHOLE)),
    *twists("--factors", ANY, "0", "1", "99999999999999999999", "１", " 3 ", "1_0"),
    *twists("--seed", ANY, "0", "99999999999999999999999", str(2**64), "1_0"),
    *twists("--max-iter", OK, "1", "2"),
    *twists("--tol", ANY, "nan", "inf", "1e400", "1e-400", "0", "1e308"),
    *twists("--tol", OPTION, "-1", "x", "", "²", "1,5", "--"),
    *twists("--checkpoint-every", ANY, "nan", "inf", "1e-300", "0"),
    *twists("--checkpoint-every", OPTION, "-1", "x", ""),
    *twists("--kernel", OPTION, "", "rna", "=rbf", "rna=", "rna=rbff", "rna=,,", "nope=rbf",
            "stage=rbf", "rna=rbf,nope", "\x1b=rbf", "rna=²", "rna=RBF"),
    *twists("--kernel", OK | DATA, "rna=rbf", "rna=rbf,linear", "rna=bank", "rna=rbf,rbf",
            "rna=polynomial", "rna=laplacian"),
    *twists("--output", OPTION, "", "nope", "\x1b[31m", "²"),
    *twists("--output", OK | DATA, "stage", "rna", "protein"),
    *(Twist((f"--checkpoint={place}",), codes) for place, codes in {
        **MODEL_PLACES, "model.kofa": DATA, "old.checkpoint": OK, "-": OK,
      }.items()),
    Twist(("--checkpoint=old.checkpoint", "--resume"), DATA),
    Twist(("--checkpoint=zoo/cut.checkpoint", "--resume"), DATA),
    Twist(("--checkpoint=zoo/flipped.checkpoint", "--resume"), DATA),
    Twist(("--resume",), OK),
    Twist(("--resume", "--resume"), OK),
]  # fmt: skip
PREDICTING = [
    *twists("--target", OPTION, "", "nope", "\x1b[31m", "²", "y" * 5000),
    *twists("--target", ANY, "protein", "stage", "sick"),
    *twists("--quantiles", ANY, "", ",", ".05,.95", ".5,.5", "1e-300", "0.9999999999999999"),
    *twists("--quantiles", OPTION, "0", "1", "nan", "x", "²", "-1", "inf", ".5;.6", "\x1b"),
    Twist(("--proba",), OK | DATA),
    Twist(("--std",), OK | DATA),
    Twist(("--proba", "--std", "--quantiles", ".5"), OK | DATA),
    Twist(("--target", "sick", "--proba"), DATA),
]
ANYWHERE = [
    Twist(("--nothing",), OPTION), Twist(("--nothing=1",), OPTION), Twist(("-z",), OPTION),
    Twist(("-\x1b",), OPTION), Twist(("--=",), OPTION), Twist(("--quiet=1",), OPTION),
    Twist(("extra1", "extra2", "extra3"), OPTION), Twist(("--", "--x", "--y", "--z"), OPTION),
    Twist(("--quiet",), OK), Twist(("-q", "-q"), OK), Twist(("--help",), OK),
    Twist(("--\udcff",), OPTION), Twist(("-vvv",), ANY),
]  # fmt: skip
PAPER = [  # experiments themselves take hours: only what is refused before
    ["paper"], ["paper", "nope"], ["paper", ""], ["paper", "table2", "--folds", "1"],
    ["paper", "table2", "--sets", "nope"], ["paper", "table2", "--method", "\x1b[31m"],
    ["paper", "table2", "--jobs", "0"], ["paper", "table2", "-o", ""], ["paper", "²"],
    ["paper", "table2", "--folds", "²"], ["paper", "table2", "--data-dir", ""],
]  # fmt: skip


# ---------------------------------------------------------------- commands


class Made(NamedTuple):
    """A command and the codes it may end with."""

    command: list[str]
    codes: frozenset[int]
    stopped: bool = False  # the user presses Ctrl-C
    nobody: bool = False  # the user may read files, but not write or read those of others


class Maker:
    """Draws commands, and the files that they need."""

    def __init__(self, rng: np.random.Generator, zoo: Sequence[str]) -> None:
        self.rng, self.tables = rng, list(odd_tables(zoo))
        self.models = [name for name in zoo if name.endswith(".kofa")]

    def pick(self, some: Sequence[Any]) -> Any:
        return some[int(self.rng.integers(len(some)))]

    def twisted(self, base: list[str], codes: frozenset[int], pool: Sequence[Twist]) -> Made:
        """A good command with one to three things wrong."""
        many = self.pick((1, 1, 1, 2, 3))
        chosen = [self.pick(pool) for _ in range(many)]
        arguments = [one for twist in chosen for one in twist.arguments]
        counts = list({twist.option: twist for twist in chosen}.values())
        failing = [twist.codes for twist in counts if 0 not in twist.codes]
        if not failing:
            codes = codes.union(*(twist.codes for twist in counts))
        elif len(counts) == 1:
            codes = failing[0]
        else:  # which is found first does not matter
            codes = frozenset().union(*(twist.codes for twist in counts)) - OK
        return [*base, *arguments], self.with_help(arguments, codes)

    def with_help(self, arguments: Sequence[str], codes: frozenset[int]) -> frozenset[int]:
        return codes | OK if "--help" in arguments else codes

    def fit(self) -> Made:
        base = ["fit", "-v", "protein=protein.csv", "--max-iter", "2", "-o", "out.kofa"]
        pool = self.pick((MODELLING, READING, self.tables, self.tables, ANYWHERE))
        if pool is MODELLING:
            return self.twisted(["fit", "study.toml", *base[3:]], OK, pool)
        if pool is READING:
            return self.twisted([*base, "-v", "rna=rna.csv"], OK | DATA, pool)
        command, codes = self.twisted(base, OK | DATA, pool)
        return command, codes | OPTION if command.count("-v") > 2 else codes  # a view twice

    def fit_to(self) -> Made:
        place, codes = self.pick(list(MODEL_PLACES.items()))
        return ["fit", "study.toml", "--max-iter", "2", "-o", place], codes

    def fit_study(self) -> Made:
        name = self.pick(("mutated.toml", "mutated.toml", "bad.toml"))
        text = mutated_study(self.rng) if name == "mutated.toml" else self.pick(bad_studies())
        Path(name).write_bytes(text)
        codes = OK | DATA if name == "mutated.toml" else DATA
        return ["fit", name, "--max-iter", "2", "-o", "out.kofa"], codes

    def mutated_table(self) -> Made:
        source = self.pick(("rna.csv", "rna.parquet", "rna.npz", "rna.h5ad", "rna.csv.gz"))
        Path(f"mutated-{source}").write_bytes(mutated(Path(source).read_bytes(), self.rng))
        name = f"mutated-{source}"
        kind = self.pick(("", ":categorical", ":count", ""))
        if kind or self.rng.random() < 0.5:
            view = f"rna={name}:{kind}" if "." in name and kind else f"rna={name}"
            return ["fit", "-v", view, "-v", "protein=protein.csv", "--max-iter", "2",
                    "-o", "out.kofa"], OK | DATA | (OPTION if kind else OK)  # fmt: skip
        return ["transform", "model.kofa", "-v", f"rna={name}", "-o", "out.csv"], OK | DATA

    def mutated_model(self) -> Made:
        Path("mutated.kofa").write_bytes(mutated(Path("model.kofa").read_bytes(), self.rng))
        name = self.pick(("mutated.kofa", f"zoo/{self.pick(self.models)}", "rna.csv", "rna.npz"))
        return self.pick((
            (["info", name], OK | DATA),
            (["info", name, "--json"], OK | DATA),
            (["transform", name, "-v", "rna=rna.csv", "-o", "out.csv"], OK | DATA),
        ))  # fmt: skip

    def apply(self) -> Made:
        command = self.pick(("transform", "predict", "impute"))
        to = {"impute": "filled"}.get(command, "out.csv")
        base = [command, "model.kofa", "-o", to]
        pool = self.pick((READING, self.tables, ANYWHERE, PREDICTING))
        if pool is PREDICTING:
            return self.twisted(["predict", "model.kofa", "-v", "rna=rna.csv", "-o", "out.csv"],
                                OK | DATA, pool)  # fmt: skip
        if pool is self.tables:
            made, codes = self.twisted(base, OK | DATA, pool)
            return made, codes | OPTION | (OK if made.count("-v") > 1 else frozenset())
        return self.twisted([*base, "-v", "rna=rna.csv"], OK | DATA, pool)

    def apply_to(self) -> Made:
        place, codes = self.pick(list(PLACES.items()))
        command = self.pick(("transform", "predict"))
        model = "model.csv" if place == "model.csv" else "model.kofa"
        study = ["--study", "study.toml"] if place == "study.toml" else []
        return [command, model, "-v", "rna=rna.csv", *study, f"--to={place}"], codes

    def impute_to(self) -> Made:
        place, codes = self.pick([
            ("", OPTION), ("-", OPTION), (".", OK | DATA), ("rna.csv", DATA), ("no/a", DATA),
            ("loop.csv", DATA), ("pipe.csv", DATA), ("/dev/null", DATA), ("/proc/x", DATA),
            ("y" * 300, DATA), ("\x1b[31m", OK), ("\udcff", OK), ("filled", OK), ("sub", OK),
            ("dangling.csv", DATA),
        ])  # fmt: skip
        form, allowed = self.pick([
            ("csv", codes), ("parquet", codes), ("tsv", codes), ("xls", OPTION), ("", OPTION),
            ("CSV", OPTION),
        ])  # fmt: skip
        return [
            "impute",
            "model.kofa",
            "-v",
            "rna=rna.csv",
            "--to",
            place,
            "--format",
            form,
        ], allowed

    def names(self) -> Made:
        """A model whose views have odd names."""
        pair = ["odd.kofa", "-v", "a/b=rna.csv", "-v", "a_b=protein.csv"]
        return self.pick((
            (["info", "odd.kofa"], OK),
            (["impute", *pair, "-v", "\x1b[31m=rna.csv", "--to", "filled"], OK),
            (["predict", *pair, "-t", "\x1b[31m", "-o", "out.csv"], OK),
            (["predict", *pair, "-o", "out.csv"], OPTION),
            (["transform", "odd.kofa", "-v", "ab=rna.csv"], OPTION),
        ))  # fmt: skip

    def init(self) -> Made:
        folder, codes = self.pick([
            ("zoo", OK), (".", DATA), ("no", DATA), ("rna.csv", DATA), ("loop.csv", DATA),
            ("", OPTION), ("/dev/null", DATA), ("/proc/self/fd", DATA), ("sub", DATA), ("odd", OK),
            ("\x1b[31m", DATA), ("pipe.csv", DATA), ("y" * 300, DATA),
        ])  # fmt: skip
        return self.twisted_or_plain(["init", folder], codes)

    def demo(self) -> Made:
        folder, codes = self.pick([
            ("rna.csv", DATA), (".", DATA), ("no/a", DATA), ("loop.csv", DATA), ("", OPTION),
            ("/proc/x", DATA), ("\x1b[31m", OK), ("y" * 300, DATA), ("pipe.csv", DATA),
            ("wine", OK), ("/dev/null", DATA), ("dangling.csv", DATA),
        ])  # fmt: skip
        return self.twisted_or_plain(["demo", folder], codes)

    def twisted_or_plain(self, base: list[str], codes: frozenset[int]) -> Made:
        if self.rng.random() < 0.8:
            return base, codes
        twist = self.pick(ANYWHERE[:-1])
        return [*base, *twist.arguments], self.with_help(twist.arguments, codes | twist.codes)

    def rest(self) -> Made:
        return self.pick([
            *((command, OPTION) for command in PAPER), ([], OPTION), (["nope"], OPTION),
            (["--version"], OK), (["-h"], OK), (["\x1b[31m"], OPTION), ([""], OPTION),
            (["--nope"], OPTION), (["info"], OPTION), (["fit"], OPTION), (["FIT"], OPTION),
            (["fit", "-o"], OPTION),
            (["fit", "-o", "m"], OPTION), (["info", ""], OPTION), (["--", "info"], OPTION),
            (["info", "no", "--debug=1"], OPTION), (["\udcff"], OPTION),
        ])  # fmt: skip

    def stopped(self) -> Made:
        """Good commands for which the user does not wait."""
        command = self.pick((
            ["fit", "study.toml", "--max-iter", "9", "-o", "out.kofa"],
            ["transform", "model.kofa", "-v", "rna=rna.csv", "-o", "out.parquet"],
            ["impute", "model.kofa", "-v", "rna=rna.csv", "-v", "protein=protein.csv", "-o", "new"],
            ["init", "zoo"],
            ["demo", "wine"],
        ))  # fmt: skip
        return Made(command, OK | STOPPED, stopped=True)

    def rights(self) -> Made:
        """Commands of a user who may not write here, nor read one of the files."""
        return self.pick([
            Made(command, codes, nobody=True)
            for command, codes in (
                (["fit", "study.toml", "--max-iter", "2", "-o", "out.kofa"], DATA),
                (["fit", "study.toml", "--max-iter", "2", "-o", "model.kofa"], DATA),
                (["transform", "model.kofa", "-v", "rna=rna.csv", "-o", "out.csv"], DATA),
                (["transform", "model.kofa", "-v", "rna=rna.csv", "-o", "out.parquet"], DATA),
                (["transform", "model.kofa", "-v", "rna=secret.csv"], DATA),
                (["transform", "model.kofa", "-v", "rna=secret/rna.csv"], DATA),
                (["transform", "model.kofa", "-v", "rna=rna.csv"], OK),
                (["impute", "model.kofa", "-v", "rna=rna.csv", "-o", "new"], DATA),
                (["impute", "model.kofa", "-v", "rna=rna.csv", "-o", "sub"], DATA),
                (["impute", "model.kofa", "-v", "rna=rna.csv", "-o", "secret/new"], DATA),
                (["init", "odd"], DATA), (["init", "secret"], DATA), (["demo", "wine"], DATA),
                (["info", "secret.csv"], DATA), (["info", "secret/no.kofa"], DATA),
                (["fit", "secret.csv", "-o", "out.kofa"], DATA), (["info", "model.kofa"], OK),
            )
        ])  # fmt: skip

    def command(self) -> Made:
        makers: list[Callable[[], Any]] = [
            self.fit, self.fit, self.fit, self.fit_to, self.fit_study, self.fit_study,
            self.mutated_table, self.mutated_table, self.mutated_model, self.mutated_model,
            self.apply, self.apply, self.apply, self.apply_to, self.impute_to, self.names,
            self.init, self.demo, self.rest, self.stopped,
            *([self.rights] if os.name == "posix" and os.geteuid() == 0 else []),
        ]  # fmt: skip
        return Made(*self.pick(makers)())


# ---------------------------------------------------------------- the place where they run


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


def make_arena(folder: Path) -> None:
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
    make_zoo(folder / "zoo", folder)


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


# ---------------------------------------------------------------- how a command ends


class TooSlow(BaseException):
    """A command took longer than any may."""


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def memory_limit(size: int) -> Iterator[None]:
    """What no file may make a command allocate fails here, and not on the user's machine."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@contextmanager
def rights_of(nobody: bool) -> Iterator[None]:
    """Do something with the rights of a user who owns nothing, where that can be done."""
    if not nobody:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def ctrl_c(after: float) -> Iterator[None]:
    """The user stops what is still running after some seconds; never if that is infinite."""

    def press() -> None:
        if not done.is_set():
            os.kill(os.getpid(), signal.SIGINT)

    done, timer = threading.Event(), threading.Timer(min(after, 1e6), press)
    timer.start()
    try:
        yield
    finally:
        done.set()
        timer.cancel()


def run_inside(made: Made, patience: float) -> tuple[int, str, str]:
    """Code, stdout and stderr of a command in this process; −1 for one that does not end."""
    stop = ctrl_c(patience if made.stopped else math.inf)
    try:
        with time_limit(SECONDS), warnings.catch_warnings(), rights_of(made.nobody), stop:
            warnings.simplefilter("ignore")
            result = CliRunner(env={"COLUMNS": "100"}).invoke(app, made.command, prog_name="kofa")
    except TooSlow:
        return -1, "", ""
    except KeyboardInterrupt:  # it had ended already
        return 130, "", ""
    error = result.exception
    if error is not None and not isinstance(error, SystemExit):
        return -2, result.stdout, f"Traceback: {type(error).__name__}: {error}"
    return result.exit_code, result.stdout, result.stderr


def complaints(
    code: int, codes: frozenset[int], stdout: str, stderr: str, piped: bool
) -> Iterator[str]:
    """What is wrong with the way a command ended."""
    if code == -1:
        yield f"did not end within {SECONDS} s"
        return
    stderr = _IGNORED.sub("", stderr)
    if "Traceback" in stderr or "fault of kofa" in stderr:
        yield "a foreign error"
    if code not in codes:
        yield f"code {code}, expected {' or '.join(map(str, sorted(codes)))}"
    errors = [line for line in stderr.splitlines() if line.startswith("error: ")]
    others = [line for line in stderr.splitlines() if not line.startswith(("error: ", "warning: "))]
    if code == 130 and stderr and "stopped" not in stderr:
        yield "no word about being stopped"
    if code in (1, 2) and stderr and len(errors) != 1:
        yield f"{len(errors)} lines of errors"
    if code in (1, 2) and others:
        yield "lines that are no errors or warnings"
    if code == 0 and errors:
        yield "an error with code 0"
    if CONTROL.search(stderr) or (not piped and CONTROL.search(stdout)):
        yield "control characters for the terminal"


def changes(before: dict[str, bytes], after: dict[str, bytes], code: int) -> Iterator[str]:
    """What a command left behind and should not have."""
    new = after.keys() - before.keys()
    if code == 130:  # a fit goes on from its checkpoint, or clears what is left of it
        new = {path for path in new if "out.kofa.checkpoint" not in path}
    for path in new:
        if Path(path).name.endswith((".tmp", ".lock", ".part", ".checkpoint")):
            yield f"left {path!r}"
    if code != 0 and new:
        yield f"failed but made {sorted(new)[0]!r}"
    for path in before:
        if path not in after:
            if not (code == 0 and path.endswith(".checkpoint")):
                yield f"removed {path!r}"
        elif after[path] != before[path] and (code != 0 or not _may_change(path)):
            yield f"changed {path!r}"


def _may_change(path: str) -> bool:
    """Whether commands that succeed may have been told to write there."""
    names = ("model.kofa", "cut.kofa", "real.csv", "link.csv", "study.toml", "rna.parquet")
    return Path(path).name in names or path.endswith("sub/rna.csv")


def judged(made: Made, before: dict[str, bytes], folder: Path, patience: float) -> Verdict:
    code, stdout, stderr = run_inside(made, patience)
    after = contents(folder)
    piped = code == 0 and made.command[:1] in (["transform"], ["predict"])
    wrong = [*complaints(code, made.codes, stdout, stderr, piped)]
    verdict = Verdict(made.command, code, wrong)
    finished = code == 130 and "written" in stderr and "nothing was written" not in stderr
    verdict.complaints += changes(before, after, 0 if finished else code)
    verdict.shown = stderr[-400:]
    restore(before, after)
    return verdict


# ---------------------------------------------------------------- processes of their own

FIT = "fit study.toml --max-iter 2 -o out.kofa"
SHELL: list[tuple[str, dict[str, str], int]] = [  # command, environment, code
    (f"kofa {FIT}", {"PYTHONIOENCODING": "ascii"}, 0),
    (f"kofa {FIT}", {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, 0),
    (f"kofa {FIT}", {"LC_ALL": "POSIX", "PYTHONIOENCODING": "cp1252"}, 0),
    ("kofa info odd.kofa", {"PYTHONIOENCODING": "ascii"}, 0),
    ("kofa fit --help", {"PYTHONIOENCODING": "ascii"}, 0),
    (f"kofa {FIT} >&-", {}, 0),
    (f"kofa {FIT} >/dev/full", {}, 0),
    ("kofa transform model.kofa -v rna=rna.csv >&-", {}, 1),
    ("kofa transform model.kofa -v rna=rna.csv >/dev/full", {}, 1),
    ("kofa transform model.kofa -v rna=rna.csv -o out.csv >&-", {}, 0),
    ("kofa info model.kofa >&-", {}, 1),
    ("kofa info model.kofa >/dev/full", {}, 1),
    ("kofa info no.kofa 2>&-", {}, 1),
    ("kofa info no.kofa 2>/dev/full", {}, 1),
    ("kofa --help >/dev/full", {}, 1),
    ("kofa info model.kofa <&-", {}, 0),
    (f"kofa {FIT} >&- 2>&- <&-", {}, 0),
    (f"kofa {FIT} | true; exit ${{PIPESTATUS[0]}}", {}, 0),
    ("kofa transform model.kofa -v rna=/dev/stdin", {}, 1),
    ("kofa nope", {"TERM": "dumb", "COLUMNS": "1"}, 2),
]  # fmt: skip


def run_outside(line: str, environment: dict[str, str], code: int, folder: Path) -> Verdict:
    """A command line of a shell, with streams as they seldom are."""
    define = f'kofa() {{ "{sys.executable}" -c "{MAIN}" "$@"; }}; '
    before = contents(folder)
    try:
        done = subprocess.run(
            ["bash", "-c", define + line], capture_output=True, timeout=SECONDS,
            env=os.environ | {"OMP_NUM_THREADS": "1"} | environment, cwd=folder,
        )  # fmt: skip
        found, stdout, stderr = (
            done.returncode,
            *(t.decode(errors="replace") for t in (done.stdout, done.stderr)),
        )
    except subprocess.TimeoutExpired:
        found, stdout, stderr = -1, "", ""
    after = contents(folder)
    wrong = [*complaints(found, frozenset({code}), stdout, stderr, True)]
    wrong += changes(before, after, found)
    restore(before, after)
    return Verdict([line, *map(str, environment.items())], found, wrong, stderr[-400:])


# ---------------------------------------------------------------- the benchmark


def warm_up(folder: Path) -> None:
    """Import everything now: not every user may do so later, and Ctrl-C would leave halves."""
    before = contents(folder)
    view = ["model.kofa", "-v", "rna=rna.csv"]
    for command in (
        ["fit", "study.toml", "--max-iter", "2", "-o", "out.kofa"], ["init", "zoo"],
        ["init", "odd"], ["demo", "wine"],
        ["impute", *view, "-o", "new"], ["transform", *view, "-o", "out.parquet"], ["nope"],
        ["predict", *view, "-t", "protein", "--std"], ["info", "model.kofa"], ["info", "no"],
    ):  # fmt: skip
        run_inside(Made(command, ANY), math.inf)
    restore(before, contents(folder))


def verdicts(seed: int, folder: Path) -> Iterator[Verdict]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make_arena(folder)
    os.chdir(folder)
    warm_up(folder)
    rng = np.random.default_rng(seed)
    maker = Maker(rng, sorted(os.listdir(folder / "zoo")))
    start = contents(folder)
    for _ in range(COMMANDS):
        made = maker.command()
        yield judged(made, contents(folder), folder, float(rng.uniform(0, 0.4)))
        restore(start, contents(folder))
    for line, environment, code in SHELL:
        yield run_outside(line, environment, code, folder)


def hostile_commands() -> Result:
    """Run them all; those that end wrongly go to stderr."""
    seed = int(os.environ.get("KOFA_SEED", secrets.randbits(32)))
    here, bad, codes = Path.cwd(), 0, Counter[int]()
    os.environ["PYTHONPATH"] = os.pathsep.join(str(Path(one).resolve()) for one in sys.path if one)
    containers._PATIENCE = SECONDS / 3  # with files on which the HDF5 library hangs
    with TemporaryDirectory() as folder, memory_limit(MOST_MEMORY):
        try:
            for verdict in verdicts(seed, Path(folder).resolve()):
                codes[verdict.code] += 1
                if verdict.complaints:
                    bad += 1
                    print(verdict.complaints, verdict.command, verdict.shown, file=sys.stderr)
        finally:
            os.chdir(here)
    ends = ", ".join(f"{n:,} with code {code}" for code, n in sorted(codes.items()))
    text = f"{bad} of {codes.total():,} ({ends}; seed {seed})"
    return Result("hostile commands that end wrongly", float(bad), Mark(high=0), text)


BENCHMARKS: dict[str, Benchmark] = {"hostile-commands": hostile_commands}
