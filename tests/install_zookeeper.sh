#!/bin/sh
# Installs Debian's zookeeper (and with it Java) where it is missing and where we may.
set -u
if [ -e /usr/share/java/zookeeper.jar ] && command -v java >/dev/null 2>&1; then
    exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
    echo "zookeeper is not installed and this is no Debian: its tests will be skipped" >&2
    exit 0
fi
if [ "$(id -u)" = 0 ]; then
    root=""
elif sudo -n true >/dev/null 2>&1; then
    root="sudo -n"
else
    echo "zookeeper is not installed and we are not root: its tests will be skipped" >&2
    exit 0
fi
$root apt-get update -qq \
    && DEBIAN_FRONTEND=noninteractive $root apt-get install -y -qq --no-install-recommends \
        zookeeper default-jre-headless >/dev/null \
    || echo "zookeeper could not be installed: its tests will be skipped" >&2
