"""Something wrong with a command: an option, and the codes that may follow."""

from __future__ import annotations

from dataclasses import dataclass

OK, DATA, OPTION, STOPPED = (frozenset({code}) for code in (0, 1, 2, 130))
ANY = OK | DATA | OPTION


@dataclass(frozen=True)
class Fault:
    """Something wrong: arguments that are added, and the codes a command may end with."""

    arguments: tuple[str, ...]
    codes: frozenset[int]

    @property
    def option(self) -> object:
        """The same for things of which the last one counts."""
        name = self.arguments[0].partition("=")[0]
        repeat = ("-v", "--missing", "--kernel", "--outputs", "--quiet", "--nothing", "--")
        return self if name in repeat else name


def faults(option: str, codes: frozenset[int], *values: str) -> list[Fault]:
    """An option with each of some values, which may look like options themselves."""
    long = option.startswith("--")
    return [Fault((f"{option}={v}",) if long else (option, v), codes) for v in values]


ODD_NAMES = ("\x1b[31mred\x1b[0m", "\x9b2J", "a\nb", "\u202egpj", "ü", "\udcff\udcfe", "y" * 300)
WHOLE = ("²", "x", "1.5", "1e3", "nan", "", "9" * 5000, "--5", "0x10", "-1", "\x1b[31m", "1 2")
