"""The local DC/OS: what the real ``dcos`` CLI needs of a cluster, on loopback.

``daemon`` starts it beside an embedded cluster (or any Mesos master of this machine). Cosmos
(``cosmos``, ``service_changes``, ``uninstall``), Marathon (``marathon``), the views of Mesos and
the proxies stand behind one HTTP application (``http_application``).
"""
