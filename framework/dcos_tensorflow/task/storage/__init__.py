"""Checkpoints, data and logs in S3: the files that must outlive the machine.

The runner makes a ``Publisher`` (chief only), a ``Restorer`` (before each start), a ``Mirror`` (log
directories) and fetches ``data``. Decisions are pure (``layout``, ``manifest``, ``errors``,
``task.checkpoints``); ``object_store`` alone talks to S3. docs/checkpoints.md tells the protocol.
Nothing here ever stops the training or writes a secret anywhere.
"""
