// State table of a sandbox: the meaning of each status, its successors, and the effect of each
// action in it. Server, workers, SDK and CLI read this table.
//
//   create ──> provisioning ──guest responds──> running ──set-up complete──> ready
//                  │   └────── nothing to set up ──────────────────────────────^
//                  └── create failed ──> failed
//
//   running and ready are awake.
//
//   awake ──sleep──> sleeping ──captured──> stopped ──wake──> waking ──guest responds──> awake
//                        └─ capture failed ──> awake             └─ wake failed ──> stopped
//
//   awake, sleeping, waking, stopped ── VM or disk lost ──> failed
//   failed ──wake, if the disk remains──> waking
//   failed ── a host reported lost returns with the VM ──> awake, stopped
//   ephemeral: sleep or expiry ──> destroying
//   any status ──destroy──> destroying ──VM, disk and snapshot deleted──> deleted
import { z } from 'zod';

/** Every status. More may be added; clients must accept unknown values. */
export const sandboxStatus = z
  .enum(['provisioning', 'running', 'ready', 'sleeping', 'stopped', 'waking', 'failed', 'destroying', 'deleted'])
  .meta({
    id: 'SandboxStatus',
    description:
      'Status of a sandbox. Commands and file calls work while it is `running` or `ready`. More may be ' +
      'added; clients must accept unknown values.',
  });
export type SandboxStatus = z.infer<typeof sandboxStatus>;

interface SandboxStateRule {
  meaning: string;
  /** The guest responds: commands and file calls work. */
  awake: boolean;
  /**
   * vCPUs and memory are reserved on a host. While `destroying`: only if the sandbox had a VM when
   * the destroy began.
   */
  reservesCompute: boolean;
  /** Disk space is reserved on a host. A failed sandbox may have lost its disk. */
  reservesDisk: boolean;
  /** Counts towards the plan's limit of concurrent sandboxes. */
  concurrent: boolean;
  /** Machine hours are metered. */
  metered: boolean;
  /** No transition is in progress: callers that wait for one get their response. */
  settled: boolean;
  /** Legal successors. */
  next: readonly SandboxStatus[];
}

export const SANDBOX_STATES: { readonly [status in SandboxStatus]: SandboxStateRule } = {
  provisioning: {
    meaning: 'its VM is being created',
    awake: false,
    reservesCompute: true,
    reservesDisk: true,
    concurrent: true,
    metered: false,
    settled: false,
    next: ['running', 'ready', 'failed', 'destroying'],
  },
  running: {
    meaning: 'its VM is up; its repository is being cloned',
    awake: true,
    reservesCompute: true,
    reservesDisk: true,
    concurrent: true,
    metered: true,
    settled: true,
    next: ['ready', 'sleeping', 'stopped', 'failed', 'destroying'],
  },
  ready: {
    meaning: 'its VM is up and its set-up is complete',
    awake: true,
    reservesCompute: true,
    reservesDisk: true,
    concurrent: true,
    metered: true,
    settled: true,
    next: ['sleeping', 'stopped', 'failed', 'destroying'],
  },
  sleeping: {
    meaning: 'its memory and disk are being saved',
    awake: false,
    reservesCompute: true,
    reservesDisk: true,
    concurrent: true,
    metered: false,
    settled: false,
    next: ['stopped', 'running', 'ready', 'failed', 'destroying'],
  },
  stopped: {
    meaning: 'it is asleep: memory and disk are kept for a wake, its VM is released',
    awake: false,
    reservesCompute: false,
    reservesDisk: true,
    concurrent: false,
    metered: false,
    settled: true,
    next: ['waking', 'failed', 'destroying'],
  },
  waking: {
    meaning: 'its VM is being restored',
    awake: false,
    reservesCompute: true,
    reservesDisk: true,
    concurrent: true,
    metered: false,
    settled: false,
    next: ['running', 'ready', 'stopped', 'failed', 'destroying'],
  },
  failed: {
    meaning: 'its VM could not be created, or was lost',
    awake: false,
    reservesCompute: false,
    reservesDisk: true,
    concurrent: false,
    metered: false,
    settled: true,
    next: ['waking', 'running', 'ready', 'stopped', 'destroying'],
  },
  destroying: {
    meaning: 'its VM, disk and snapshot are being deleted',
    awake: false,
    reservesCompute: true,
    reservesDisk: true,
    concurrent: false,
    metered: false,
    settled: false,
    next: ['deleted'],
  },
  deleted: {
    meaning: 'its VM, disk and snapshot are permanently deleted',
    awake: false,
    reservesCompute: false,
    reservesDisk: false,
    concurrent: false,
    metered: false,
    settled: true,
    next: [],
  },
};

/** Actions of callers whose legality depends on the status. */
export const SANDBOX_ACTIONS = [
  'exec',
  'connect',
  'ssh_access',
  'files_read',
  'files_write',
  'sleep',
  'wake',
  'resize',
  'renew',
  'metrics_live',
  'metrics_history',
  'metrics_sample',
  'preview_link',
  'file_link',
  'agent_session',
  'destroy',
] as const;
export type SandboxAction = (typeof SANDBOX_ACTIONS)[number];

/**
 * `do`: legal, carried out. `done`: already complete or in progress; same response as the first
 * call. `refuse`: the error of {@link REFUSAL_CODES}, whose message names the status and the
 * statuses in which the action is legal.
 */
export type SandboxActionDecision = 'do' | 'done' | 'refuse';

const whileAwake = (
  otherwise: SandboxActionDecision,
): { readonly [status in SandboxStatus]: SandboxActionDecision } => ({
  provisioning: otherwise,
  running: 'do',
  ready: 'do',
  sleeping: otherwise,
  stopped: otherwise,
  waking: otherwise,
  failed: otherwise,
  destroying: otherwise,
  deleted: otherwise,
});

/**
 * Effect of each action in each status, with three further conditions: waking a failed sandbox
 * requires its disk (`wakesFrom`); exec, connect and file calls of a stopped sandbox are legal if
 * its project has `wakeOnUse`; renew requires an ephemeral sandbox.
 */
export const SANDBOX_ACTION_RULES: {
  readonly [action in SandboxAction]: { readonly [status in SandboxStatus]: SandboxActionDecision };
} = {
  exec: whileAwake('refuse'),
  connect: whileAwake('refuse'),
  ssh_access: { ...whileAwake('do'), provisioning: 'refuse', destroying: 'refuse', deleted: 'refuse' },
  files_read: whileAwake('refuse'),
  files_write: whileAwake('refuse'),
  sleep: { ...whileAwake('refuse'), sleeping: 'done', stopped: 'done' },
  wake: {
    provisioning: 'refuse',
    running: 'refuse',
    ready: 'refuse',
    sleeping: 'refuse',
    stopped: 'do',
    waking: 'done',
    failed: 'do',
    destroying: 'refuse',
    deleted: 'refuse',
  },
  resize: { ...whileAwake('refuse'), stopped: 'do', failed: 'do' },
  renew: whileAwake('refuse'),
  metrics_live: whileAwake('refuse'),
  metrics_history: { ...whileAwake('do'), provisioning: 'refuse', destroying: 'refuse', deleted: 'refuse' },
  metrics_sample: whileAwake('refuse'),
  preview_link: { ...whileAwake('do'), destroying: 'refuse', deleted: 'refuse' },
  file_link: { ...whileAwake('do'), destroying: 'refuse', deleted: 'refuse' },
  agent_session: whileAwake('refuse'),
  destroy: { ...whileAwake('do'), destroying: 'done', deleted: 'done' },
};

/** Error of an illegal action: 400 for a wake (spec: States and transitions), otherwise 409. */
export const REFUSAL_CODES: { readonly [action in SandboxAction]: 'sandbox_state_conflict' | 'wake_not_possible' } = {
  exec: 'sandbox_state_conflict',
  connect: 'sandbox_state_conflict',
  ssh_access: 'sandbox_state_conflict',
  files_read: 'sandbox_state_conflict',
  files_write: 'sandbox_state_conflict',
  sleep: 'sandbox_state_conflict',
  wake: 'wake_not_possible',
  resize: 'sandbox_state_conflict',
  renew: 'sandbox_state_conflict',
  metrics_live: 'sandbox_state_conflict',
  metrics_history: 'sandbox_state_conflict',
  metrics_sample: 'sandbox_state_conflict',
  preview_link: 'sandbox_state_conflict',
  file_link: 'sandbox_state_conflict',
  agent_session: 'sandbox_state_conflict',
  destroy: 'sandbox_state_conflict',
};

/** Statuses in which the action is carried out. */
export function statusesAllowing(action: SandboxAction): SandboxStatus[] {
  return sandboxStatus.options.filter((status) => SANDBOX_ACTION_RULES[action][status] === 'do');
}

/** Statuses that `to` may follow. */
export function statusesBefore(to: SandboxStatus): SandboxStatus[] {
  return sandboxStatus.options.filter((status) => SANDBOX_STATES[status].next.includes(to));
}

/** Statuses with the given property of the state table. */
export function statusesThat(
  property: 'awake' | 'reservesCompute' | 'reservesDisk' | 'concurrent' | 'metered' | 'settled',
): SandboxStatus[] {
  return sandboxStatus.options.filter((status) => SANDBOX_STATES[status][property]);
}
