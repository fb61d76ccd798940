"""What of the state is kept in the store, in which form, and how it is read back."""
