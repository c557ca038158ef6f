"""From solutions to estimates: intervals, checks, verdicts, outer bands, and what a report draws."""
