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
# Until it listens, which is later than the socket is there, or has ended.
until grep -q " 00010000 .* $SCAND_SOCKET\$" /proc/net/unix || ! kill -0 $daemon 2>/dev/null; do
    sleep 0.02
done
"$@"
