"""Distributed TensorFlow on Apache Mesos and DC/OS from one options JSON."""

__version__ = "0.1.0"
