"""The Python that the job runs with: its packages, its environment, and the wrapper within it."""
