// Calls a host for a durable step, with retries, until the outcome is final, the step is void, or
// the host's time is up.
import { HostError } from '../../hosts/error.ts';
import type { HostClient } from '../../hosts/client.ts';
import type { LifecycleStep, LifecycleStepKind } from '../../services/context/lifecycle-port.ts';
import type { VmView } from '@berth/protocol/host.ts';
import { findSandbox } from '../../store/sandboxes/sandboxes.ts';
import type { SandboxRow } from '../../store/database/schema.ts';
import { crashPoint } from '../steps/crash-point.ts';
import { pause, worthLogging, type StepContext } from '../steps/step-context.ts';
import { stepKindOf } from '../steps/step-kind.ts';

/**
 * Minimum time for a host when the step starts late, after a recovery; limited by `hostPatienceMs`.
 */
const LATE_PATIENCE_MS = 15_000;

interface Question<T> {
  kind: LifecycleStepKind;
  /** For the log, e.g. `making a machine`. */
  what: string;
  /** Start of the host's time limit. */
  askedAt(sandbox: SandboxRow): Date;
  ask(host: HostClient, sandbox: SandboxRow, signal: AbortSignal): Promise<T>;
}

/**
 * `answered`: the host did it. `void`: a newer intent (a destroy) is in force, or the work is
 * already done. `failed`: the host refused or was unreachable until its time limit; `sandbox` is as
 * last read.
 */
type Verdict<T> =
  | { kind: 'answered'; answer: T }
  | { kind: 'void' }
  | { kind: 'failed'; code: string; message: string; sandbox: SandboxRow; host: HostClient | null };

/**
 * Calls the sandbox's host until the outcome is final. Throws the abort reason when this process
 * stops.
 */
export async function askHost<T>(
  context: StepContext,
  step: LifecycleStep,
  question: Question<T>,
): Promise<Verdict<T>> {
  const { db, hosts, log, stopping, hostPatienceMs } = context;
  const startedAt = Date.now();
  let overtaken: HostError | undefined;
  for (let attempt = 0; ; attempt += 1) {
    stopping.throwIfAborted();
    let giveUpAt = Infinity;
    let asked: { sandbox: SandboxRow; host: HostClient } | undefined;
    try {
      const sandbox = await findSandbox(db, step.sandboxId);
      if (sandbox === undefined || sandbox.epoch !== step.epoch || stepKindOf(sandbox) !== question.kind)
        return { kind: 'void' };
      if (sandbox.host_url === null) {
        return {
          kind: 'failed',
          code: 'host_unknown',
          message: 'no host was chosen for its VM',
          sandbox,
          host: null,
        };
      }

      const host = hosts.at(sandbox.host_url);
      // The host has seen a newer epoch than the database has: the database was restored from a
      // backup.
      if (overtaken !== undefined)
        return { kind: 'failed', code: overtaken.code, message: overtaken.message, sandbox, host };
      giveUpAt = Math.max(
        question.askedAt(sandbox).getTime() + hostPatienceMs,
        startedAt + Math.min(hostPatienceMs, LATE_PATIENCE_MS),
      );
      asked = { sandbox, host };
      crashPoint(`${question.kind}:looked-up`);
      const answer = await question.ask(host, sandbox, stopping);
      crashPoint(`${question.kind}:answered`);
      return { kind: 'answered', answer };
    } catch (error) {
      stopping.throwIfAborted();
      if (error instanceof HostError && asked !== undefined) {
        if (error.code === 'stale_epoch' || error.code === 'superseded') {
          overtaken = error;
          continue;
        }
        if (!error.transient || Date.now() >= giveUpAt)
          return { kind: 'failed', code: error.code, message: error.message, ...asked };
      }
      if (worthLogging(attempt))
        log.warn({ err: error, sandboxId: step.sandboxId, attempt }, `${question.what}: retrying`);
    }
    await pause(attempt, stopping);
  }
}

/** The VM as its host lists it: `null` if absent, `undefined` when the host is unreachable. */
export async function lookAtVm(
  context: StepContext,
  host: HostClient | null,
  sandboxId: string,
): Promise<VmView | null | undefined> {
  if (host === null) return undefined;
  try {
    const listed = await host.listVms({ signal: context.stopping });
    return listed.find((vm) => vm.id === sandboxId) ?? null;
  } catch (error) {
    context.stopping.throwIfAborted();
    context.log.warn({ err: error, sandboxId, host: host.url }, 'could not query a host for a VM');
    return undefined;
  }
}
