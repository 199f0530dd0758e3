#!/usr/bin/env bash
# Installs a Kerberos server, and what compiles the client's library, on a machine that has none.
set -euo pipefail
command -v krb5kdc > /dev/null && command -v krb5-config > /dev/null && command -v cc > /dev/null && exit 0
packages=(krb5-kdc krb5-admin-server libkrb5-dev gcc python3-dev)
if [ "$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then
    echo "install what the Debian packages ${packages[*]} have, or run as root where apt-get is"
    exit 1
fi
timeout 60 apt-get update -qq
DEBIAN_FRONTEND=noninteractive timeout 300 apt-get install -qq -y --no-install-recommends "${packages[@]}" > /dev/null
