"""What rooms side by side share of the network: where ZooKeeper is, how HTTP is served, who asks.

``mesos`` and ``state`` both read addresses of ZooKeeper, ``api`` and ``local`` both serve an ASGI
application, and ``local`` asks whose process has connected to it. Nothing here knows what is kept,
announced or answered there.
"""
