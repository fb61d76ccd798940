"""What runs inside a task's container: the task runner. Standard library only, Python >= 3.8."""
