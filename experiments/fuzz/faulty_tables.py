"""Wrong ways to ask for tables, evaluations and pictures."""

from __future__ import annotations

from experiments.fuzz.faults import DATA, ODD_NAMES, OK, OPTION, WHOLE, Fault, faults

# Good commands, each with the codes that it may end with.
TABLES: list[tuple[list[str], frozenset[int]]] = [
    (["weights", "model.kofa"], OK),
    (["weights", "model.kofa", "rna", "--factor", "0"], OK),
    (["factors", "model.kofa"], OK),
    (["factors", "model.kofa", "--study", "study.toml"], OK | DATA),
    (["variance", "model.kofa", "--by", "view"], OK),
    (["variance", "model.kofa", "--by", "sample"], OPTION),
    (["variance", "model.kofa", "--by", "sample", "-v", "rna=rna.csv"], OK),
    (["relevance", "model.kofa"], OK),
    (["relevance", "model.kofa", "--by", "feature"], DATA),
    (["relevance", "model.kofa", "--by", "sample"], DATA),
    (["kernels", "model.kofa", "--outputs", "stage"], OK),
    (["associate", "model.kofa", "sick.csv"], OK),
    (["associate", "model.kofa", "stage.csv:stage"], OK),
    (["enrich", "model.kofa", "rna", "sets.gmt", "--min-size", "2"], OK),
    (["enrich", "model.kofa", "rna", "sets.gmt"], DATA),
    (["weights", "odd.kofa"], OK),
    (["variance", "odd.kofa"], OK),
    (["relevance", "odd.kofa"], OK),
]
OF_TABLES = [
    *(Fault(("--json", "-o", "out.csv"), OPTION) for _ in range(2)),
    Fault(("--json",), OK),
    Fault(("--json=1",), OPTION),
    Fault(("--output", "x"), OPTION),
    Fault(("-o", ""), OPTION),
    Fault(("-o", "x.docx"), DATA),
    Fault(("-o", "no/x.csv"), DATA),
    Fault(("-o", "model.kofa"), DATA),
    Fault(("-o", "out.json"), OK),
    Fault(("-o", "out.parquet"), OK),
    *(Fault(("-o", f"{name}.csv"), OK | DATA) for name in ODD_NAMES if "\n" not in name),
]
OF_WEIGHTS = [
    *faults("--n", OPTION, *WHOLE, "0"),
    *faults("--factor", OPTION, "99", "nope", "", "²", "\x1b[31m", "-1", "9" * 5000),
]
VIEWS = ["nope", "", "\x1b[31m", "²", "y" * 5000, "\udcff"]
COVARIATES = {
    "": OPTION, "nope.csv": DATA, "rna.csv:nope": DATA, "rna.csv:g0:g1": OPTION, "sub": DATA,
    "model.kofa": DATA, "pipe.csv": DATA, "/dev/null": DATA, "study.toml": DATA,
}  # fmt: skip
EVALUATING = [
    *faults("--cv", OPTION, *WHOLE, "0", "1"),
    *faults("--cv", DATA | OPTION, "99999999"),
    *faults("--scoring", OPTION, "r3", "", "\x1b[31m", "²", "r2"),
    *faults("--n-jobs", OPTION, "0", "x", "", "1.5"),
    *faults("--groups", OPTION, "rna.csv", "", "rna.csv:g0:g1"),
    *faults("--groups", DATA, "no.csv:a", "rna.csv:nope", "sub:x", "model.kofa:x"),
    *faults("--predictions", OPTION, "", "-", "x.json"),
    *faults("--predictions", DATA, "x.docx", "rna.csv", "no/x.csv"),
    *faults("--outputs", OPTION, "", "nope", "\x1b[31m"),
]
STUDIES = {
    "": OPTION, "study.toml study.toml": OPTION, "study.toml": OPTION, "study.toml no.toml": DATA,
    "study.toml rna.csv": DATA, "study.toml model.kofa": DATA,
}  # fmt: skip
PICTURES: list[tuple[list[str], frozenset[int]]] = [
    (["bound", "model.kofa"], OK),
    (["weights", "model.kofa", "rna"], OK),
    (["weights", "model.kofa"], OPTION),
    (["kernel", "model.kofa", "rna"], OPTION),
    (["calibration", "model.kofa"], DATA),
    (["compare", "rna.csv"], DATA),
    (["nope", "model.kofa"], OPTION),
    (["", "model.kofa"], OPTION),
    (["\x1b[31m", "model.kofa"], OPTION),
    (["bound", "no.kofa"], DATA),
    (["bound"], OPTION),
    (["factors", "model.kofa", "--colour", "nope"], OPTION),
    (["factors", "model.kofa", "--covariates", "stage.csv", "--colour", "nope"], OPTION),
    (["bound", "model.kofa", "--terms", "--image-shape", "²"], OPTION),
]
PICTURE_PLACES = {
    "": OPTION, "x": OPTION, "x.gif": OPTION, "-": OPTION, "no/x.png": DATA, "out.png": OK,
    "out.PDF": OK, "sub": OPTION, "y" * 300 + ".png": DATA, "\x1b[31m.svg": OK,
}  # fmt: skip
