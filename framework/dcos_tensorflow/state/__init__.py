"""The state store: one interface; ZooKeeper and SQLite behind it."""
