// Text of the systemd unit. docs/decisions/systemd.md explains its settings.

export const UNIT = 'berth.service';
export const UNIT_FILE = `/etc/systemd/system/${UNIT}`;
export const SETTINGS_FILE = '/etc/berth/berth.env';

/**
 * First version with DelegateSubgroup. Without it systemd cannot start the service beside the
 * groups of running VMs, so an earlier one delegates nothing: the groups are outside of the unit.
 */
const SUBGROUPS_SINCE = 254;
const DELEGATION = 'Delegate=yes\nDelegateSubgroup=services\nEnvironment=BERTH_CGROUP_DELEGATED=1\n';

interface UnitOptions {
  checkout: string;
  dataFolder: string;
  cacheFolder: string;
  /** Version of systemd. */
  version: number;
}

export function unitText({ checkout, dataFolder, cacheFolder, version }: UnitOptions): string {
  return `# Written by berth install --systemd. Local changes: systemctl edit berth
[Unit]
Description=Berth, sandboxes in microVMs
Wants=network-online.target
After=network-online.target postgresql.service
RequiresMountsFor=${[checkout, dataFolder, cacheFolder].map(unitWord).join(' ')}
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=all
EnvironmentFile=${SETTINGS_FILE}
ExecStart=${unitWord(`${checkout}/berth`)} up
Restart=on-failure
RestartSec=5
# The first start after an update may install packages and build the image.
TimeoutStartSec=1h
# Before the computer stops, sandboxes are put to sleep.
TimeoutStopSec=15min

# VMs outlive the service, and one that is killed for its memory does not stop it.
KillMode=process
${version < SUBGROUPS_SINCE ? '' : DELEGATION}OOMPolicy=continue
TasksMax=infinity
LimitNOFILE=1048576
LimitCORE=0

# No setting that needs a mount namespace: mounts of a VM's network outlive the service.
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
SystemCallArchitectures=native
SystemCallFilter=~@clock @cpu-emulation @debug @module @obsolete @raw-io @reboot @swap
SystemCallErrorNumber=EPERM
CapabilityBoundingSet=~CAP_SYSLOG CAP_SYS_BOOT CAP_SYS_MODULE CAP_SYS_RAWIO CAP_SYS_TIME CAP_WAKE_ALARM

[Install]
WantedBy=multi-user.target
`;
}

/** Quotes a path for a unit, where % starts a specifier. */
function unitWord(path: string): string {
  const literal = path.replaceAll('%', '%%');
  return /^[\w./:@%+=,$-]+$/.test(literal) ? literal : `"${literal.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
}
