"""One page per experiment: the picture, what it says, the table, and where it comes from; nothing outside it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from mixope.base.files import write_whole
from mixope.paper.experiment import Cell, Exhibit, Row

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{ experiment.title }}</title>
<style>
html { background: #ffffff; }
body { margin: 0; }
@media screen and (prefers-color-scheme: dark) { html { background: #14181b; } }
{{ css }}
.mixope figure.picture { max-width: none; background: #ffffff; padding: .5rem; overflow-x: auto; }
.mixope figure.picture svg { min-width: 44rem; max-width: none !important; }
.mixope figure.picture svg text { stroke: none; }
</style>
</head>
<body>
<main class="mixope">
<header><h1 class="headline">{{ experiment.title }}</h1><p>{{ experiment.caption }}</p></header>
{% if picture %}
<figure class="picture" tabindex="0">{{ picture }}</figure>
{% endif %}
<section><h2 class="section-title">The numbers</h2>
<div class="scroll" tabindex="0"><table>
<thead><tr>
{% for name in names %}
<th scope="col"{% if name in numbers %} class="number"{% endif %}>{{ name }}</th>
{% endfor %}
</tr></thead>
<tbody>
{% for row in rows %}
<tr>
{% for name in names %}
<td{% if name in numbers %} class="number"{% endif %}>{{ word(row[name]) }}</td>
{% endfor %}
</tr>
{% endfor %}
</tbody></table></div></section>
<section><h2 class="section-title">Where this comes from</h2>
<dl>{% for name, value in described.items() %}<dt>{{ name }}</dt><dd>{{ value }}</dd>{% endfor %}</dl></section>
</main>
</body>
</html>
"""


def write_page(
    experiment: Exhibit, rows: Sequence[Row], described: Mapping[str, Any], picture: str | None, path: Path
) -> Path:
    """The page as a file; words are escaped, the drawing is ours."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    from mixope.report.svg import inline

    names = list(dict.fromkeys(name for row in rows for name in row))
    drawn = None if picture is None else Markup(inline(picture, name=experiment.name, says=experiment.title))
    made = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    css = files("mixope.report").joinpath("templates", "report.css").read_text(encoding="utf-8")
    page = made.from_string(_PAGE).render(
        experiment=experiment,
        picture=drawn,
        css=Markup(css),
        names=names,
        numbers={name for row in rows for name, value in row.items() if isinstance(value, (int, float))},
        rows=[{name: row.get(name) for name in names} for row in rows],
        described={name: _said(value) for name, value in described.items() if value is not None},
        word=word,
    )
    return write_whole(path, page.encode())


def _said(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else str(value)


def word(value: Cell) -> str:
    """A cell as it is read."""
    if value is None:
        return "–"
    return f"{value:.4g}".replace("-", "−") if isinstance(value, float) else str(value)
