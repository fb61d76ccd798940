"""Views only: work in progress as plans, phases and steps, as the DC/OS SDK's users know it."""
