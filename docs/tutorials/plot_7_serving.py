"""
Saving, loading, serving
========================

A fitted model is one file. It holds arrays and no code: loading a stranger's file runs nothing.
What it predicts is the same to the last digit, next year too, and for a sample alone as in a batch.
So a service needs nothing but the file.
"""

import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from tempfile import mkdtemp
from threading import Thread
from urllib.request import Request, urlopen

import numpy as np
from sklearn.datasets import load_wine

import kofa

wine = load_wine(as_frame=True)
data = {
    "minerals": wine.data.iloc[:, :5],
    "phenols": wine.data.iloc[:, 5:],
    "cultivar": wine.target.map({0: "Barolo", 1: "Grignolino", 2: "Barbera"}),
}
seen = {name: table.iloc[::2] for name, table in data.items()}
views = {"minerals": kofa.Real(), "phenols": kofa.Real(), "cultivar": kofa.Categorical()}
model = kofa.FactorModel(views, outputs=["cultivar"]).fit(seen)

# %%
# Saving
# ------
# The file is written whole or not at all. With ``samples=False`` it has neither the names nor the
# factors of the samples of the fit, which may be confidential.

path = Path(mkdtemp(), "wine.kofa")
model.save(path, samples=False)
print(f"{path.stat().st_size / 1024:.0f} KiB")

# %%
# Loading
# -------

loaded = kofa.load(path)
new = {name: data[name].iloc[1::2] for name in ("minerals", "phenols")}
same = loaded.predict_proba(new).equals(model.predict_proba(new))
print(f"the same probabilities to the last digit: {same}")

# %%
# Serving
# -------
# A service that answers with probabilities. It takes any of the views, and null for what is
# missing.


class Wines(BaseHTTPRequestHandler):
    """POST {"minerals": [[…], …], "phenols": [[…], …]} gives the probabilities of each row."""

    def do_POST(self):
        try:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            tables = {name: np.array(rows, dtype=float) for name, rows in asked.items()}
            found = loaded.predict_proba(tables)
            names = loaded.classes_["cultivar"].tolist()
            answer = [dict(zip(names, row, strict=True)) for row in found.tolist()]
            code = 200
        except (ValueError, TypeError) as error:  # kofa's errors are ValueErrors and name the cure
            code, answer = 400, {"error": str(error)}
        self.send_response(code)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_):
        """Say nothing."""


server = HTTPServer(("127.0.0.1", 0), Wines)
Thread(target=server.serve_forever, daemon=True).start()

# %%
# A client. The second wine lacks a measurement, and no wine needs its phenols.


def ask(**tables):
    """The answer of the service."""
    body = json.dumps(tables).encode()
    with urlopen(Request(f"http://127.0.0.1:{server.server_port}", body)) as answer:
        return json.load(answer)


for answer in ask(minerals=[[14.2, 1.7, 2.4, 15.6, 127.0], [12.4, None, 1.7, 17.0, 95.0]]):
    print({name: round(p, 2) for name, p in answer.items()})

# %%
server.shutdown()
server.server_close()
