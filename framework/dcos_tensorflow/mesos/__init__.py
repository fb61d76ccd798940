"""The Mesos side: the hardened pymesos driver, wire format <-> core types, master detection."""
