#!/bin/sh
# Puts Debian's promtool into build/promtool/ where there is none: unpacked, so that no server is installed.
set -u
folder=build/promtool
if command -v promtool >/dev/null 2>&1 || [ -x "$folder/usr/bin/promtool" ]; then
    exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
    echo "promtool is not installed and this is no Debian: the tests of the alert rules will be skipped" >&2
    exit 0
fi
mkdir -p "$folder" && cd "$folder" || exit 0
# Without the lists of packages there is nothing to download; fetching them needs to be root.
apt-get download -qq prometheus >/dev/null 2>&1 || { apt-get update -qq && apt-get download -qq prometheus; } >/dev/null 2>&1
if dpkg-deb --extract prometheus_*.deb . 2>/dev/null; then
    find . -type f ! -name promtool -delete
else
    echo "promtool could not be had: the tests of the alert rules will be skipped" >&2
fi
