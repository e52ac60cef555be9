// Ids, times and resources shared by the examples of routes. A test validates them against their
// schemas.
import { ROLE_PERMISSIONS } from './permissions.ts';

/** Ids in examples. The test that sends the examples substitutes real ids. */
export const EXAMPLE_IDS = {
  orgId: 'org_3f7kq2vd5mzx4cnaw6thbyrj',
  projectId: 'prj_w4ya6jx2tq7bn5rkz3mdvhce',
  sandboxId: 'sbx_k2m7vq5hx3dwz6ncy4ratbjf',
  userId: 'usr_b5tz3nwk7yq2jxd4vm6hracf',
  keyId: 'key_t6hd4wqz2nkv7ym5xj3crabf',
} as const;

const AT = '2026-11-21T09:30:00.000Z';
const { orgId, projectId, sandboxId, userId, keyId } = EXAMPLE_IDS;

export const exampleIdentity = { id: userId, email: 'olive@example.com', displayName: 'Olive Ogden' };

export const exampleOrg = {
  id: orgId,
  name: 'Example',
  role: 'owner',
  permissions: [...ROLE_PERMISSIONS.owner].sort(),
  createdAt: AT,
};

export const exampleProject = {
  id: projectId,
  orgId,
  name: 'storefront',
  useCase: 'external',
  defaultRepository: null,
  defaultBranch: null,
  defaultProfile: 'agent-standard',
  defaultPersistencePolicy: null,
  defaultIdleMinutes: 15,
  defaultEgress: null,
  wakeOnUse: true,
  agentApprovals: 'ask',
  sandboxMachineHourLimit: null,
  metadata: {},
  hasRepoCredentials: false,
  createdAt: AT,
  updatedAt: AT,
  deletedAt: null,
};

export const exampleSandbox = {
  id: sandboxId,
  orgId,
  projectId,
  name: 'ada-workspace',
  agent: 'agent_one',
  status: 'ready',
  statusReason: null,
  statusChangedAt: AT,
  sandbox_profile: 'agent-small',
  allocated_vcpu: 1,
  allocated_memory_gb: 1,
  allocated_disk_gb: 10,
  resizing: false,
  persistencePolicy: 'sleep_resume',
  mode: 'persistent',
  ttlSeconds: null,
  expiresAt: null,
  wakesFrom: null,
  lastWake: null,
  lastActiveAt: AT,
  lastActiveBy: null,
  repository: null,
  branch: null,
  clone: null,
  egress: { mode: 'open', names: [], ranges: [], ports: [] },
  endUserId: 'user-4711',
  key: null,
  metadata: { plan: 'trial', seats: 3 },
  idleMinutes: null,
  createdBy: userId,
  createdAt: AT,
  updatedAt: AT,
  deletedAt: null,
};

export const exampleApiKey = {
  id: keyId,
  orgId,
  name: 'ci',
  tokenPrefix: 'brt_pR5',
  scopes: ['sandbox.read', 'sandbox.create', 'sandbox.exec', 'sandbox.destroy'],
  createdBy: userId,
  viaSso: false,
  createdAt: AT,
  expiresAt: '2027-02-19T09:30:00.000Z',
  revokedAt: null,
  lastUsedAt: null,
};

export const exampleMetrics = {
  sampledAt: AT,
  guest: {
    uptimeSeconds: 60,
    cpu: { vcpu: 1, usedPercent: null, busySeconds: 0.6 },
    load: { oneMinute: 0.1, fiveMinutes: 0.1, fifteenMinutes: 0.1 },
    memory: { totalMib: 960, usedMib: 120, usedPercent: 12.5 },
    disk: { totalMib: 10_000, usedMib: 500, usedPercent: 5 },
    network: { receivedBytes: 1_000, sentBytes: 2_000 },
    processCount: 12,
  },
  host: {
    cpuSeconds: 0.9,
    residentMemoryMib: 300,
    unsharedMemoryMib: 60,
    diskUsedMib: 20,
    network: { receivedBytes: 1_100, sentBytes: 2_100 },
  },
};

export const exampleMetricsHistory = {
  stepSeconds: 10,
  points: [
    {
      at: AT,
      cpuUsedPercent: 12.5,
      residentMemoryMib: 300,
      unsharedMemoryMib: 60,
      diskUsedMib: 20,
      receivedBytesPerSecond: 100,
      sentBytesPerSecond: 50,
    },
  ],
};

export const exampleMetricsSample = {
  sampledAt: AT,
  currentAllocation: { vcpu: 1, memoryGb: 1, diskGb: 10 },
  recommendedAllocation: { vcpu: 1, memoryGb: 1, diskGb: 10 },
  storedAsPending: false,
  reason:
    'CPU stays at 1 vCPU: there is no smaller step. memory stays at 1 GB: there is no smaller step. disk ' +
    'stays at 10 GB: there is room, and a disk never shrinks.',
  cpuUsedPercent: null,
  memoryUsedPercent: 12.5,
  diskUsedPercent: 5,
};

export const exampleFile = {
  path: '/code/hello.py',
  content: "print('hello')\n",
  encoding: 'utf8',
  size: 15,
  sha256: '03e693d9f2f687e0f40e36a8df7fcb4d1c22974012b7c2a55c000eb30f305824',
};

export const exampleFileLink = {
  id: 'fln_h5cjx3rq7wvz2nkd6mbyt4aa',
  url: 'https://berth.example.com/file-links/AgZ...',
  method: 'GET',
  path: '/code/report.pdf',
  action: 'read',
  expiresAt: '2026-11-21T09:45:00.000Z',
};

export const exampleFolder = {
  path: '/code',
  truncated: false,
  entries: [
    { label: 'hello.py', path: '/code/hello.py', type: 'file', kind: 'file', size: 15, modifiedAt: AT, mode: '0644' },
    {
      label: 'src',
      path: '/code/src',
      type: 'directory',
      kind: 'directory',
      size: 4_096,
      modifiedAt: AT,
      mode: '0755',
    },
  ],
};

export const exampleStat = { path: '/code/hello.py', kind: 'file', size: 15, modifiedAt: AT, mode: '0644' };

export const exampleChanges = {
  path: '/code',
  changes: [{ path: '/code/hello.py', change: 'changed', kind: 'file' }],
  cursor: '9f86d081884c7d65.13',
  reset: false,
};

export const examplePreview = {
  id: 'prv_h5cjx3rq7wvz2nkd6mbyt4aa',
  audience: 'public',
  port: 3_000,
  url: 'https://d4kq2mvx7n.preview.example.com/?token=eyJ...',
  expiresAt: '2026-11-21T10:30:00.000Z',
  label: 'demo',
  endUserId: null,
  embeddable: false,
  createdAt: AT,
  lastUsedAt: null,
  revokedAt: null,
  inactiveReason: null,
};

export const exampleUsage = {
  includedMachineHours: null,
  sandboxMachineHourLimit: null,
  sandboxMachineHourLimitOverride: null,
  sandboxOverageEnabled: false,
  usedMachineHours: 0,
  remainingMachineHours: null,
  usageAlert: {
    percentUsed: 0,
    status: 'normal',
    message: '0 machine hours are used in this billing period. There is no cap on them.',
  },
  periodStartsAt: '2026-11-01T00:00:00.000Z',
  periodEndsAt: '2026-12-01T00:00:00.000Z',
  overageMachineHours: 0,
  estimatedOverageUsd: null,
};
