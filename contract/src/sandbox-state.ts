// The states of a sandbox: what each means, which follow which, and what each action does in each. The one home of these rules.
// The server, its worker and the clients read this table; nothing else compares statuses.
//
//   create ──> provisioning ──guest answers──> running ──set-up done──> ready
//                  │    └──────nothing to set up─────────────────────────^ │
//                  │            │                                          │
//                  │            └──────────────┐        machine lost       │
//                  └── could not be made ──> failed <──────────────────────┘
//
//   any of them ──destroy──> destroying ──machine and disk gone──> deleted
import { z } from 'zod';

/** Every status a sandbox can have. Clients must accept values they do not know: further ones will come. */
export const sandboxStatus = z.enum(['provisioning', 'running', 'ready', 'failed', 'destroying', 'deleted']);
export type SandboxStatus = z.infer<typeof sandboxStatus>;

export interface SandboxStateRule {
  meaning: string;
  /** The guest answers: commands and files work. */
  awake: boolean;
  /** Its vCPUs, memory and disk are reserved on a host. */
  holdsMachine: boolean;
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
    metered: false,
    settled: false,
    next: ['running', 'ready', 'failed', 'destroying'],
  },
  running: {
    meaning: 'its machine answers; set-up is under way',
    awake: true,
    holdsMachine: true,
    metered: true,
    settled: true,
    next: ['ready', 'failed', 'destroying'],
  },
  ready: {
    meaning: 'its machine answers and its set-up is done',
    awake: true,
    holdsMachine: true,
    metered: true,
    settled: true,
    next: ['failed', 'destroying'],
  },
  failed: {
    meaning: 'its machine could not be made, or was lost; statusReason says why',
    awake: false,
    holdsMachine: false,
    metered: false,
    settled: true,
    next: ['destroying'],
  },
  destroying: {
    meaning: 'its machine and disk are being deleted',
    awake: false,
    holdsMachine: true,
    metered: false,
    settled: false,
    next: ['deleted'],
  },
  deleted: {
    meaning: 'its machine and disk are gone for good',
    awake: false,
    holdsMachine: false,
    metered: false,
    settled: true,
    next: [],
  },
};

/** What callers can do to a sandbox that depends on its status. */
export const SANDBOX_ACTIONS = ['exec', 'destroy'] as const;
export type SandboxAction = (typeof SANDBOX_ACTIONS)[number];

/**
 * `do`: legal, carried out. `done`: nothing is left to do; answered as the first time. `refuse`: 409 `sandbox_state_conflict`,
 * naming the status and the statuses in which the action is legal.
 */
export type SandboxVerdict = 'do' | 'done' | 'refuse';

export const SANDBOX_ACTION_RULES: { readonly [action in SandboxAction]: { readonly [status in SandboxStatus]: SandboxVerdict } } = {
  exec: { provisioning: 'refuse', running: 'do', ready: 'do', failed: 'refuse', destroying: 'refuse', deleted: 'refuse' },
  destroy: { provisioning: 'do', running: 'do', ready: 'do', failed: 'do', destroying: 'done', deleted: 'done' },
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
export function statusesThat(property: 'awake' | 'holdsMachine' | 'metered' | 'settled'): SandboxStatus[] {
  return sandboxStatus.options.filter((status) => SANDBOX_STATES[status][property]);
}
