"""What becomes of a gang when something happens to it: causes, incidents, restarts, sidecars."""
