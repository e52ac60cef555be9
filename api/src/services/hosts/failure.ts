// Maps host failures of the data plane (commands, metrics) to API errors. The only such table; a
// failure without an entry is a fault of the service.
import type { SandboxAction } from '@berth/contract/sandboxes/state.ts';
import { HostError, type HostFailureCode } from '../../hosts/error.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { findSandbox } from '../../store/sandboxes/sandboxes.ts';
import type { ServiceContext } from '../context/context.ts';
import { requireLegal } from '../../rules/sandboxes/action.ts';

const RETRY_AFTER_SECONDS = 2;

type Unanswered = 'sandbox_unreachable' | 'host_unavailable';

const MEANINGS: { readonly [code in HostFailureCode]?: Unanswered } = {
  vm_not_found: 'sandbox_unreachable',
  vm_not_running: 'sandbox_unreachable',
  superseded: 'sandbox_unreachable',
  stale_epoch: 'sandbox_unreachable',
  guest_unreachable: 'sandbox_unreachable',
  host_unreachable: 'host_unavailable',
  host_timeout: 'host_unavailable',
  invalid_answer: 'host_unavailable',
  unauthorized: 'host_unavailable',
};
const PARTY_NAMES: { readonly [meaning in Unanswered]: string } = {
  sandbox_unreachable: "the sandbox's VM",
  host_unavailable: "the sandbox's host",
};

/**
 * Converts the failure to the API's error; `consequence` ends the sentence. Rereads the sandbox
 * row: if its current status forbids the action, the error is that conflict.
 */
export async function explainHostFailure(
  context: ServiceContext,
  sandboxId: string,
  action: SandboxAction,
  error: unknown,
  consequence = '',
): Promise<unknown> {
  if (!(error instanceof HostError)) return error;
  const meaning = MEANINGS[error.code];
  if (meaning === undefined) return error;
  const now = await findSandbox(context.db, sandboxId);
  try {
    if (now !== undefined) requireLegal(action, now.status);
  } catch (refusal) {
    return refusal instanceof CodedError
      ? new CodedError(refusal.code, `${refusal.message}${consequence}`, { cause: error })
      : refusal;
  }
  return new CodedError(meaning, `${PARTY_NAMES[meaning]} gave no valid response${consequence}`, {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
    cause: error,
  });
}
