"""The job's tf.data service inside its tasks: the servers, and the way to the dispatcher."""
