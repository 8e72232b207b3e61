#!/bin/bash
# Runs a program while one daemon is drained and another one started at the same socket, several times. The program tells lines of
# its progress, and ends once the file exists that it is given the name of. Usage: with_daemons.sh SCAND PROGRAM
set -eu
scand=$1 program=$2
folder=$(mktemp -d)
export SCAND_SOCKET="$folder/scand.sock" CACHE_DIRECTORY="$folder"
trap 'touch "$folder/stop"; kill $(jobs -p) 2>/dev/null; wait; cat "$folder/log" "$folder/lines"; rm -rf "$folder"' EXIT
touch "$folder/lines"

start() { # until it listens, which is later than the socket is there, or has ended
    "$scand" --foreground --socket "$SCAND_SOCKET" --device cpu --pool 64M 2>>"$folder/log" &
    daemon=$!
    until grep -q " 00010000 .* $SCAND_SOCKET\$" /proc/net/unix || ! kill -0 $daemon 2>/dev/null; do sleep 0.02; done
}

progress() { # of two more lines
    local lines
    lines=$(wc -l <"$folder/lines")
    until (($(wc -l <"$folder/lines") > lines + 1)); do
        kill -0 $running || exit 1
        sleep 0.02
    done
}

start
"$program" "$folder/stop" >"$folder/lines" &
running=$!
for ((i = 0; i < 4; i++)); do
    progress
    kill $daemon
    wait $daemon
    start
done
progress
touch "$folder/stop"
wait $running
