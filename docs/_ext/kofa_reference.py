"""Directives for what is documented in code but not in docstrings of public names.

``kofa-commands``      each command of `kofa`, with its arguments and options
``kofa-study-options`` each key of a study.toml
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

from docutils import nodes
from numpydoc.docscrape import ClassDoc
from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

HEADS = ("Key", "Value", "Meaning")
MARKUP = re.compile(r"\[/?(?:bold|dim|italic|/)?\]")


def table(rows: Iterable[Sequence[str]], heads: Sequence[str]) -> str:
    """A table in reStructuredText; cells are lines."""
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for first, *others in (heads, *rows):
        lines += [f"   * - {first}", *(f"     - {cell}" for cell in others)]
    return "\n".join(lines) + "\n\n"


def title(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}\n\n"


def literal(text: str) -> str:
    return "::\n\n" + "".join(f"    {line}".rstrip() + "\n" for line in text.splitlines()) + "\n"


# ---------------------------------------------------------------- commands


def commands() -> str:
    """A section for each command."""
    import typer

    from kofa.cli.app import app

    group: Any = typer.main.get_command(app)
    return "".join(_command(name, command) for name, command in group.commands.items())


def _command(name: str, command: Any) -> str:
    first, _, rest = MARKUP.sub("", command.help or "").partition("\n\n")
    text = f".. _command-{name}:\n\n{title(f'kofa {name}', '-')}{' '.join(first.split())}\n\n"
    text += literal(_usage(name, command))
    text += _explained(rest)
    for panel, group in _panels(command.params).items():
        text += f"*{panel}*\n\n" + table(group, (panel.removesuffix("s"), "Meaning"))
    return text


def _explained(text: str) -> str:
    """Paragraphs of a help as text, and commands in it, one below the other, as code."""
    parts: list[tuple[bool, str]] = []
    for paragraph in filter(None, (part.strip() for part in text.split("\n\n"))):
        command = paragraph.startswith("kofa ")
        if command and parts and parts[-1][0]:
            parts[-1] = (True, f"{parts[-1][1]}\n{paragraph}")
        else:
            parts.append((command, paragraph))
    return "".join(literal(part) if command else f"{_plain(part)}\n\n" for command, part in parts)


def _plain(text: str) -> str:
    """Words of a help, in which * and : have no meaning."""
    return re.sub(r":(?=\S)", r"\\:", text.replace("*", r"\*").replace("|", r"\|"))


def _usage(name: str, command: Any) -> str:
    arguments = [p for p in command.params if _is_argument(p)]
    words = [p.metavar or p.name.upper() for p in arguments]
    shown = [w if p.required else f"[{w}]" for p, w in zip(arguments, words, strict=True)]
    return " ".join(["kofa", name, "[OPTIONS]", *shown])


def _is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


def _panels(parameters: Iterable[Any]) -> dict[str, list[tuple[str, str]]]:
    """Names and meanings of parameters, by the panel of the help in which they stand."""
    panels: dict[str, list[tuple[str, str]]] = {}
    for one in sorted(parameters, key=_is_argument, reverse=True):
        if getattr(one, "hidden", False):
            continue
        default = "Arguments" if _is_argument(one) else "Options"
        panel = getattr(one, "rich_help_panel", None) or default
        panels.setdefault(panel, []).append((_names(one), _meaning(one)))
    return panels


def _names(parameter: Any) -> str:
    if _is_argument(parameter):
        return f"``{parameter.metavar or parameter.name.upper()}``"
    names = ", ".join(f"``{name}``" for name in (*parameter.opts, *parameter.secondary_opts))
    return f"{names} ``{parameter.metavar}``" if parameter.metavar else names


def _meaning(parameter: Any) -> str:
    text = _plain(MARKUP.sub("", parameter.help or ""))
    default = parameter.default
    if isinstance(default, str | int | float) and not isinstance(default, bool) and default != "":
        text += f" Default: ``{default}``."
    return text


# ---------------------------------------------------------------- study.toml


def study_options() -> str:
    """The keys of each table of a study.toml, from the docstrings of what they go to."""
    from kofa.cli.plan import KINDS, MODEL_KEYS, READING_CHECKS
    from kofa.files import Reading
    from kofa.model import FactorModel

    text = title("[model]", "-") + "What goes to `kofa.FactorModel`.\n\n"
    text += _keys(FactorModel, MODEL_KEYS)
    text += title("[read], and any view", "-")
    text += "How tables are read: under ``[read]`` for all views, or in a view for itself.\n\n"
    text += _keys(Reading, READING_CHECKS)
    text += title("[views.NAME]", "-")
    file = (
        "``file``",
        "str",
        "The file of its table, from the folder of the study. Required.",
    )
    kind = ("``kind``", "str", f"One of {', '.join(KINDS)}. The default is real.")
    text += table([file, kind], HEADS)
    for name, view in KINDS.items():
        text += title(f"[views.NAME] with kind = {name}", "~")
        text += f"What goes to `kofa.{view.__name__}`.\n\n"
        text += _keys(view, [one.name for one in fields(view) if one.init])
    return text


def _keys(cls: type, names: Iterable[str]) -> str:
    """A table of some parameters of a class, as its docstring describes them."""
    described = {}
    for one in ClassDoc(cls)["Parameters"]:
        for name in one.name.split(","):
            described[name.strip()] = (one.type, " ".join(one.desc))
    rows = [(f"``{name}``", *described[name]) for name in names]
    return table(rows, HEADS) if rows else "It has no other keys.\n\n"


# ---------------------------------------------------------------- Sphinx


class Generated(SphinxDirective):
    """Text in reStructuredText that a function makes."""

    def run(self) -> list[nodes.Node]:
        text = SOURCES[self.name]()
        return self.parse_text_to_nodes(text, allow_section_headings=True)


SOURCES = {"kofa-commands": commands, "kofa-study-options": study_options}


def plain_bars(_: Sphinx, what: str, name: str, one: Any, options: Any, lines: list[str]) -> None:
    """|x| in a docstring is an absolute value, and no substitution."""
    del what, name, one, options
    for number, line in enumerate(lines):
        parts = line.split("``")
        parts[::2] = [part.replace("|", "\\|") for part in parts[::2]]
        if not line.lstrip().startswith((">>>", "...")):
            lines[number] = "``".join(parts)


def setup(app: Sphinx) -> dict[str, bool]:
    for name in SOURCES:
        app.add_directive(name, Generated)
    app.connect("autodoc-process-docstring", plain_bars, priority=100)  # before numpydoc
    app.add_lexer("walk", TextLexer)  # calls of functions, in architecture.md
    return {"parallel_read_safe": True}
