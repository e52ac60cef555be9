// The states of a sandbox: what each means, which follow which, and what each action does in each.
// The one home of these rules. The server, its workers, the SDK and the console's buttons read this
// table; nothing else compares statuses.
//
//   create ──> provisioning ──guest answers──> running ──set-up done──> ready        running, ready = awake
//                  │   └────── nothing to set up ─────────────────────────^
//                  └── could not be made ──> failed
//
//   awake ──sleep──> sleeping ──captured──> stopped ──wake──> waking ──guest answers──> awake
//                        └─ could not be captured ─> awake        └─ could not be woken ─> stopped
//
//   awake, sleeping, waking, stopped ── machine or disk lost ──> failed ──wake, when its disk is left──> waking
//                                          failed ── its host, thought lost, is back with the machine ──> awake, stopped
//   an ephemeral one: sleep, or its expiry ──> destroying
//   any of them ──destroy──> destroying ──machine, disk and snapshot gone──> deleted
import { z } from 'zod';

/**
 * Every status a sandbox can have. Clients must accept values they do not know: further ones will
 * come.
 */
export const sandboxStatus = z
  .enum(['provisioning', 'running', 'ready', 'sleeping', 'stopped', 'waking', 'failed', 'destroying', 'deleted'])
  .meta({
    id: 'SandboxStatus',
    description:
      'Status of a sandbox; commands and files work while it is `running` or `ready`. Further ones will come.',
  });
export type SandboxStatus = z.infer<typeof sandboxStatus>;

export interface SandboxStateRule {
  meaning: string;
  /** The guest answers: commands and files work. */
  awake: boolean;
  /**
   * Its vCPUs and memory are reserved on a host; while it is being destroyed, as far as it had a
   * machine when that began.
   */
  holdsMachine: boolean;
  /** Its disk is reserved on a host. A failed one may have none left. */
  holdsDisk: boolean;
  /** Counts against the plan's concurrent sandboxes. */
  concurrent: boolean;
  /** Machine time is metered. */
  metered: boolean;
  /** Nothing is under way: a caller that waits for a transition gets its answer. */
  settled: boolean;
  /** Statuses that may follow. */
  next: readonly SandboxStatus[];
}

export const SANDBOX_STATES: { readonly [status in SandboxStatus]: SandboxStateRule } = {
  provisioning: {
    meaning: 'its machine is being made',
    awake: false,
    holdsMachine: true,
    holdsDisk: true,
    concurrent: true,
    metered: false,
    settled: false,
    next: ['running', 'ready', 'failed', 'destroying'],
  },
  running: {
    meaning: 'its machine answers; its repository is being cloned',
    awake: true,
    holdsMachine: true,
    holdsDisk: true,
    concurrent: true,
    metered: true,
    settled: true,
    next: ['ready', 'sleeping', 'stopped', 'failed', 'destroying'],
  },
  ready: {
    meaning: 'its machine answers and its set-up is done',
    awake: true,
    holdsMachine: true,
    holdsDisk: true,
    concurrent: true,
    metered: true,
    settled: true,
    next: ['sleeping', 'stopped', 'failed', 'destroying'],
  },
  sleeping: {
    meaning: 'its memory and disk are being captured',
    awake: false,
    holdsMachine: true,
    holdsDisk: true,
    concurrent: true,
    metered: false,
    settled: false,
    next: ['stopped', 'running', 'ready', 'failed', 'destroying'],
  },
  stopped: {
    meaning: 'it sleeps: memory and disk are kept for a wake, its machine is released',
    awake: false,
    holdsMachine: false,
    holdsDisk: true,
    concurrent: false,
    metered: false,
    settled: true,
    next: ['waking', 'failed', 'destroying'],
  },
  waking: {
    meaning: 'its machine is being restored',
    awake: false,
    holdsMachine: true,
    holdsDisk: true,
    concurrent: true,
    metered: false,
    settled: false,
    next: ['running', 'ready', 'stopped', 'failed', 'destroying'],
  },
  failed: {
    meaning: 'its machine could not be made, or was lost; statusReason says why, wakesFrom what a wake can start from',
    awake: false,
    holdsMachine: false,
    holdsDisk: true,
    concurrent: false,
    metered: false,
    settled: true,
    next: ['waking', 'running', 'ready', 'stopped', 'destroying'],
  },
  destroying: {
    meaning: 'its machine, disk and snapshot are being deleted',
    awake: false,
    holdsMachine: true,
    holdsDisk: true,
    concurrent: false,
    metered: false,
    settled: false,
    next: ['deleted'],
  },
  deleted: {
    meaning: 'its machine, disk and snapshot are gone for good',
    awake: false,
    holdsMachine: false,
    holdsDisk: false,
    concurrent: false,
    metered: false,
    settled: true,
    next: [],
  },
};

/** What callers can do to a sandbox that depends on its status. */
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
  'metrics_sample',
  'preview_link',
  'destroy',
] as const;
export type SandboxAction = (typeof SANDBOX_ACTIONS)[number];

/**
 * `do`: legal, carried out. `done`: nothing is left to do, or it is under way; answered as the
 * first time. `refuse`: the error of {@link REFUSAL_CODES}, naming the status and the statuses in
 * which the action is legal.
 */
export type SandboxVerdict = 'do' | 'done' | 'refuse';

const whileAwake = (otherwise: SandboxVerdict): { readonly [status in SandboxStatus]: SandboxVerdict } => ({
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
 * Wake of a failed sandbox is legal while its disk is left (`wakesFrom`). Exec, connect and file
 * calls of a stopped one are legal where its project wakes sandboxes by themselves (`wakeOnUse`).
 * Renew is for ephemeral sandboxes alone, whatever the status.
 */
export const SANDBOX_ACTION_RULES: {
  readonly [action in SandboxAction]: { readonly [status in SandboxStatus]: SandboxVerdict };
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
  metrics_sample: whileAwake('refuse'),
  preview_link: { ...whileAwake('do'), destroying: 'refuse', deleted: 'refuse' },
  destroy: { ...whileAwake('do'), destroying: 'done', deleted: 'done' },
};

/**
 * What an action answers where it is not legal: 400 for a wake (spec: States and transitions), else
 * 409.
 */
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
  metrics_sample: 'sandbox_state_conflict',
  preview_link: 'sandbox_state_conflict',
  destroy: 'sandbox_state_conflict',
};

/** Statuses in which the action is carried out. */
export function statusesAllowing(action: SandboxAction): SandboxStatus[] {
  return sandboxStatus.options.filter((status) => SANDBOX_ACTION_RULES[action][status] === 'do');
}

/** Statuses from which `to` may be entered. */
export function statusesBefore(to: SandboxStatus): SandboxStatus[] {
  return sandboxStatus.options.filter((status) => SANDBOX_STATES[status].next.includes(to));
}

/** Statuses with the given property of the state table. */
export function statusesThat(
  property: 'awake' | 'holdsMachine' | 'holdsDisk' | 'concurrent' | 'metered' | 'settled',
): SandboxStatus[] {
  return sandboxStatus.options.filter((status) => SANDBOX_STATES[status][property]);
}
