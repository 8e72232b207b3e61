#!/bin/sh
# Runs a program beside a daemon of its own, which computes on the processor. Usage: with_daemon.sh SCAND PROGRAM [ARGUMENT...]
set -eu
scand=$1
shift
folder=$(mktemp -d)
export SCAND_SOCKET="$folder/scand.sock" CACHE_DIRECTORY="$folder"
"$scand" --foreground --socket "$SCAND_SOCKET" --device cpu --pool 64M 2>"$folder/log" &
daemon=$!
trap 'kill $daemon 2>/dev/null; wait $daemon || cat "$folder/log"; rm -rf "$folder"' EXIT
for _ in $(seq 500); do # until it listens, which is later than the socket is there
    grep -q " 00010000 .* $SCAND_SOCKET\$" /proc/net/unix && break
    sleep 0.02
done
"$@"
