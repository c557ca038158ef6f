"""Text in columns of fixed width: a line of names, and every value below its name."""

import numpy as np

from mixope.logs.provenance import hash_file
from mixope.logs.sources import outside
from mixope.logs.sources.arrays import table_of_arrays
from mixope.logs.sources.arrow import ArrowTable
from mixope.logs.sources.formats import Format
from mixope.logs.sources.stores import here


def open_fixed(paths, constants, store=None):
    """One piece per file."""
    for path in paths:
        place = here(path, store)
        with open(place, encoding="utf-8") as file:
            head, *lines = file.read().splitlines()
        starts = [i for i in range(len(head)) if head[i] != " " and (i == 0 or head[i - 1] == " ")]
        spans = list(zip(starts, [*starts[1:], None], strict=True))
        columns = {head[a:b].strip(): np.array([float(line[a:b]) for line in lines]) for a, b in spans}
        whole = {name: v.astype(int) if (v == v.astype(int)).all() else v for name, v in columns.items()}
        table = table_of_arrays(whole, path)
        yield ArrowTable(table, (path,), outside(constants, table.column_names), hash_file(place))


FORMAT = Format("fixed-width", (".fwf",), open_fixed)
