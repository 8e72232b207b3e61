#!/bin/sh
# libscand exports the functions that its header declares, all of them and nothing else, under the soname's version, and
# needs neither CUDA nor libuv.
# Usage: exports.sh LIBRARY HEADER
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort >"$folder/exported"
grep -v -e '^ \*' -e '^/\*' -e '^typedef' "$2" | grep -o 'scand_[a-z_]*(' | tr -d '(' | sort -u >"$folder/declared"
diff "$folder/declared" "$folder/exported" || { echo "< declared but not exported; > exported but not declared"; exit 1; }
if readelf -d "$1" | grep NEEDED | grep -e cuda -e libuv; then
    echo "needed by $1, and must not be"
    exit 1
fi
version=$(readelf -d "$1" | sed -n 's/.*SONAME.*\[libscand\.so\.\(.*\)\]/SCAND_\1/p')
if nm -D --defined-only "$1" | grep ' T ' | grep -v "@@$version\$"; then
    echo "of another version than $version, the soname's: see libscand.map"
    exit 1
fi
wc -l <"$folder/exported" | xargs echo "functions:"
