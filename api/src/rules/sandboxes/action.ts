// Checks an action against the contract's state table, and describes a refusal.
import {
  REFUSAL_CODES,
  SANDBOX_ACTION_RULES,
  SANDBOX_STATES,
  statusesAllowing,
  type SandboxAction,
  type SandboxStatus,
  type SandboxActionDecision,
} from '@berth/contract/sandboxes/state.ts';
import { CodedError } from '../coded-error.ts';

const VERBS: { readonly [action in SandboxAction]: string } = {
  exec: 'run a command',
  connect: 'open a connection',
  ssh_access: 'read its ssh host key',
  files_read: 'read its files',
  files_write: 'write a file',
  sleep: 'put it to sleep',
  wake: 'wake it',
  resize: 'resize it',
  renew: 'renew it',
  metrics_live: 'read its metrics',
  metrics_history: 'read the history of its metrics',
  metrics_sample: 'sample its metrics',
  preview_link: 'create a preview link',
  file_link: 'create a file link',
  agent_session: 'use its agent sessions',
  destroy: 'destroy it',
};

/**
 * `do`: carry out the action. `done`: the action is complete or in progress; respond as the first
 * time. Throws the code of {@link REFUSAL_CODES} for an illegal action, naming the status and the
 * legal ones. @param purpose the caller's, for the message
 */
export function requireLegal(
  action: SandboxAction,
  status: SandboxStatus,
  purpose: string = VERBS[action],
): Exclude<SandboxActionDecision, 'refuse'> {
  const verdict = SANDBOX_ACTION_RULES[action][status];
  if (verdict !== 'refuse') return verdict;
  const is = `the sandbox is ${status} (${SANDBOX_STATES[status].meaning})`;
  const allowing = statusesAllowing(action);
  throw new CodedError(
    REFUSAL_CODES[action],
    mayReach(status, allowing)
      ? `${is}; to ${purpose}, it must be ${allowing.join(' or ')}`
      : `cannot ${purpose}: ${is}. Create another sandbox`,
  );
}

/** Reports whether a sandbox of the status can still get into one of the others. */
function mayReach(status: SandboxStatus, others: readonly SandboxStatus[]): boolean {
  const seen = new Set([status]);
  // Iterates over the statuses that are added meanwhile, too.
  for (const one of seen) for (const next of SANDBOX_STATES[one].next) seen.add(next);
  return others.some((one) => seen.has(one));
}
