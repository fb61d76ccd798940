"""Which task goes to which agent: offers as a table, rules, packing, and why a task fits nowhere.

Knows tasks and agents as numbers; knows no job, and remembers nothing.
"""
