#!/bin/bash
# The units under a real systemd, which is the first process of namespaces of its own and has the machine's files, but for what it
# changes: the socket has the daemon started, wrong settings are refused, a worker and then a supervisor that stand still are
# replaced, a drain is waited for, and nobody notices restarts. By hand, as root: systemd 252 or later, util-linux, overlayfs.
# Usage: systemd_root.sh BUILD_FOLDER
set -eu
if [ "${1:-}" = --inside ]; then # as the second process there
    trap 'journalctl -u scand --no-pager -o cat | tail -n 20' ERR
    say() { echo "== $*"; }
    is() { [ "$("${@:2}")" = "$1" ] || { echo "$*: is $("${@:2}")"; false; }; }
    shows() { systemctl show -p "$1" --value scand; }
    logged() { journalctl -u scand --no-pager -o cat | grep -E "$1" | tail -n 1; }
    refuses() { ! "$@" 2>/dev/null || { echo "$* is not refused"; false; }; }
    settings() { printf '[daemon]\ndevice = cpu\npool = %s\n' "$1" >/etc/scand/scand.conf; }
    systemd-sysusers
    systemd-tmpfiles --create
    systemctl daemon-reload
    settings 64M

    say "the socket starts the daemon"
    systemctl start scand.socket
    is inactive systemctl is-active scand
    scanctl ping
    is active systemctl is-active scand
    is "serving at /run/scand/scand.sock" shows StatusText
    is scand stat -c %U "/proc/$(shows MainPID)"
    is "root 755" stat -c "%U %a" /etc/scand
    refuses nsenter --target "$(shows MainPID)" --mount setpriv --reuid scand --clear-groups touch /etc/scand/scand.conf

    say "wrong settings"
    settings lots
    refuses systemctl reload scand
    scanctl ping
    refuses systemctl restart scand
    is 78 shows ExecMainStatus
    logged '"pool" is "lots"'
    settings 64M
    systemctl reset-failed scand scand.socket
    systemctl restart scand.socket scand
    systemctl reload scand
    logged "settings were read again"

    say "a worker that is killed, and one that stands still"
    pkill -KILL -P "$(shows MainPID)"
    scanctl ping
    pkill -STOP -P "$(shows MainPID)"
    scanctl ping
    logged "does nothing for"
    is 0 shows NRestarts

    say "a drain"
    head -c 200000000 /dev/zero >/tmp/rows
    scanctl scan /tmp/rows --shape 500,100000 --accumulator f2 -o /tmp/scanned >/dev/null 2>&1 &
    sleep 0.5
    systemctl stop scand.socket scand
    wait || true # what came after the drain found no daemon
    logged "draining: no more jobs are taken"
    is success shows Result

    say "restarts under load"
    systemctl start scand.socket scand
    head -c 4000000 /dev/zero >/tmp/rows
    head -c 800000000 /dev/zero >/tmp/many
    (
        for ((i = 0; i < 100; i++)); do scanctl scan /tmp/rows --shape 100,10000 -o /tmp/scanned || exit 1; done
        echo "100 runs of scanctl, all well"
    ) &
    runs=$!
    scanctl scan /tmp/many --shape 2000,100000 --accumulator f2 -o /tmp/many.raw & # the next daemons do what is left of it
    many=$!
    for ((i = 0; i < 4; i++)); do
        sleep 0.5
        systemctl restart scand
    done
    wait $many
    wait $runs

    say "a supervisor that stands still"
    kill -STOP "$(shows MainPID)"
    for ((i = 0; i < 60; i++)); do
        [ "$(shows NRestarts)" = 0 ] || break
        sleep 1
    done
    echo "started anew after $i s"
    is 1 shows NRestarts
    scanctl ping
    systemd-analyze security --threshold=30 scand.service | tail -n 1
    echo "all well"
    exit
fi

build=$(realpath "$1")
base=$(mktemp -d)
export base
trap 'rm -rf "$base"' EXIT
cmake --install "$build" --prefix "$base/usr/local" >/dev/null
sed -i "s,$base,,g" "$base"/usr/local/lib/systemd/*/*.service
cp "$0" "$base/inside"
mkdir "$base/own" "$base/root"
cat >"$base/inside.service" <<'END'
[Unit]
After=basic.target
[Service]
Type=oneshot
ExecStart=bash /outside/inside --inside
ExecStopPost=systemctl exit
StandardOutput=file:/outside/log
StandardError=inherit
END
unshare --mount --pid --fork --uts --ipc --cgroup --propagation private bash -euc '
    root=$base/root
    mount -t tmpfs tmpfs "$base/own"
    mkdir "$base/own/upper" "$base/own/work"
    mount -t overlay overlay -o "lowerdir=/,upperdir=$base/own/upper,workdir=$base/own/work" "$root"
    mount -t proc proc "$root/proc"
    mount -t sysfs -o ro sysfs "$root/sys"
    for place in run tmp dev; do mount -t tmpfs -o mode=755 tmpfs "$root/$place"; done
    chmod 1777 "$root/tmp"
    for node in null zero full random urandom; do
        touch "$root/dev/$node"
        mount --bind "/dev/$node" "$root/dev/$node"
    done
    mkdir "$root/dev/shm" "$root/outside"
    mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
    rm -rf "$root"/etc/systemd/system/*.wants # nothing of this machine
    : >"$root/etc/fstab"
    : >"$root/etc/machine-id"
    for unit in systemd-udevd systemd-udev-trigger systemd-logind systemd-networkd systemd-resolved systemd-timesyncd; do
        ln -sf /dev/null "$root/etc/systemd/system/$unit.service"
    done
    cp -r "$base/usr/local/." "$root/usr/local/"
    cp "$base/inside.service" "$root/etc/systemd/system"
    mount --bind "$base" "$root/outside"
    exec chroot "$root" env -i container=other PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        /lib/systemd/systemd --system --unit=inside.service --log-target=null' || true
cat "$base/log"
[ "$(tail -n 1 "$base/log")" = "all well" ]
