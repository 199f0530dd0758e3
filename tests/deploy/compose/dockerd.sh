#!/usr/bin/env bash
# Starts a container engine for tests on a machine that has none: dockerd.sh up | down.
# `up` leaves a running engine alone; if none can be started it says why, and fails.
set -euo pipefail
state=${TMPDIR:-/tmp}/binwright-dockerd
fail() { echo "no container engine: $*"; exit 1; }

up() {
    if docker version > /dev/null 2>&1; then exit 0; fi
    [ "$(id -u)" = 0 ] || fail "none runs, and only root can start one"
    if ! command -v dockerd > /dev/null || ! command -v debootstrap > /dev/null; then
        command -v apt-get > /dev/null || fail "neither dockerd nor apt-get is installed"
        { timeout 60 apt-get update -qq && DEBIAN_FRONTEND=noninteractive timeout 180 apt-get install -qq -y \
            --no-install-recommends docker.io iptables iproute2 debootstrap; } > "$state.apt" 2>&1 \
            || fail "apt-get: $(tail -n 1 "$state.apt")"
    fi
    setsid dockerd --pidfile "$state.pid" > "$state.log" 2>&1 < /dev/null &
    for _ in $(seq 60); do
        if docker version > /dev/null 2>&1; then exit 0; fi
        sleep 0.5
    done
    fail "dockerd does not respond: $(tail -n 1 "$state.log")"
}

down() {
    [ -f "$state.pid" ] || exit 0 # `up` started none
    pid=$(cat "$state.pid")
    kill "$pid"
    for _ in $(seq 60); do
        kill -0 "$pid" 2> /dev/null || exit 0
        sleep 0.5
    done
    fail "dockerd $pid does not end"
}

case ${1:-} in up) up ;; down) down ;; *) fail "usage: $0 up | down" ;; esac
