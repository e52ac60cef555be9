// Durable step: clones a sandbox's repository. Calls the host until the outcome is final, then
// commits it. Credentials are decrypted only to be sent and are never stored. The step can be
// repeated, also concurrently: the guest clones once, and the commit is idempotent.
import { cloneOutput } from '@berth/protocol/calls/clones.ts';
import type { HostClient } from '../../hosts/client.ts';
import { HostError, type HostFailureCode } from '../../hosts/error.ts';
import { cleanOutput, cloneFailure, type CloneFailure } from '../../rules/clones/failure.ts';
import type { Reason } from '../../rules/sandboxes/machine-death.ts';
import { trackActivity } from '../../services/sandboxes/activity-signal.ts';
import type { LifecycleStep } from '../../services/context/lifecycle-port.ts';
import { isCloneCurrent, prepareClone, settleClone } from '../../services/clones/clone.ts';
import type { GitSettings } from '../../services/context/settings.ts';
import type { CloneOutput } from '../../store/sandboxes/clone-outputs.ts';
import { findSandbox, type LocatedSandboxRow } from '../../store/sandboxes/sandboxes.ts';
import { crashPoint } from '../steps/crash-point.ts';
import { pause, settleStep, worthLogging, type StepContext } from '../steps/step-context.ts';

/** A call longer than this had reached the guest: the host's silence restarts at its end. */
const REACHED_MS = 5_000;

export interface CloneStepContext extends StepContext {
  git: GitSettings;
}

/** `void`: the sandbox is asleep, lost or deleted, or another step is responsible for its clone. */
type Outcome =
  | { kind: 'void' }
  | { kind: 'cloned'; output: CloneOutput | null }
  | { kind: 'failed'; reason: Reason; output?: CloneOutput | null };

/**
 * Moves a sandbox from `running` to `ready` with its clone done or failed. Changes nothing if the
 * step is no longer responsible.
 */
export async function clone(context: CloneStepContext, step: LifecycleStep): Promise<void> {
  const outcome = await cloneRepository(context, step);
  if (outcome.kind === 'void') return;
  const failure = outcome.kind === 'failed' ? outcome.reason : null;
  const { output = null } = outcome;
  const written = await settleStep(context, 'clone', (trx) => settleClone(trx, step, failure, output));
  context.log.info(
    { sandboxId: step.sandboxId, outcome: outcome.kind, code: failure?.code, written },
    'clone of a repository finished',
  );
}

async function cloneRepository(context: CloneStepContext, step: LifecycleStep): Promise<Outcome> {
  const { db, git, log, stopping, hostTimeoutMs } = context;
  const startedMs = performance.now();
  let silentSinceMs: number | null = null;
  for (let attempt = 0; ; attempt += 1) {
    stopping.throwIfAborted();
    let askedMs = performance.now();
    try {
      const sandbox = await findSandbox(db, step.sandboxId);
      if (sandbox === undefined || !isCloneCurrent(sandbox, step)) return { kind: 'void' };
      const leftSeconds = Math.ceil(git.cloneTimeoutSeconds - (performance.now() - startedMs) / 1_000);
      if (leftSeconds < 1) return failed('timed_out');
      crashPoint('clone:looked-up');
      askedMs = performance.now();
      const outcome = await callGuest(context, sandbox, leftSeconds);
      crashPoint('clone:answered');
      return outcome;
    } catch (error) {
      stopping.throwIfAborted();
      const code = error instanceof HostError ? error.code : null;
      // The guest is hostile and knows the secret: log only the code of a host error, never its
      // message.
      if (worthLogging(attempt)) {
        log.warn(
          { ...(code === null ? { err: error } : { code }), sandboxId: step.sandboxId, attempt },
          'cloning a repository: retrying',
        );
      }
      if (code !== null) {
        const nowMs = performance.now();
        silentSinceMs = silentSinceMs === null || nowMs - askedMs > REACHED_MS ? nowMs : silentSinceMs;
        if (!isRetryable(error as HostError) || nowMs - silentSinceMs >= hostTimeoutMs) {
          return failed(
            RECORDED_IN_ROW.has(code) || code === 'guest_unreachable' ? 'sandbox_unreachable' : 'host_unavailable',
          );
        }
      }
    }
    await pause(attempt, stopping);
  }
}

async function callGuest(
  context: CloneStepContext,
  sandbox: LocatedSandboxRow,
  timeoutSeconds: number,
): Promise<Outcome> {
  if (sandbox.host_url === null) return failed('host_unavailable');
  const prepared = await prepareClone(context, sandbox);
  if ('refused' in prepared) return { kind: 'failed', reason: prepared.refused };
  const { secrets, ...what } = prepared;
  // A clone counts as use of the sandbox, even at a low CPU load.
  const use = trackActivity(context, sandbox.id, 'clone');
  try {
    const request = { ...what, epoch: sandbox.epoch, timeoutSeconds, maxMib: context.git.cloneMaxMib };
    const host = context.hosts.at(sandbox.host_url);
    const result = await host.clone(sandbox.id, request, { signal: context.stopping });
    const output = await outputOf(host, sandbox.id, secrets);
    return result.outcome === 'cloned'
      ? { kind: 'cloned', output }
      : { ...failed(result.code, result.message, secrets), output };
  } finally {
    use.end();
  }
}

/** Git's output without the secrets; null if there is none, or the guest does not tell. */
async function outputOf(host: HostClient, sandboxId: string, secrets: readonly string[]): Promise<CloneOutput | null> {
  try {
    const output = cleanOutput(await host.call(cloneOutput, { vmId: sandboxId }), secrets);
    return output.text.trim() === '' ? null : output;
  } catch (error) {
    if (error instanceof HostError) return null;
    throw error;
  }
}

function failed(code: CloneFailure, words?: string, secrets?: readonly string[]): Extract<Outcome, { kind: 'failed' }> {
  return { kind: 'failed', reason: cloneFailure(code, words, secrets) };
}

/** After these the sandbox's row soon shows the reason, or a retry succeeds. */
const RECORDED_IN_ROW: ReadonlySet<HostFailureCode> = new Set<HostFailureCode>([
  'stale_epoch',
  'superseded',
  'vm_not_running',
  'vm_not_found',
]);

function isRetryable(error: HostError): boolean {
  return error.transient || RECORDED_IN_ROW.has(error.code);
}
