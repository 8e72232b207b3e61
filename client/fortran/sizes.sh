#!/bin/sh
# Compares the sizes of the module's types with those of C's structs. Usage: sizes.sh PROGRAM abi.txt
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$1" | sort >"$folder/fortran"
grep '^struct [a-z_]*: [0-9]* bytes$' "$2" | sort >"$folder/c"
diff "$folder/c" "$folder/fortran" || { echo "< in C; > in Fortran"; exit 1; }
wc -l <"$folder/c" | xargs echo "types of the same size:"
