// Compares the response of an action with the contract's state table, for every status that the
// sandbox may have had.
import {
  REFUSAL_CODES,
  SANDBOX_ACTION_RULES,
  type SandboxAction,
  type SandboxStatus,
} from '@berth/contract/sandboxes/state.ts';
import type { Reply } from './client.ts';

/** null when the table allows the response in one of `statuses`: all those possible during it. */
export function violationOf(action: SandboxAction, reply: Reply, statuses: ReadonlySet<SandboxStatus>): string | null {
  if (reply.kind === 'unknown') return null;
  const verdicts = [...statuses].map((status) => SANDBOX_ACTION_RULES[action][status]);
  const known = [...statuses].join(' or ');
  if (reply.kind === 'done')
    return verdicts.some((verdict) => verdict !== 'refuse') ? null : `${action} was answered as done while ${known}`;
  if (reply.code !== REFUSAL_CODES[action]) return null;
  // A failed sandbox may have nothing to wake or resize; a refusal is correct too.
  if ((action === 'wake' || action === 'resize') && statuses.has('failed')) return null;
  return verdicts.includes('refuse') ? null : `${action} was refused (${reply.message}) while ${known}`;
}
