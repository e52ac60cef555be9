// Puts idle sandboxes to sleep: applies rules/sandboxes/idleness.ts to a sandbox and acts on the
// result.
import { listProcesses } from '@berth/protocol/calls/processes.ts';
import { idleness, type Idleness } from '../../rules/sandboxes/idleness.ts';
import { forgetAwakeProcess, type SleeperRow } from '../../store/sandboxes/activity-signals.ts';
import { recordActivity } from './activity-signal.ts';
import type { ServiceContext } from '../context/context.ts';
import type { IntentContext } from './intent.ts';
import { requestSleep } from './sleep.ts';

type IdleContext = IntentContext & Pick<ServiceContext, 'log' | 'hosts'>;

/**
 * Judges a sandbox by its row and its VM's current share of a host CPU (null: unknown). Starts to
 * put an idle sandbox to sleep unless it was used since the row was read. Records a busy one as
 * used. Resolves with the judgement.
 */
export async function judgeIdleness(
  context: IdleContext,
  sleeper: SleeperRow,
  cpuShare: number | null,
): Promise<Idleness> {
  const verdict = idleness({
    now: sleeper.now.getTime(),
    mode: sleeper.mode === 'ephemeral' ? 'ephemeral' : 'persistent',
    persistencePolicy: sleeper.persistencePolicy,
    idleMinutes: sleeper.idleMinutes,
    lastActiveAt: sleeper.lastActiveAt.getTime(),
    cpuShare,
  });
  if (verdict === 'in_use')
    await recordActivity(context, { id: sleeper.id, last_active_at: sleeper.lastActiveAt }, 'cpu');
  if (verdict !== 'idle') return verdict;
  const kept = await keptAwake(context, sleeper);
  if (kept === 'by a process')
    await recordActivity(context, { id: sleeper.id, last_active_at: sleeper.lastActiveAt }, 'process');
  if (kept !== 'no') return kept === 'unknown' ? 'quiet' : 'in_use';
  const unused = { epoch: sleeper.epoch, lastActiveAt: sleeper.lastActiveAt.getTime() };
  const after = await requestSleep(context, { kind: 'system', id: null, userId: null }, sleeper.id, {
    // A later call has either recorded its sign of use first, or waits for this lock and finds the
    // sandbox asleep.
    wanted: (now) => now.epoch === unused.epoch && now.last_active_at.getTime() === unused.lastActiveAt,
    details: { idleSince: sleeper.lastActiveAt.toISOString() },
  });
  return after.epoch === unused.epoch + 1 ? 'idle' : 'quiet';
}

/** Asks the guest for a process that keeps its sandbox awake, if one was started. */
async function keptAwake(
  { db, hosts, log }: IdleContext,
  { id, hostUrl, lastActiveAt, hasAwakeProcess }: SleeperRow,
): Promise<'no' | 'by a process' | 'unknown'> {
  if (!hasAwakeProcess) return 'no';
  try {
    const { processes } = await hosts.at(hostUrl).call(listProcesses, { vmId: id });
    if (processes.some(({ keepAwake, end }) => keepAwake && end === null)) return 'by a process';
    await forgetAwakeProcess(db, { id, lastActiveAt });
    return 'no';
  } catch (error) {
    log.warn({ err: error, sandboxId: id }, 'could not ask for the processes that keep a sandbox awake');
    return 'unknown';
  }
}
