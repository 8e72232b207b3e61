#!/bin/sh
# Programs and the library are built so that an overrun can do little. Usage: hardening.sh FILE...
set -eu
wrong=0
must() { # file, what it must have, in what is read of it
    printf '%s\n' "$3" | grep -Eq "$2" || { echo "$1: no $2"; wrong=1; }
}
for file; do
    must "$file" 'Type: +DYN' "$(readelf -hW "$file")"
    program=$(readelf -lW "$file")
    must "$file" GNU_RELRO "$program"
    must "$file" 'GNU_STACK.* RW ' "$program"
    must "$file" '\(FLAGS.*(BIND_NOW|NOW)' "$(readelf -dW "$file")"
    symbols=$(readelf --dyn-syms -W "$file")
    must "$file" __stack_chk_fail "$symbols"
    must "$file" '__(memcpy|memset|memmove|snprintf|vsnprintf)_chk' "$symbols"
done
exit $wrong
