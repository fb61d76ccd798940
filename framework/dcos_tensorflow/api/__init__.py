"""The HTTP API: the DC/OS SDK's routes, and more beside them."""
