"""The paper's experiments: a file per kind of experiment, and what all of them share.

A figure or table is an :class:`~mixope.paper.experiment.Exhibit`: settings of three sizes (``smoke``, ``quick``,
``full``), a plan that turns settings and a seed into repetitions, and functions that sum the repetitions up and draw
the summary. A repetition is a frozen record of plain values (numbers and words) with two members of its own,
``measure() -> list[Row]``, which does the work from those values alone, and ``seconds``, what it costs on one core.

To add one: a file with a module-level ``EXPERIMENT``, and a line in ``REGISTRY`` of
:mod:`mixope.paper.experiment`. The rest is done for it:

    runner        repetitions in processes, one thread each; every one that is done is one line of NAME.jsonl, keyed by
                  a hash of its record: a rerun goes on where the last one stopped, and a changed setting is measured
                  afresh. Equal repetitions of several experiments in one folder are measured once
    reproduction  NAME.csv (the summary: the same bytes for the same seed, however it was run), NAME.json (settings,
                  seed, version, commit, seconds), NAME.png, NAME.svg and NAME.html, drawn from the CSV alone
"""
