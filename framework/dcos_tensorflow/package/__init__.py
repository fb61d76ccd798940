"""The DC/OS package: its files, their rules, and the Marathon app that a cluster makes of them.

``definition`` reads the files of ``universe/`` or a built repository, ``cosmos`` renders them as
DC/OS' package manager does, ``variables`` carries options through an app's environment,
``template`` writes the template's part that follows the options, ``rules`` are for the authors of
the package. Used by the command line, by the local DC/OS and by ``packaging/``. Nothing here talks
to a cluster.
"""
