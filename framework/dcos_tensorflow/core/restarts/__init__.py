"""Tasks that restart when a member is lost or changed, and the way of a restart."""
