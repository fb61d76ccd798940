"""The stored part of the state: its form in the store, and how it is read back."""
