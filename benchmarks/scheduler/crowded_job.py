"""The job of ``held_up``: it steps, keeps where it is, and says each step once, whatever kills it.

Its folder is the argument. ``NAME.step`` holds its process and the step that is next, ``NAME.log``
a line for each step.
"""

import os
import sys
import time

name = os.path.join(sys.argv[1], os.environ["TASK_NAME"])
try:
    with open(name + ".step") as file:
        step = int(file.read().split()[1])
except FileNotFoundError:
    step = 0
print("begin at step", step, flush=True)
while not os.path.exists(os.path.join(sys.argv[1], "finish")):
    sum(number * number for number in range(20_000))
    with open(name + ".log", "a") as log:
        log.write(f"{step}\n")
    step += 1
    with open(name + ".new", "w") as file:
        file.write(f"{os.getpid()} {step}")
    os.replace(name + ".new", name + ".step")
    if step % 100 == 0:
        print("step", step, flush=True)
    time.sleep(0.01)
