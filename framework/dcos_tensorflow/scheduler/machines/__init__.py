"""Machines that are bought for a service, or for an operator: the loops beside the event loop."""
