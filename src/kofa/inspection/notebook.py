"""What notebooks show of a model: its views, and what the factors explain of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from kofa.inspection.variance import shares_by_factor
from kofa.kernels.mixture import kernel_name
from kofa.linalg import Array
from kofa.preparation.fitted import Fitted
from kofa.preparation.parameters import Parameters

MOST_FACTORS = 10  # columns of a table that is to be seen at a glance
STYLE = """
.kofa-model table {border-collapse: collapse; font-size: 0.9em; margin: 0.4em 0;}
.kofa-model th, .kofa-model td {padding: 0.15em 0.6em; text-align: right; border: none;
  background: none; white-space: nowrap;}
.kofa-model th {font-weight: 600; border-bottom: 1px solid currentColor;}
.kofa-model table td.text, .kofa-model table th.text {text-align: left;}
.kofa-model div {overflow-x: auto;}
"""


def as_html(parameters: Parameters, fitted: Fitted | None) -> str:
    """A model as HTML, whatever its views and factors are called."""
    state = "not fitted" if fitted is None else "fitted"
    said = _not_fitted(parameters) if fitted is None else _fitted(fitted)
    title = f"<b>FactorModel</b> ({state})"
    return f'<div class="kofa-model"><style>{STYLE}</style>{title}{said}</div>'


# ---------------------------------------------------------------- before a fit


def _not_fitted(parameters: Parameters) -> str:
    if not isinstance(parameters.views, Mapping):
        return "<p>Every table that is passed to fit is a view of real numbers.</p>"
    rows = [
        [_text(name), _text(_role(name in (parameters.outputs or ()))), _text(repr(view))]
        for name, view in parameters.views.items()
    ]
    return _table([_head("view"), _head("role"), _head("declared as")], rows)


def _role(output: bool) -> str:
    return "output" if output else ""


# ---------------------------------------------------------------- after a fit


def _fitted(fitted: Fitted) -> str:
    names = fitted.factor_names[:MOST_FACTORS]
    heads = [_head(name) for name in ("view", "role", "kind", "kernel")]
    heads += [_cell("th", name) for name in ("columns", "explained", *names)]
    shares = shares_by_factor(fitted.explained)
    rows = [_row(fitted, name, shares.get(name)) for name in fitted.views]
    more = fitted.n_factors - len(names)
    below = f"<p>{more} more {'factor' if more == 1 else 'factors'}</p>" if more > 0 else ""
    return f"<p>{_summary(fitted)}</p>{_table(heads, rows)}{below}"


def _summary(fitted: Fitted) -> str:
    many = f"{fitted.n_factors} {'factor' if fitted.n_factors == 1 else 'factors'}"
    of = "" if fitted.samples is None else f" of {len(fitted.samples.factors):,} samples"
    state = "converged" if fitted.converged else "not converged"
    bound = f"bound {fitted.bounds[-1]:,.6g}"
    return f"{many}{of}; {state} after {len(fitted.bounds)} iterations; {bound}"


def _row(fitted: Fitted, name: str, shares: Array | None) -> list[str]:
    view = fitted.views[name]
    kernel = kernel_name(fitted.kernels[name]) if name in fitted.kernels else "–"
    words = [name, _role(view.role.output), view.declared.lower(), kernel]
    cells = [*map(_text, words), _cell("td", f"{view.n_inputs:,}")]
    if shares is None:  # of models of kofa 0.1
        return [*cells, *[_cell("td", "–")] * (1 + min(fitted.n_factors, MOST_FACTORS))]
    return [*cells, *map(_share, [shares.sum(), *shares[:MOST_FACTORS]])]


def _share(share: float) -> str:
    """A share as a number, on a ground that is the darker the larger it is."""
    if share != share:  # nothing varies
        return _cell("td", "–")
    shade = min(max(share, 0.0), 1.0) * 0.6
    return _cell("td", f"{share:.0%}", f' style="background: rgba(0, 114, 178, {shade:.2f})"')


# ---------------------------------------------------------------- HTML


def _cell(tag: str, text: Any, more: str = "") -> str:
    return f"<{tag}{more}>{escape(str(text))}</{tag}>"


def _text(text: Any) -> str:
    return _cell("td", text, ' class="text"')


def _head(text: str) -> str:
    return _cell("th", text, ' class="text"')


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return (
        f"<div><table><thead><tr>{''.join(heads)}</tr></thead><tbody>{body}</tbody></table></div>"
    )
