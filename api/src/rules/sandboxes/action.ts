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

const NOUNS: { readonly [action in SandboxAction]: string } = {
  exec: 'a command',
  connect: 'a connection',
  ssh_access: 'a look at its ssh host key',
  files_read: 'a look at its files',
  files_write: 'a write of a file',
  sleep: 'a sleep',
  wake: 'a wake',
  resize: 'a resize',
  renew: 'a renewal',
  metrics_live: 'a look at its metrics',
  metrics_sample: 'a sample of its metrics',
  preview_link: 'a preview link',
  destroy: 'a destroy',
};

/**
 * `do`: carry out the action. `done`: the action is complete or in progress; respond as the first
 * time. Throws the code of {@link REFUSAL_CODES} for an illegal action, naming the status and the
 * legal ones.
 */
export function requireLegal(action: SandboxAction, status: SandboxStatus): Exclude<SandboxActionDecision, 'refuse'> {
  const verdict = SANDBOX_ACTION_RULES[action][status];
  if (verdict !== 'refuse') return verdict;
  throw new CodedError(
    REFUSAL_CODES[action],
    `the sandbox is ${status} (${SANDBOX_STATES[status].meaning}); ${NOUNS[action]} needs it ${statusesAllowing(action).join(' or ')}`,
  );
}
