"""Commands that no one should give: good ones in which one to three things are wrong."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.fuzz import faulty_tables
from experiments.fuzz.faults import (
    ANY,
    DATA,
    ODD_NAMES,
    OK,
    OPTION,
    STOPPED,
    WHOLE,
    Fault,
    faults,
)
from experiments.fuzz.hostile_files import bad_studies, mutated, mutated_study

# ---------------------------------------------------------------- what may be wrong

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
    "y" * 300: DATA, "\x1b[31m": OK, "\udcff": OK, "model.kofa": DATA, "": OPTION, "sub": DATA,
    "old.checkpoint": DATA, "bad/cut.kofa": DATA, "-": OPTION,
}  # fmt: skip


def odd_tables(bad: Sequence[str]) -> Iterator[Fault]:
    """Options --view that name what is no table for the view rna."""
    for file in ("no.csv", "sub", "pipe.csv", "loop.csv", "/dev/null", "/dev/zero", "/dev/stdin",
                 "dangling.csv", "/", ".", "model.kofa", "study.toml", "y" * 5000):  # fmt: skip
        yield Fault(("-v", f"rna={file}"), DATA)
    for name in ODD_NAMES:
        yield Fault(("-v", f"rna={name}.csv"), DATA)
        yield Fault(("-v", f"{name}=rna.csv"), ANY)
        yield Fault(("-v", f"rna=rna.csv:{name}"), DATA)
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
        yield Fault(("-v", f"rna=rna.csv{part}"), ANY)
    for part in (":g0:gaussian", ":g0:real:more", ":g0:REAL", ":g0:²"):
        yield Fault(("-v", f"rna=rna.csv{part}"), OPTION)
    for text in ("", "=", "x", "x=", "=rna.csv", "\x1b", "²"):
        yield Fault(("-v", text), OPTION)
    for file in bad:
        yield Fault(("-v", f"rna=bad/{file}"), OK | DATA)


READING = [
    *faults("--index", DATA, "²", "--5", "9" * 5000, "99", "-99", "x", "", "\x1b[31m", "1.5", " "),
    *faults("--index", OK | DATA, "0", "1", "-1", "id", "false", "None", "00"),
    *faults("--sep", OPTION, "", "ab", '"', "\n", "\r", "1", "e", "\x1b[", "²", "é", "-"),
    *faults("--sep", OK | DATA, ";", "tab", "\\t", "|", " ", "\U0001f600", ",", "'"),
    *faults("--decimal", OPTION, "", "ab", "1", "e", "\n", '"', "-", "+", " "),
    *faults("--decimal", OK | DATA, ",", "·", "'", "\U0001f600"),
    *faults("--missing", OK | DATA, "", "?", "1", "\x1b", "\n", "x" * 5000),
    *faults("--encoding", OPTION, "undefined", "hex", "rot13", "nope", "", "base64", "a" * 5000,
            "\x1b[31m", "../..", "²", "zlib"),
    *faults("--encoding", OK | DATA, "utf-16", "utf-32", "cp037", "ascii", "latin-1", "UTF_8",
            "utf-7", "unicode_escape", "raw_unicode_escape", "punycode", "utf-8-sig", "shift_jis",
            "utf_16_le", "hz", "idna", "iso2022_jp"),
]  # fmt: skip
MODELLING = [
    *(fault for option in ("--n-factors", "--n-init", "--max-iter", "--random-state")
      for fault in faults(option, OPTION, *WHOLE)),
    *faults("--n-factors", ANY, "0", "1", "99999999999999999999", "１", " 3 ", "1_0"),
    *faults("--random-state", ANY, "0", "99999999999999999999999", str(2**64), "1_0"),
    *faults("--max-iter", OK, "1", "2"),
    *faults("--tol", ANY, "nan", "inf", "1e400", "1e-400", "0", "1e308"),
    *faults("--tol", OPTION, "-1", "x", "", "²", "1,5", "--"),
    *faults("--checkpoint-every", ANY, "nan", "inf", "1e-300", "0"),
    *faults("--checkpoint-every", OPTION, "-1", "x", ""),
    *faults("--kernel", OPTION, "", "rna", "=rbf", "rna=", "rna=rbff", "rna=,,", "nope=rbf",
            "stage=rbf", "rna=rbf,nope", "\x1b=rbf", "rna=²", "rna=RBF"),
    *faults("--kernel", OK | DATA, "rna=rbf", "rna=rbf,linear", "rna=bank", "rna=rbf,rbf",
            "rna=polynomial", "rna=laplacian"),
    *faults("--outputs", OPTION, "", "nope", "\x1b[31m", "²"),
    *faults("--outputs", OK | DATA, "stage", "rna", "protein"),
    *(Fault((f"--checkpoint={place}",), codes) for place, codes in {
        **MODEL_PLACES, "model.kofa": DATA, "old.checkpoint": OK, "-": OK,
      }.items()),
    Fault(("--checkpoint=old.checkpoint", "--resume"), DATA),
    Fault(("--checkpoint=bad/cut.checkpoint", "--resume"), DATA),
    Fault(("--checkpoint=bad/flipped.checkpoint", "--resume"), DATA),
    Fault(("--resume",), OK),
    Fault(("--resume", "--resume"), OK),
]  # fmt: skip
PREDICTING = [
    *faults("--target", OPTION, "", "nope", "\x1b[31m", "²", "y" * 5000),
    *faults("--target", ANY, "protein", "stage", "sick"),
    *faults("--quantiles", ANY, "", ",", ".05,.95", ".5,.5", "1e-300", "0.9999999999999999"),
    *faults("--quantiles", OPTION, "0", "1", "nan", "x", "²", "-1", "inf", ".5;.6", "\x1b"),
    Fault(("--proba",), OK | DATA),
    Fault(("--std",), OK | DATA),
    Fault(("--proba", "--std", "--quantiles", ".5"), OK | DATA),
    Fault(("--target", "sick", "--proba"), DATA),
]
ANYWHERE = [
    Fault(("--nothing",), OPTION), Fault(("--nothing=1",), OPTION), Fault(("-z",), OPTION),
    Fault(("-\x1b",), OPTION), Fault(("--=",), OPTION), Fault(("--quiet=1",), OPTION),
    Fault(("extra1", "extra2", "extra3"), OPTION), Fault(("--", "--x", "--y", "--z"), OPTION),
    Fault(("--quiet",), OK), Fault(("-q", "-q"), OK), Fault(("--help",), OK),
    Fault(("--\udcff",), OPTION), Fault(("-vvv",), ANY),
]  # fmt: skip
# ---------------------------------------------------------------- commands


class Made(NamedTuple):
    """A command and the codes it may end with."""

    command: list[str]
    codes: frozenset[int]
    stopped: bool = False  # the user presses Ctrl-C
    nobody: bool = False  # the user may read files, but not write or read those of others


def one_mark_for_two(arguments: Sequence[str]) -> bool:
    """Whether --sep is --decimal too, which no table can be read with; the last of each counts."""
    last = dict(argument.split("=", 1) for argument in arguments if "=" in argument)
    return "--sep" in last and last["--sep"] == last.get("--decimal")


class Maker:
    """Draws commands, and the files that they need."""

    def __init__(self, rng: np.random.Generator, bad: Sequence[str]) -> None:
        self.rng, self.tables = rng, list(odd_tables(bad))
        self.models = [name for name in bad if name.endswith(".kofa")]

    def pick(self, some: Sequence[Any]) -> Any:
        return some[int(self.rng.integers(len(some)))]

    def with_faults(self, base: list[str], codes: frozenset[int], pool: Sequence[Fault]) -> Made:
        """A good command with one to three things wrong."""
        many = self.pick((1, 1, 1, 2, 3))
        chosen = [self.pick(pool) for _ in range(many)]
        arguments = [one for fault in chosen for one in fault.arguments]
        counts = list({fault.option: fault for fault in chosen}.values())
        failing = [fault.codes for fault in counts if 0 not in fault.codes]
        if not failing:
            codes = codes.union(*(fault.codes for fault in counts))
        elif len(counts) == 1:
            codes = failing[0]
        else:  # which is found first does not matter
            codes = frozenset().union(*(fault.codes for fault in counts)) - OK
        if one_mark_for_two(arguments):
            codes = codes - OK | OPTION
        return [*base, *arguments], self.with_help(arguments, codes)

    def with_help(self, arguments: Sequence[str], codes: frozenset[int]) -> frozenset[int]:
        return codes | OK if "--help" in arguments else codes

    def fit(self) -> Made:
        base = ["fit", "-v", "protein=protein.csv", "--max-iter", "2", "-o", "out.kofa"]
        pool = self.pick((MODELLING, READING, self.tables, self.tables, ANYWHERE))
        if pool is MODELLING:
            return self.with_faults(["fit", "study.toml", *base[3:]], OK, pool)
        if pool is READING:
            return self.with_faults([*base, "-v", "rna=rna.csv"], OK | DATA, pool)
        command, codes = self.with_faults(base, OK | DATA, pool)
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
        name = self.pick(("mutated.kofa", f"bad/{self.pick(self.models)}", "rna.csv", "rna.npz"))
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
            return self.with_faults(["predict", "model.kofa", "-v", "rna=rna.csv", "-o", "out.csv"],
                                OK | DATA, pool)  # fmt: skip
        if pool is self.tables:
            made, codes = self.with_faults(base, OK | DATA, pool)
            return made, codes | OPTION | (OK if made.count("-v") > 1 else frozenset())
        return self.with_faults([*base, "-v", "rna=rna.csv"], OK | DATA, pool)

    def apply_to(self) -> Made:
        place, codes = self.pick(list(PLACES.items()))
        command = self.pick(("transform", "predict"))
        model = "model.csv" if place == "model.csv" else "model.kofa"
        study = ["--study", "study.toml"] if place == "study.toml" else []
        return [command, model, "-v", "rna=rna.csv", *study, f"--out={place}"], codes

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
            "--out",
            place,
            "--format",
            form,
        ], allowed

    def ask(self) -> Made:
        """Tables of what a model found."""
        base, codes = self.pick(faulty_tables.TABLES)
        draw = self.rng.random()
        if draw < 0.2:
            return base, codes
        if base[0] == "weights" and draw < 0.5:
            view = self.pick((None, *faulty_tables.VIEWS))
            if view is not None:
                return ["weights", "model.kofa", view], OPTION
            return self.with_faults(base, codes, faulty_tables.OF_WEIGHTS)
        if base[0] == "associate" and draw < 0.5:
            place, wrong = self.pick(list(faulty_tables.COVARIATES.items()))
            return ["associate", "model.kofa", place], wrong
        pool = faulty_tables.OF_TABLES if draw < 0.9 else ANYWHERE[:-1]
        fault = self.pick(pool)
        failing = 0 not in codes
        if 0 not in fault.codes and failing:
            codes = codes | fault.codes  # which is found first does not matter
        elif 0 not in fault.codes:
            codes = fault.codes
        else:
            codes = codes | (fault.codes - OK if failing else fault.codes)
        return [*base, *fault.arguments], self.with_help(fault.arguments, codes)

    def evaluate(self) -> Made:
        if self.rng.random() < 0.2:
            studies, codes = self.pick(list(faulty_tables.STUDIES.items()))
            return ["compare", *studies.split(), "--cv", "2"], codes
        fault = self.pick(faulty_tables.EVALUATING)
        return ["evaluate", "study.toml", "--max-iter", "2", *fault.arguments], fault.codes

    def picture(self) -> Made:
        base, codes = self.pick(faulty_tables.PICTURES)
        place, wrong = self.pick(list(faulty_tables.PICTURE_PLACES.items()))
        if 0 not in wrong:
            codes = wrong if 0 in codes else codes | wrong
        return ["plot", *base, "-o", place], codes

    def check(self) -> Made:
        made, codes = self.fit_study()
        return ["check", made[1]], codes

    def names(self) -> Made:
        """A model whose views have odd names."""
        pair = ["odd.kofa", "-v", "a/b=rna.csv", "-v", "a_b=protein.csv"]
        return self.pick((
            (["info", "odd.kofa"], OK),
            (["impute", *pair, "-v", "\x1b[31m=rna.csv", "--out", "filled"], OK),
            (["predict", *pair, "-t", "\x1b[31m", "-o", "out.csv"], OK),
            (["predict", *pair, "-o", "out.csv"], OPTION),
            (["transform", "odd.kofa", "-v", "ab=rna.csv"], OPTION),
        ))  # fmt: skip

    def init(self) -> Made:
        folder, codes = self.pick([
            ("bad", OK), (".", DATA), ("no", DATA), ("rna.csv", DATA), ("loop.csv", DATA),
            ("", OPTION), ("/dev/null", DATA), ("/proc/self/fd", DATA), ("sub", DATA), ("odd", OK),
            ("\x1b[31m", DATA), ("pipe.csv", DATA), ("y" * 300, DATA),
        ])  # fmt: skip
        return self.with_faults_or_plain(["init", folder], codes)

    def demo(self) -> Made:
        folder, codes = self.pick([
            ("rna.csv", DATA), (".", DATA), ("no/a", DATA), ("loop.csv", DATA), ("", OPTION),
            ("/proc/x", DATA), ("\x1b[31m", OK), ("y" * 300, DATA), ("pipe.csv", DATA),
            ("wine", OK), ("/dev/null", DATA), ("dangling.csv", DATA),
        ])  # fmt: skip
        return self.with_faults_or_plain(["demo", folder], codes)

    def with_faults_or_plain(self, base: list[str], codes: frozenset[int]) -> Made:
        if self.rng.random() < 0.8:
            return base, codes
        fault = self.pick(ANYWHERE[:-1])
        return [*base, *fault.arguments], self.with_help(fault.arguments, codes | fault.codes)

    def rest(self) -> Made:
        return self.pick([
            ([], OPTION), (["nope"], OPTION),
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
            ["init", "bad"],
            ["demo", "wine"],
            ["evaluate", "study.toml", "--max-iter", "5", "--cv", "2", "-o", "out.csv"],
            ["weights", "model.kofa", "-o", "out.parquet"],
            ["plot", "bound", "model.kofa", "-o", "out.png"],
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
            self.ask, self.ask, self.ask, self.evaluate, self.picture, self.check,
            *([self.rights] if os.name == "posix" and os.geteuid() == 0 else []),
        ]  # fmt: skip
        return Made(*self.pick(makers)())
