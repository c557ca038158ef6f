"""What the reference makes of docstrings: references become links, and examples stand before the arguments.

An extension of griffe, which reads the code for mkdocstrings (``mkdocs.yml``). ``:func:`mixope.read` `` becomes a link
if a page of the reference has that name, and is set as code otherwise; with ``~`` only its last part is shown.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_ROLE = re.compile(r":(?:attr|class|data|func|meth|mod):`(?P<short>~?)(?P<name>[\w.]+)`")
_FIELD = re.compile(r":(?:param|returns?|raises)\b")


def linked(text: str, owner: str) -> str:
    """The text with its references as optional links; a bare name (``to_json``) belongs to ``owner``."""

    def link(match: re.Match[str]) -> str:
        name = match["name"]
        shown = name.rpartition(".")[2] if match["short"] else name
        target = name if name.startswith("mixope") else f"{owner}.{name}"
        return f'<autoref optional identifier="{target}"><code>{shown}</code></autoref>'

    return _ROLE.sub(link, text)


def in_order(text: str) -> str:
    """Prose, then examples as code, then the list of arguments, whose parser takes all that follows it as its own."""
    paragraphs = re.split(r"\n\n+", text)
    fields = [part for part in paragraphs if _FIELD.match(part)]
    examples = [f"```pycon\n{part}\n```" for part in paragraphs if part.startswith(">>>")]
    prose = [part for part in paragraphs if not part.startswith(">>>") and not _FIELD.match(part)]
    return "\n\n".join([*prose, *examples, *fields])


class Roles(griffe.Extension):
    """Applies both to every docstring."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """A module, class, function or attribute was read."""
        if obj.docstring is not None:
            owner = obj if isinstance(obj, griffe.Class | griffe.Module) else obj.parent
            text = linked(obj.docstring.value, owner.path if owner is not None else obj.path)
            obj.docstring.value = in_order(text)
