// Texts of the hosts of the installation.
const number = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });

type Resource = 'vcpu' | 'memoryMib' | 'diskGib';

const STATES: Readonly<Record<string, string>> = { available: 'Available', unavailable: 'Does not respond' };
const ACCELERATORS: Readonly<Record<string, string>> = { kvm: 'KVM', tcg: 'emulated (TCG)', none: 'no VMs' };

const amountOf = (resource: Resource, amount: number): string => {
  if (resource === 'vcpu') return number.format(amount);
  const gib = resource === 'memoryMib' ? amount / 1_024 : amount;
  return gib < 1_024 ? `${number.format(gib)} GiB` : `${number.format(gib / 1_024)} TiB`;
};

export const hostsText = {
  title: 'Hosts',
  hint: 'Sandboxes reserve parts of a host’s capacity. A sleeping sandbox reserves disk only.',
  empty: { title: 'No host has responded yet', hint: 'The service lists a host once it responded for the first time.' },
  forbidden: 'Only owners and admins of the org of this installation’s operator see its hosts.',
  size: 'Size',
  columns: { host: 'Host', resource: 'Resource', reserved: 'Reserved', free: 'Free', sandbox: 'Sandbox', org: 'Org' },
  resources: { vcpu: 'vCPUs', memoryMib: 'Memory', diskGib: 'Disk' },
  amountOf,
  usedOf: (resource: Resource, used: number, all: number) =>
    `${amountOf(resource, used)} of ${amountOf(resource, all)}`,
  percent: (share: number) => `${number.format(share)} % reserved`,
  poolOf: (pool: { ready: number; target: number } | null) =>
    pool === null ? 'not known yet' : `${pool.ready} of ${pool.target} ready`,
  acceleratorOf: (name: string) => ACCELERATORS[name] ?? name,
  stateOf: (name: string) => STATES[name] ?? name,
  emulated: 'Emulated: VMs run many times slower than with KVM. Use this host for trials only.',
  unavailable: 'This host does not respond and receives no sandboxes. Its figures are the last known ones.',
  capacity: 'Capacity',
  sandboxes: 'Sandboxes',
  noSandboxes: 'No sandboxes on this host',
  facts: { status: 'Status', seen: 'Last response', pool: 'Warm pool', vms: 'VMs', asleep: 'Asleep' },
  sizeOf: ({ vcpu, memoryMib, diskGib }: Readonly<Record<Resource, number>>) =>
    `${vcpu} vCPU, ${amountOf('memoryMib', memoryMib)}, ${amountOf('diskGib', diskGib)} disk`,
} as const;
