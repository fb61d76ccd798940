"""The sections of the options: fields, their types, their checks, and what becomes of them."""
