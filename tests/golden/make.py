"""Write the golden values: ``python -m tests.golden.make`` from the root of the repository.

``python -m tests.golden.make FILE`` writes every digit of every number there instead, so that two states of the code
can be compared to the last bit on one machine.
"""

import json
import sys
from pathlib import Path

PLACE = Path(__file__).with_name("golden.json")
DIGITS = {True: 15, False: 8}
"""Written of numbers that must agree to 1e-12, and of others."""


def written(cases, run):
    """One line per case; what checks say is kept once, and cases name its place."""
    table, lines = {}, {}
    for case in cases:
        numbers, words, scans = run(case)
        places = {name: table.setdefault(said, len(table)) for name, said in words.items()}
        kept = {name: float(f"%.{DIGITS[case.exact]}g" % value) for name, value in numbers.items() if case.keeps(name)}
        lines[case.name] = {"scans": list(scans), "words": places, "numbers": nested(kept)}
    rows = ",\n".join(f"{json.dumps(name, ensure_ascii=False)}: {compact(line)}" for name, line in lines.items())
    said = ",\n".join(json.dumps(words, ensure_ascii=False) for words in table)
    return f'{{"words": [\n{said}\n],\n"cases": {{\n{rows}\n}}}}\n'


def compact(line):
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"))


def nested(numbers):
    """By who they are of."""
    found = {}
    for (who, what), value in numbers.items():
        found.setdefault(who, {})[what] = value
    return found


def main(arguments):
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from golden.asking import cases

    if not arguments:
        PLACE.write_text(written(cases(), lambda case: case.run()), encoding="utf-8")
        return
    full = {case.name: case.run() for case in cases()}
    plain = {name: [nested(numbers), words, scans] for name, (numbers, words, scans) in full.items()}
    Path(arguments[0]).write_text(json.dumps(plain, ensure_ascii=False, indent=0), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
