"""The sections of the options: fields, types, checks, and their part of the ServiceSpec."""
