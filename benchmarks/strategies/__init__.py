"""Measures what each way to distribute a training costs: the table of ``docs/strategies.md``."""
