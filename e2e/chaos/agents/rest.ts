// End of a run for agent sessions: every turn comes to an end, every session works again, and
// turns, replies, cursors and effects agree with the model.
import { setTimeout as delay } from 'node:timers/promises';
import { TURN_STATES } from '@berth/contract/agents/state.ts';
import type { ExecResult } from '@berth/contract/commands/exec.ts';
import type { ChaosClient } from '../judging/client.ts';
import type { FaultLog } from '../judging/faults.ts';
import type { Report } from '../judging/report.ts';
import type { AgentLife } from './agent-life.ts';
import type { KnownSession, SeenReply } from './known-session.ts';
import { EFFECTS, parseEffects } from './plan.ts';

/** Longer than a turn of unknown delivery takes to be settled, and a bridge to start. */
const REST_DEADLINE_MS = 180_000;
const POLL_MS = 250;
const PAGE = 100;

interface RestingWorld {
  client: ChaosClient;
  faults: FaultLog;
  report: Report;
}

/** @param life at rest, with an awake sandbox */
export async function checkAgents(life: AgentLife, { client, faults, report }: RestingWorld): Promise<void> {
  const { sandbox } = life;
  if (sandbox === undefined || !sandbox.is('awake')) return;
  const sessions = life.liveSessions;
  const deaths = faults.startedBetween('qemu-killed', 0, Date.now(), sandbox.id);
  const lostMs = Math.max(0, ...deaths.map(({ fromMs }) => fromMs));
  for (const session of sessions) {
    if (!(await comesToRest(life, session, report))) continue;
    // An acknowledged turn keeps its state, whoever sends its message again.
    for (const message of session.messages)
      if (message.isTaken && message.requestKey !== null) await life.deliver(session, message);
    await readToEnd(life, session, lostMs, report);
  }
  const body = { command: EFFECTS, timeoutSeconds: 60 };
  const reply = await client.send({ route: 'execInSandbox', sandboxId: sandbox.id, body });
  const found = reply.kind === 'done' ? parseEffects((reply.body as ExecResult).stdout) : null;
  if (found === null) {
    report.found('contradiction', `${sandbox.id}: the executed turns cannot be read: ${JSON.stringify(reply)}`);
    return;
  }
  for (const session of sessions) session.compareEffects(found.effects, found.running, lostMs);
}

/** Ends what waits or never ends, recovers the session, and runs one more turn. */
async function comesToRest(life: AgentLife, session: KnownSession, report: Report): Promise<boolean> {
  const deadline = Date.now() + REST_DEADLINE_MS;
  const last = life.newMessage(session, { kind: 'say' });
  let shown = '';
  while (Date.now() < deadline) {
    const view = await life.get(session);
    shown = JSON.stringify(view);
    if (view === null) {
      await delay(POLL_MS);
    } else if (view.bridgeState === 'stopped') {
      await life.recover(session);
      if (session.isMissing) {
        report.note('a session whose create was lost has nothing in its guest');
        return false;
      }
    } else if (view.turnState === 'waiting') {
      await life.answer(session, 'accept');
    } else if (view.turnState === 'running' && session.isEndless(view.turnId)) {
      await life.interrupt(session);
    } else if (view.turnState !== null && TURN_STATES[view.turnState].active) {
      await delay(POLL_MS);
    } else if (!last.isTaken) {
      await life.deliver(session, last);
    } else if (last.turnId !== null && session.states.get(last.turnId)?.state === 'completed') {
      // A turn beyond the recent ones is shown to those who send its message again.
      for (const message of session.unfinished()) await life.deliver(session, message);
      for (const { turnId } of session.unfinished())
        report.found('session-stuck', `${session.id}: turn ${turnId} has no end`);
      return true;
    } else {
      await delay(POLL_MS);
    }
  }
  report.found('session-stuck', `${session.id} of ${session.sandboxId} does not come to rest: ${shown}`);
  return false;
}

async function readToEnd(life: AgentLife, session: KnownSession, lostMs: number, report: Report): Promise<void> {
  for (const index of session.readers.keys()) while ((await life.poll(session, index, PAGE)) !== 0);
  const all: SeenReply[] = [];
  for (let cursor: string | undefined; ;) {
    const page = await life.page(session, cursor, PAGE);
    if (page === null) {
      report.found('contradiction', `${session.id}: its output cannot be read at rest`);
      return;
    }
    all.push(...page.messages);
    cursor = page.nextCursor;
    if (!page.hasMore) break;
  }
  session.compareReplies(all);
  session.compareTexts(all, lostMs);
}
