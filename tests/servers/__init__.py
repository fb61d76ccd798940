"""Servers that tests start for themselves: real ones where there are any."""
