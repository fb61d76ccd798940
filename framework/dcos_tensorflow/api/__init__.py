"""The HTTP API: the DC/OS SDK's paths, bodies and status codes, and more beside them.

``app.create_app`` makes the ASGI application, ``server.ApiServer`` serves it in a thread. Every
answer is a pure view of the current ``core.model.service_state.ServiceState``; verbs become events
for the one thread that owns the state. Nothing here decides anything (docs/api.md).
"""
