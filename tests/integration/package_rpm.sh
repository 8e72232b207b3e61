#!/bin/sh
# The RPM as its users have it, in a bare root that is thrown away: installed, used, upgraded while jobs run, removed. By hand: it needs
# root, rpm and busybox-static, which is all that the root has but for libc. What needs systemd is not seen here.
# Usage: package_rpm.sh STATIC_BUILD_FOLDER
set -eu
build=$(realpath "$1")
root=$(mktemp -d)
packages=$(mktemp -d)
daemon=
finish() {
    [ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true
    rm -rf "$root" "$packages"
}
trap finish EXIT
trap 'exit 1' INT TERM
in_root() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C "$@"; }
say() { echo "== $*"; }

say "packages: this version, and the next release of it"
for release in 1 2; do
    (cd "$build" && cpack -G RPM -B "$packages" -D CPACK_RPM_PACKAGE_RELEASE=$release >"$packages/log" 2>&1) || { cat "$packages/log"; exit 1; }
done
rm -r "$packages/_CPack_Packages"
first=$(echo "$packages"/scand-*-1.*.rpm)
second=$(echo "$packages"/scand-*-2.*.rpm)

say "a root of busybox"
mkdir -p "$root/bin" "$root/usr/bin" "$root/lib64" "$root/dev" "$root/tmp" "$root/etc" "$root/run" "$root/var/cache"
cp "$(command -v busybox)" "$root/bin/busybox"
chroot "$root" /bin/busybox --install -s /bin
ln -s /bin/env "$root/usr/bin/env"
mknod -m 666 "$root/dev/null" c 1 3
for name in ld-linux-x86-64.so.2 libc.so.6 libm.so.6; do # what the package asks of the system
    cp -L --parents "$(ldconfig -p | sed -n "s|.*$name .*x86-64.*=> ||p" | head -1)" "$root/"
done
[ -e "$root/lib64/ld-linux-x86-64.so.2" ] || cp -L /lib64/ld-linux-x86-64.so.2 "$root/lib64/"
# Folders of several packages stay: those are nobody's here.
found() { (cd "$root" && find . -xdev \( -type f -o -type l -o -name '*scand*' \) -print | sort); }
found >"$packages/before"

rpm_root() { rpm --root "$root" --define "_dbpath /tmp/rpmdb" "$@" 2>&1 | grep -v "^rpm: \(RPM should\|However\)" || true; }
install() { rpm_root --nodeps "$@"; } # nothing there has a package

say "install"
install -i "$first"
in_root scanctl --version
in_root scand --version
grep -q '^ExecStart=/usr/bin/scand ' "$root/usr/lib/systemd/system/scand.service"

start() {
    chroot "$root" /usr/bin/scand --foreground --device cpu --socket /run/scand.sock --pool 64M 2>>"$packages/daemon.log" & # $! is the daemon
    daemon=$!
    until in_root SCAND_SOCKET=/run/scand.sock scanctl ping >/dev/null 2>&1; do sleep 0.1; done
}
scan() { in_root SCAND_SOCKET=/run/scand.sock scanctl scan --shape 100,1000 /tmp/in.raw -o /tmp/out.raw; }
say "use"
head -c 400000 /dev/zero >"$root/tmp/in.raw"
start
scan
cmp "$root/tmp/in.raw" "$root/tmp/out.raw" # sums of zeros

say "upgrade under load"
(
    count=0
    while [ ! -e "$packages/enough" ]; do
        code=0
        scan 2>"$packages/scan.log" || code=$?
        case $code in
        0) count=$((count + 1)) ;;
        69) sleep 0.1 ;; # no daemon, between the two: without systemd nobody keeps its socket
        *) cat "$packages/scan.log"; exit 1 ;;
        esac
    done
    echo "$count jobs, all right"
) &
load=$!
install -U "$second"
rpm_root -q scand
kill "$daemon"
wait "$daemon" || { echo "the old daemon ended badly"; exit 1; }
start
sleep 1
touch "$packages/enough"
wait "$load" || { echo "a job failed"; exit 1; }

say "remove"
kill "$daemon"
wait "$daemon"
daemon=
mkdir -p "$root/var/cache/scand"
install -e scand
rm -rf "$root/tmp/rpmdb" "$root"/tmp/*.raw
found | diff "$packages/before" - || { echo "not as before"; exit 1; }
say "all as expected"
