"""Calls of schedulers and operators over HTTP: checked, carried out, and answered. Pure."""
