// The durable step that makes a sandbox's machine: ask the host until it answers for good, then commit what came of it.
// Safe to run again from the start at any point and beside itself: the host's verb is idempotent and fenced, so is the commit.
import { SANDBOX_STATES } from '@berth/contract/sandbox-state.ts';
import { DBOS } from '@dbos-inc/dbos-sdk';
import { HostError } from '../hosts/error.ts';
import type { LifecycleStep } from '../services/lifecycle-port.ts';
import { transitionSandbox } from '../services/sandbox-transition.ts';
import { findSandbox } from '../store/sandboxes.ts';
import { crashPoint } from './crash-point.ts';
import { parked, pause, untilCommitted, worthLogging, type StepContext } from './step-context.ts';
import { vmSpecOf } from './vm-spec.ts';

/** A host gets at least this long when the step starts late, after a recovery; or its whole patience when that is shorter. */
const LATE_PATIENCE_MS = 15_000;

/** `void`: a newer intent (a destroy) is in force, or the work is done already. */
type Made = { kind: 'made' } | { kind: 'void' } | { kind: 'failed'; code: string; message: string };

/** Brings a sandbox from `provisioning` to `ready` or `failed`, or leaves it alone when its epoch is no longer in force. */
export async function provision(context: StepContext, step: LifecycleStep): Promise<void> {
  crashPoint('provision:claimed');
  const made = await DBOS.runStep(() => makeMachine(context, step), { name: 'makeMachine' });
  crashPoint('provision:made-recorded');
  if (made.kind === 'void') return;
  await DBOS.runStep(() => settle(context, step, made), { name: 'settle' });
  crashPoint('provision:settled-recorded');
}

async function makeMachine(context: StepContext, step: LifecycleStep): Promise<Made> {
  const { db, hosts, log, stopping, hostPatienceMs } = context;
  const startedAt = Date.now();
  let overtaken: HostError | undefined;
  for (let attempt = 0; ; attempt += 1) {
    if (stopping.aborted) return await parked();
    let giveUpAt = Infinity;
    try {
      const sandbox = await findSandbox(db, step.sandboxId);
      if (sandbox === undefined || sandbox.epoch !== step.epoch) return { kind: 'void' };
      if (!SANDBOX_STATES[sandbox.status].next.includes('running')) return { kind: 'void' };
      // The host has seen a newer epoch than the database knows of: its record and ours have parted (a restored backup).
      if (overtaken !== undefined) return { kind: 'failed', code: overtaken.code, message: overtaken.message };
      if (sandbox.host_url === null) return { kind: 'failed', code: 'host_unknown', message: 'no host was chosen for its machine' };
      giveUpAt = Math.max(sandbox.status_changed_at.getTime() + hostPatienceMs, startedAt + Math.min(hostPatienceMs, LATE_PATIENCE_MS));
      crashPoint('provision:looked-up');
      await hosts.at(sandbox.host_url).createVm(sandbox.id, { epoch: step.epoch, spec: vmSpecOf(sandbox) }, { signal: stopping });
      crashPoint('provision:made');
      return { kind: 'made' };
    } catch (error) {
      if (stopping.aborted) return await parked();
      if (error instanceof HostError) {
        if (error.code === 'stale_epoch' || error.code === 'superseded') {
          overtaken = error;
          continue;
        }
        if (!error.transient || Date.now() >= giveUpAt) return { kind: 'failed', code: error.code, message: error.message };
      }
      if (worthLogging(attempt)) log.warn({ err: error, sandboxId: step.sandboxId, attempt }, 'making a machine: trying again');
    }
    await pause(attempt, stopping);
  }
}

async function settle(context: StepContext, step: LifecycleStep, made: Exclude<Made, { kind: 'void' }>): Promise<string> {
  const outcome = await untilCommitted(context, 'settling a new machine', () =>
    context.db.transaction().execute(async (trx) => {
      const result = await transitionSandbox(trx, {
        ...step,
        actor: { kind: 'system', id: null, userId: null },
        // With nothing to set up inside, a machine that answers is ready. A failure takes a new epoch: should the host still be at
        // work on the old one, what it makes is void and gets reaped.
        ...(made.kind === 'made'
          ? { to: 'ready' as const }
          : { to: 'failed' as const, newEpoch: true, reason: { code: made.code, message: made.message } }),
      });
      crashPoint('provision:written');
      return result.outcome;
    }),
  );
  crashPoint('provision:settled');
  return outcome;
}
