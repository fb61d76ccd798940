"""Marathon: the apps, their tasks, and a framework of Mesos that runs them."""
