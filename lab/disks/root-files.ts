// Files of the lab's root disk that come from no package.

/** Where the work disk is mounted, with the checkout and the caches. */
const WORK = '/srv';
const CHECKOUT = `${WORK}/berth`;

/** Names of the serial ports to the runner, and of the order from it. */
export const PORTS = { output: 'berth.output', result: 'berth.result' } as const;
export const ORDER = 'opt/berth/order';

const RUN_CHECK = `#!/bin/sh
# Runs the order of the lab's runner, and reports its exit code.
set -eu
order=/sys/firmware/qemu_fw_cfg/by_name/${ORDER}/raw
[ -e "$order" ] || exit 0
export HOME=/root LANG=C.UTF-8 TMPDIR=${WORK}/tmp PATH=${CHECKOUT}/node_modules/.bin:$PATH
cd ${CHECKOUT}
code=0
node lab/inside/main.ts "$order" >/dev/virtio-ports/${PORTS.output} 2>&1 || code=$?
echo "$code" >/dev/virtio-ports/${PORTS.result}
`;

const UNIT = `[Unit]
Description=Check of the lab
After=multi-user.target systemd-udev-settle.service
RequiresMountsFor=${WORK}

[Service]
Type=simple
ExecStart=/usr/local/sbin/lab-check

[Install]
WantedBy=multi-user.target
`;

const NETWORK = `[Match]
Type=ether

[Network]
Address=10.0.2.15/24
Gateway=10.0.2.2
`;

export const FILES: Readonly<Record<string, { text: string; mode: number }>> = {
  '/etc/fstab': {
    text: `/dev/vda / ext4 defaults 0 1\nLABEL=work ${WORK} ext4 defaults 0 2\n`,
    mode: 0o644,
  },
  '/etc/hostname': { text: 'lab\n', mode: 0o644 },
  '/etc/hosts': { text: '127.0.0.1 localhost lab\n::1 localhost\n', mode: 0o644 },
  '/etc/modules-load.d/lab.conf': { text: 'kvm_amd\ntun\nqemu_fw_cfg\n', mode: 0o644 },
  '/etc/systemd/network/lab.network': { text: NETWORK, mode: 0o644 },
  '/etc/systemd/system/lab-check.service': { text: UNIT, mode: 0o644 },
  '/usr/local/sbin/lab-check': { text: RUN_CHECK, mode: 0o755 },
};

export const LINKS: Readonly<Record<string, string>> = {
  '/etc/systemd/system/multi-user.target.wants/lab-check.service': '../lab-check.service',
  '/etc/systemd/system/multi-user.target.wants/systemd-networkd.service':
    '/usr/lib/systemd/system/systemd-networkd.service',
  // Nobody signs in, and an emulated processor has no time for it.
  '/etc/systemd/system/getty.target': '/dev/null',
  '/etc/systemd/system/apt-daily.timer': '/dev/null',
  '/etc/systemd/system/apt-daily-upgrade.timer': '/dev/null',
  '/etc/systemd/system/e2scrub_all.timer': '/dev/null',
  '/etc/systemd/system/e2scrub_reap.service': '/dev/null',
  '/etc/systemd/system/fstrim.timer': '/dev/null',
  '/var/cache/berth': `${WORK}/cache`,
};
