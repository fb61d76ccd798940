"""Things in the making: states, turns, options and packages for tests that only look at one."""
