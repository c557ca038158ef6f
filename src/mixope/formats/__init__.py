"""Formats of other tools: tables of lakes and databases, data sets of robots and games, lines of bandits.

The core knows their marks and asks for their readers by name (:mod:`mixope.base.plugins`); nothing here is imported
before such logs are read. Each file says at its end what it reads, as a :class:`~mixope.logs.sources.formats.Format`.
"""
