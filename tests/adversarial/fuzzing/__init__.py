"""A fuzzer: inputs drawn at random, each an answer with its invariants or an error with words, and nothing else.

    python -m tests.adversarial.fuzzing --inputs 1000000 --seed 0 --jobs 2

``cases.py`` draws an input from (seed, number); it is a small record that JSON can hold, so that an input that failed
can be kept as a file. ``logs.py``, ``faults.py``, ``policies.py``, ``questions.py`` and ``mutations.py`` say what is
drawn, ``judging.py`` carries an input out and says what is wrong with the outcome, ``running.py`` shares many inputs
among worker processes and survives their crashes, ``corpus.py`` keeps what failed.
"""
