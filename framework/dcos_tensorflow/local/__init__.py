"""The embedded cluster: a Mesos-compatible master and agents on one machine."""
