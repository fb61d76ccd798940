"""What is said of the task: what an end meant, and the HTTP interface that answers."""
