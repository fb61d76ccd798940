"""The core's types in Mesos' JSON, and back."""
