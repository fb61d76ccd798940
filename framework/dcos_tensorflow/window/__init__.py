"""One page for all services of this machine, or of a state store, the finished ones among them.

A process of its own serves it, so that the page outlives each job; ``dcos-tensorflow open`` starts
it and opens it. It shows the dashboard of each service (``api.dashboard``): the window passes its
requests on to the scheduler while one serves the service, and answers from the service's folder
after that. It decides nothing, and keeps nothing but the sessions of browsers, in memory.
"""
