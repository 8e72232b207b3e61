#!/bin/sh
# The Debian packages as their users have them, in a bare root that is thrown away: installed, used from the shell, C and Python, upgraded
# while jobs run, removed, purged. By hand: it needs root, the network and debootstrap.
# Usage: package_root.sh BUILD_FOLDER [RELEASE_OF_DEBIAN]
set -eu
build=$(realpath "$1")
release=${2:-$(. /etc/os-release && echo "$VERSION_CODENAME")}
root=$(mktemp -d)
daemon=
finish() {
    [ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true
    umount "$root/proc" 2>/dev/null || true
    rm -rf "$root" "$packages"
}
packages=$(mktemp -d)
trap finish EXIT
trap 'exit 1' INT TERM
in_root() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C DEBIAN_FRONTEND=noninteractive "$@"; }
say() { echo "== $*"; }

say "packages"
(cd "$build" && cpack -G DEB -B "$packages" >"$packages/log") || { cat "$packages/log"; exit 1; }
rm -r "$packages/_CPack_Packages"
if command -v lintian >/dev/null; then
    lintian --fail-on error,warning "$packages"/*.deb
fi

say "a root of $release"
debootstrap --variant=minbase "$release" "$root" >"$packages/log" || { tail "$packages/log"; exit 1; }
mount -t proc proc "$root/proc"
mkdir "$root/packages"
cp "$packages"/*.deb "$root/packages"

say "install"
in_root sh -c 'apt-get install -y --no-install-recommends /packages/*.deb gcc libc6-dev pkg-config systemd >/log 2>&1' || { tail "$root/log"; exit 1; }
in_root getent passwd scand
in_root test -d /run/scand

say "without a daemon"
in_root python3 -c 'import numpy; numpy.save("/x.npy", numpy.arange(1000, dtype="f4").reshape(10, 100))'
in_root scanctl --local scan --passes forward /x.npy -o /local.npy
in_root SCAND_FALLBACK=cpu python3 -c 'import numpy, scand; x = numpy.arange(1000.0); assert (scand.cumsum(x) == x.cumsum()).all()'

start() {
    chroot "$root" scand --foreground --device cpu --socket /run/scand/scand.sock --pool 64M 2>>"$root/daemon.log" & # $! is the daemon
    daemon=$!
    until in_root scanctl ping >/dev/null 2>&1; do sleep 0.1; done
}
say "shell"
start
in_root scanctl --version
in_root scanctl scan --passes forward /x.npy -o /y.npy
in_root cmp /y.npy /local.npy
in_root python3 -c 'import numpy; assert (numpy.load("/y.npy") == numpy.load("/x.npy").cumsum(axis=1, dtype="f8").astype("f4")).all()'

say "Python"
in_root python3 -c 'import numpy, scand; x = numpy.arange(1000.0); assert (scand.cumsum(x) == x.cumsum()).all(); print(scand.__file__)'

say "C"
in_root sh -ec 'gcc /usr/share/doc/scand/examples/double_integral.c $(pkg-config --cflags --libs scand) -lm -pthread -o /example; ldd /example | grep libscand.so.0; /example
    gcc /usr/share/doc/scand/examples/double_integral.c -I/usr/include /usr/lib/*/libscand.a -lm -pthread -o /example; /example >/dev/null'

say "upgrade under load"
in_root python3 - <<'END' &
import numpy, scand, time
x = numpy.arange(100000.0)
expected, count, end = x.cumsum(), 0, time.monotonic() + 20
while time.monotonic() < end:
    assert (scand.cumsum(x) == expected).all()
    count += 1
print(f"{count} jobs, all right")
END
load=$!
sleep 2
for package in "$root"/packages/*.deb; do # the same as the next version
    chroot "$root" dpkg-deb -R "/packages/${package##*/}" /unpacked
    sed -i 's/-1\b/-2/' "$root/unpacked/DEBIAN/control"
    in_root dpkg-deb --root-owner-group -b /unpacked "/packages/${package##*/}" >/dev/null
    rm -r "$root/unpacked"
done
in_root sh -c 'dpkg -i /packages/*.deb >/log 2>&1' || { tail "$root/log"; exit 1; }
in_root dpkg-query -W -f '${Package} ${Version}\n' scand libscand-dev python3-scand
kill "$daemon"
wait "$daemon" || { echo "the old daemon ended badly"; exit 1; }
start
wait "$load"

say "remove, purge"
kill "$daemon"
wait "$daemon"
daemon=
in_root sh -c 'dpkg --purge python3-scand libscand-dev scand $(dpkg-query -W -f "\${Package} " "libscand0*" "libscand-local0*") >/log 2>&1' || { tail "$root/log"; exit 1; }
left=$(in_root sh -c 'find / -xdev \( -path /proc -o -path /packages -o -path /var/log \) -prune -o \( -name "*scand*" -o -name "*scanctl*" \) -print')
[ -z "$left" ] || { echo "left behind:"; echo "$left"; exit 1; }
say "all as expected"
