// Calls a host for a durable step, with retries, until the outcome is final, the step is void, or
// the host's time is up.
import { HostError } from '../../hosts/error.ts';
import type { HostClient } from '../../hosts/client.ts';
import { UnsealError } from '../../services/context/sealed.ts';
import type { LifecycleStep, LifecycleStepKind } from '../../services/context/lifecycle-port.ts';
import { failureOf, type Reason, type RequestFailure } from '../../rules/sandboxes/machine-death.ts';
import type { VmView } from '@berth/protocol/host.ts';
import { findSandbox } from '../../store/sandboxes/sandboxes.ts';
import type { SandboxRow } from '../../store/database/schema.ts';
import { crashPoint } from '../steps/crash-point.ts';
import { pause, worthLogging, type StepContext } from '../steps/step-context.ts';
import { stepKindOf } from '../steps/step-kind.ts';

/**
 * Minimum time for a host when the step starts late, after a recovery; limited by `hostTimeoutMs`.
 */
const LATE_TIMEOUT_MS = 15_000;

interface HostCall<T> {
  kind: LifecycleStepKind;
  /** For the log, e.g. `making a machine`. */
  what: string;
  /** Start of the host's time limit. */
  requestedAt(sandbox: SandboxRow): Date;
  send(host: HostClient, sandbox: SandboxRow, signal: AbortSignal): Promise<T>;
}

/**
 * `answered`: the host did it. `void`: a newer intent (a destroy) is in force, or the work is
 * already done. `failed`: the host refused or was unreachable until its time limit; `sandbox` is as
 * last read.
 */
type CallOutcome<T> =
  | { kind: 'answered'; answer: T }
  | { kind: 'void' }
  | { kind: 'failed'; reason: Reason; sandbox: SandboxRow; host: HostClient | null };

/**
 * Calls the sandbox's host until the outcome is final. Throws the abort reason when this process
 * stops.
 */
export async function callHost<T>(
  context: StepContext,
  step: LifecycleStep,
  call: HostCall<T>,
): Promise<CallOutcome<T>> {
  const { db, hosts, log, stopping, hostTimeoutMs } = context;
  const startedAt = Date.now();
  const failed = (
    code: RequestFailure,
    called: { sandbox: SandboxRow; host: HostClient | null },
    error?: Error,
  ): CallOutcome<T> => {
    log.warn({ err: error, sandboxId: step.sandboxId, code }, `${call.what}: failed`);
    return { kind: 'failed', reason: failureOf(code), ...called };
  };
  let overtaken: HostError | undefined;
  for (let attempt = 0; ; attempt += 1) {
    stopping.throwIfAborted();
    let giveUpAt = Infinity;
    let called: { sandbox: SandboxRow; host: HostClient } | undefined;
    try {
      const sandbox = await findSandbox(db, step.sandboxId);
      if (sandbox === undefined || sandbox.epoch !== step.epoch || stepKindOf(sandbox) !== call.kind)
        return { kind: 'void' };
      if (sandbox.host_url === null) return failed('host_unknown', { sandbox, host: null });

      const host = hosts.at(sandbox.host_url);
      // The host has seen a newer epoch than the database has: the database was restored from a
      // backup.
      if (overtaken !== undefined) return failed(overtaken.code, { sandbox, host }, overtaken);
      giveUpAt = Math.max(
        call.requestedAt(sandbox).getTime() + hostTimeoutMs,
        startedAt + Math.min(hostTimeoutMs, LATE_TIMEOUT_MS),
      );
      called = { sandbox, host };
      crashPoint(`${call.kind}:looked-up`);
      const answer = await call.send(host, sandbox, stopping);
      crashPoint(`${call.kind}:answered`);
      return { kind: 'answered', answer };
    } catch (error) {
      stopping.throwIfAborted();
      if (error instanceof UnsealError && called !== undefined) return failed('data_key_unusable', called, error);
      if (error instanceof HostError && called !== undefined) {
        if (error.code === 'stale_epoch' || error.code === 'superseded') {
          overtaken = error;
          continue;
        }
        if (!error.transient || Date.now() >= giveUpAt) return failed(error.code, called, error);
      }
      if (worthLogging(attempt)) log.warn({ err: error, sandboxId: step.sandboxId, attempt }, `${call.what}: retrying`);
    }
    await pause(attempt, stopping);
  }
}

/** The VM as its host lists it: `null` if absent, `undefined` when the host is unreachable. */
export async function findVmOnHost(
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
