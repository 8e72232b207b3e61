#!/bin/sh
# Installs into a temporary folder, as packagers do, and builds a program against it, as users do: with pkg-config and with
# find_package. Usage: install.sh BUILD_FOLDER; $CC and $CFLAGS as usual.
set -eu
build=$1
consumer=$(cd "$(dirname "$0")/consumer" && pwd)
source=$(cd "$consumer/../../.." && pwd)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

DESTDIR=$root cmake --install "$build" >/dev/null
header=$(find "$root" -path '*/include/scand/scand.h')
prefix=${header%/include/scand/scand.h}
libraries=$(dirname "$(find "$root" -name libscand.so)")

documents=$(dirname "$(find "$root" -name PROTOCOL.md)")
for file in "$prefix/include/scand/types.h" "$prefix/include/scand/version.h" "$documents/README.md" "$documents/LICENSE" "$libraries/libscand.so.0.1" "$libraries/libscand-local.so.0.1" "$libraries/pkgconfig/scand.pc"; do
    test -e "$file" || { echo "not installed: $file"; exit 1; }
done

export PKG_CONFIG_SYSROOT_DIR="$root" PKG_CONFIG_LIBDIR="$libraries/pkgconfig"
${CC:-cc} ${CFLAGS:-} "$consumer/main.c" $(pkg-config --cflags --libs scand) -o "$root/consumer"
LD_LIBRARY_PATH=$libraries "$root/consumer"
# Where no daemon answers, with the library beside libscand.
LD_LIBRARY_PATH=$libraries SCAND_FALLBACK=cpu "$root/consumer" | grep -qx 'ok: '
LD_LIBRARY_PATH=$libraries "$root/consumer" | grep -q "^scand $(pkg-config --modversion scand), " || { echo "scand.pc has another version"; exit 1; }
# The header alone, in the strictest dialects that it promises.
${CC:-cc} -std=c99 -pedantic-errors -Wall -Wextra -Werror -fsyntax-only $(pkg-config --cflags scand) -x c "$header"
if command -v c++ >/dev/null; then
    c++ -std=c++11 -Wall -Wextra -Werror -fsyntax-only $(pkg-config --cflags scand) -x c++ "$header"
fi
# The same among macros of the program's own.
${CC:-cc} -std=c99 -pedantic-errors -Wall -Wextra -Werror -fsyntax-only $(pkg-config --cflags scand) "$consumer/macros.c"
if command -v c++ >/dev/null; then
    c++ -std=c++11 -Wall -Wextra -Werror -fsyntax-only $(pkg-config --cflags scand) -x c++ "$consumer/macros.c"
fi
unset PKG_CONFIG_SYSROOT_DIR PKG_CONFIG_LIBDIR

cmake -S "$consumer" -B "$root/build" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build "$root/build" >/dev/null
"$root/build/consumer"

# The static library needs libc alone, and defines nothing that could be the program's.
if test -e "$libraries/libscand.a"; then
    "$root/build/consumer_static"
    "$root/build/consumer_local"
    SCAND_FALLBACK=cpu "$root/build/consumer_local" | grep -qx 'ok: '
    ${CC:-cc} ${CFLAGS:-} -I"$prefix/include" "$consumer/main.c" "$libraries/libscand.a" -pthread -o "$root/consumer"
    "$root/consumer"
    ${CC:-cc} ${CFLAGS:-} -I"$prefix/include" "$consumer/main.c" "$libraries/libscand.a" \
        $(PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_LIBDIR=$libraries/pkgconfig pkg-config --variable=local scand) -pthread -o "$root/consumer"
    SCAND_FALLBACK=cpu "$root/consumer" | grep -qx 'ok: '
    if ldd "$root/consumer" | grep -e scand -e msgpack; then
        echo "needed by a program with the static library, and must not be"
        exit 1
    fi
    if nm -g --defined-only "$libraries/libscand.a" "$libraries/libscand-local.a" | grep ' [A-Z] ' | grep -v ' scand_'; then
        echo "defined by a static library, and must not be"
        exit 1
    fi
fi

# The sources as a part of another project.
for by in subdirectory fetch; do
    cmake -S "$consumer" -B "$root/$by" -DSCAND_BY=$by -DSCAND_SOURCE="$source" >/dev/null
    cmake --build "$root/$by" --target consumer >/dev/null
    "$root/$by/consumer"
done

# Another prefix than the one that was configured.
cmake --install "$build" --prefix "$root/other" >/dev/null
PKG_CONFIG_LIBDIR=$(dirname "$(find "$root/other" -name scand.pc)")
export PKG_CONFIG_LIBDIR
${CC:-cc} ${CFLAGS:-} "$consumer/main.c" $(pkg-config --cflags --libs scand) -o "$root/consumer"
LD_LIBRARY_PATH=$(pkg-config --variable=libdir scand) "$root/consumer"
# Fortran, by the command that the module's head has, and the example that is installed.
module=$root/other/include/scand/scand.f90
example=$(find "$root/other" -name integral.f90)
if test -e "$module" && command -v gfortran >/dev/null; then
    compile=$(sed -n "s|^! *\\(gfortran .*\\) program.f90 |\\1 '$example' |p" "$module")
    (cd "$root" && eval "$compile -o integral")
    LD_LIBRARY_PATH=$(pkg-config --variable=libdir scand) SCAND_SOCKET=$root/none SCAND_FALLBACK=cpu "$root/integral" | grep -q ' 0 are wrong$'
fi
unit=$root/other/lib/systemd/system/scand.service
for file in "$unit" "$root/other/lib/systemd/system/scand.socket" "$root/other/lib/systemd/user/scand.service" \
    "$root/other/lib/sysusers.d/scand.conf" "$root/other/lib/tmpfiles.d/scand.conf"; do
    test -e "$file" || { echo "not installed: $file"; exit 1; }
done
grep -qx "ExecStart=$root/other/bin/scand --foreground" "$unit" || { echo "the unit starts another program:"; cat "$unit"; exit 1; }

# Units are right, and leave the daemon no more than it needs, where systemd can tell.
if command -v systemd-analyze >/dev/null && systemd-analyze security --help | grep -q -- --offline; then
    systemd-analyze verify --man=no "$unit" "$root/other/lib/systemd/system/scand.socket"
    XDG_RUNTIME_DIR=$root systemd-analyze verify --man=no --user "$root/other/lib/systemd/user/scand.service"
    systemd-analyze security --offline=true --threshold=30 "$unit" >"$root/security" || { cat "$root/security"; exit 1; }
fi

# The tool finds the library where both were installed, and shells how to complete its words.
if test -x "$prefix/bin/scanctl"; then
    for file in bash-completion/completions/scanctl zsh/site-functions/_scanctl fish/vendor_completions.d/scanctl.fish; do
        grep -q -- accumulator "$prefix/share/$file" || { echo "no completion in $file"; exit 1; }
    done
    "$prefix/bin/scanctl" --version
fi
