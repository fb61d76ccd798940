"""The options and the code of a job: read, packed and checked."""
