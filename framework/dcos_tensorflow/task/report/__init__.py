"""The report of the task, and the HTTP interface that answers."""
