"""Whether the links of the built site lead somewhere.

    python tests/links.py build/docs

Links within the site have to lead to a file, and to a place in it. Addresses of other sites are
asked for; where no site answers at all there is no network, and that is said in place of a result.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from html.parser import HTMLParser
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

FORBIDDEN = (401, 403, 405, 429)  # answers to programs, of pages that people can open
SECONDS = 20


class Page(HTMLParser):
    """The links of a page, and the places in it that links may lead to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del tag
        given = dict(attrs)
        self.links += [link for name in ("href", "src") if (link := given.get(name))]
        self.places |= {place for name in ("id", "name") if (place := given.get(name))}


def pages(site: Path) -> dict[Path, Page]:
    """All pages but the templates of the theme."""
    found = [path for path in sorted(site.resolve().rglob("*.html")) if "_static" not in path.parts]
    return {path: Page(path.read_text(encoding="utf-8")) for path in found}


def broken_inside(known: dict[Path, Page]) -> list[str]:
    """Links within the site that lead nowhere."""
    return [
        f"{path.name}: {link}"
        for path, page in known.items()
        for link in page.links
        if not urlsplit(link).scheme and not _leads_somewhere(path, link, known)
    ]


def _leads_somewhere(path: Path, link: str, known: dict[Path, Page]) -> bool:
    parts = urlsplit(link)
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    place = unquote(parts.fragment)
    in_page = target not in known or not place or place in known[target].places
    return target.exists() and in_page


def addresses(known: dict[Path, Page]) -> list[str]:
    """The addresses of other sites."""
    links = {link for page in known.values() for link in page.links}
    return sorted(link for link in links if urlsplit(link).scheme in ("http", "https"))


def answer(address: str) -> str | None:
    """What is wrong with an address: nothing, None where no site answers, or what it says."""
    request = Request(address, headers={"User-Agent": "Mozilla/5.0 (links of documentation)"})
    try:
        with urlopen(request, timeout=SECONDS):
            return ""
    except HTTPError as error:
        return "" if error.code in FORBIDDEN else f"{error.code} {error.reason}"
    except (URLError, OSError):
        return None


def broken_outside(
    asked: Iterable[str], ask: Callable[[str], str | None] = answer
) -> list[str] | None:
    """Addresses that do not work; None where no site answers, so that nothing is known."""
    answers = {address: ask(address) for address in asked}
    if answers and all(said is None for said in answers.values()):
        return None
    return [f"{address}: {said or 'no answer'}" for address, said in answers.items() if said != ""]


def main(site: Path) -> int:
    known = pages(site)
    if not known:
        print(f"there are no pages in {site}; run make docs")
        return 1
    inside, outside = broken_inside(known), addresses(known)
    print(f"{len(known)} pages: {len(inside)} broken links within the site", *inside, sep="\n  ")
    broken = broken_outside(outside)
    if broken is None:
        print(f"NOT CHECKED, as no other site answers here: {len(outside)} addresses", end="")
        print("", *outside, sep="\n  ")
        return int(bool(inside))
    print(f"{len(outside)} addresses of other sites: {len(broken)} broken", *broken, sep="\n  ")
    return int(bool(inside or broken))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
