"""Copies a task's output to S3 or CloudWatch Logs while it runs, beside the sandbox's files.

``spool`` takes the output to the disk in parts, ``shipper`` sends the parts through a sink. The
task's process never waits for any of it but for the disk.
"""
