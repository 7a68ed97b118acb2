"""One HTML file of all that a report says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from kofa.checks import check_path
from kofa.files import check_folder, write_text
from kofa.report import encoding, repeat
from kofa.report.advice import Advice
from kofa.report.content import Content, content_of
from kofa.report.panels import as_content
from kofa.report.summary import counted

_LONGEST = 80  # names of views in a title
_SCRIPTS = ("data.js", "table.js", "pictures.js", "panel.js", "scatter.js", "page.js")


def write_report(model: Any, path: str | PathLike[str], **given: Any) -> None:
    """Write the report of a model; the file appears whole, or not at all."""
    check_path(path)
    check_folder(Path(path))
    write_text(Path(path), report_page(model, **given))


def report_page(
    model: Any, *, title: str | None = None, about: Mapping[str, str] | None = None, **given: Any
) -> str:
    """The page as text.

    `given` is what `content_of` takes besides the model; `about` what else to say of it.
    """
    check_is_fitted(model)
    page = _template()  # an extra that is missing is known before any work is done
    return _rendered(page, model, content_of(model, **given), title, about or {})


def _rendered(
    page: Any, model: Any, content: Content, title: str | None, about: Mapping[str, str]
) -> str:
    panels = [*content.views, *(panel for part in content.sections for panel in part.panels)]
    found = {
        "panels": {panel.name: as_content(panel) for panel in panels},
        "samples": content.samples,
    }
    settings = {name: repeat.in_python(value) for name, value in repeat.settings(model).items()}
    text: str = page.render(
        title=encoding.name(title or _title(model)),
        content=_visible(content),
        data=encoding.as_json(found),
        settings=settings,
        versions={**about, **repeat.versions()},
        code=repeat.code(model),
        style=_own("report.css"),
        plotly=_file("vendor", "plotly-cartesian.min.js"),
        scripts="\n".join(_own(name) for name in _SCRIPTS),
    )
    return text


def _visible(content: Content) -> Content:
    """With sentences of which no sign is hidden."""
    said = [encoding.name(one) for one in content.sentences]
    warned = [Advice(encoding.name(one.what), one.cure) for one in content.advice]
    return replace(content, sentences=said, advice=warned)


def _title(model: Any) -> str:
    """What the model is of."""
    fitted = model._fitted
    inputs = _listed([name for name in fitted.sources if name not in fitted.outputs])
    return f"{_listed(fitted.outputs)} from {inputs}" if fitted.outputs else f"Factors of {inputs}"


def _listed(views: Sequence[str]) -> str:
    """The names of views, or how many there are."""
    text = ", ".join(views)
    return text if len(text) <= _LONGEST or len(views) == 1 else counted(len(views), "view")


@cache
def _file(*path: str) -> str:
    return files("kofa.report").joinpath(*path).read_text(encoding="utf-8")


def _own(name: str) -> str:
    return _file("templates", name)


def _template() -> Any:
    """The template of the page, in which all names are escaped."""
    try:
        import jinja2
    except ImportError as error:
        raise ImportError(
            "Reports need jinja2: install it with pip install 'kofa[report]'."
        ) from error
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    return environment.from_string(_own("report.html"))
