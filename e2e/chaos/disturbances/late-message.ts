// Late messages to agents, as if delayed by the network: copies of messages that were taken, and
// messages of turns that were declared undelivered. The guest never runs them.
import { newId } from '@berth/api/store/database/ids.ts';
import { getAgent, sendAgentMessage } from '@berth/protocol/calls/agents.ts';
import { hostError } from '@berth/protocol/host.ts';
import type { InstancePaths } from '@berth/machine/supervisor/instance.ts';
import { queryDatabase } from '../../world/database.ts';
import type { KnownSession } from '../agents/known-session.ts';
import type { Disturbance } from '../model/plan.ts';
import { AGENT_FAULTS, SHARED_FAULTS, VM_FAULTS, type FaultLog } from '../judging/faults.ts';
import type { Report } from '../judging/report.ts';
import { OneDaemon, type HostAnswer } from './one-daemon.ts';

type LateMessage = Extract<Disturbance, { kind: 'late-message' }>;

interface LateMessageParts {
  paths: InstancePaths;
  faults: FaultLog;
  report: Report;
  sessions: () => KnownSession[];
}

interface Copy {
  turnId: string;
  runId: string;
  text: string;
}

export class LateMessages {
  readonly #parts: LateMessageParts;

  constructor(parts: LateMessageParts) {
    this.#parts = parts;
  }

  async send({ pick, turn, ofVoid }: LateMessage): Promise<void> {
    const { paths, faults, report } = this.#parts;
    const sessions = this.#parts.sessions();
    const session = sessions[Math.floor(pick * sessions.length)];
    if (session === undefined) return;
    const sentMs = Date.now();
    const daemon = await OneDaemon.connect(paths);
    try {
      if (ofVoid) await this.#voidOne(session, daemon);
      const copy = ofVoid ? voidedCopy(session, turn) : await this.#takenCopy(session, turn);
      if (copy === null) return;
      report.counts.others += 1;
      report.note(`late-message ${ofVoid ? 'of a void turn' : 'of a taken turn'}`);
      const body = { ...copy, keyed: true, author: '{}' };
      const answer = await daemon.ask('POST', pathOf(session, sendAgentMessage.path), body);
      report.note(`late-message: ${answer.status} ${codeOf(answer)}`);
      if (isRun(answer))
        report.found('turn-replayed', `a late copy of ${copy.turnId} was taken: ${answer.text.slice(0, 300)}`);
    } catch (error) {
      const what = `late-message: no answer (${(error as Error).message})`;
      const excuses = [...SHARED_FAULTS, ...VM_FAULTS, ...AGENT_FAULTS];
      if (faults.excuses(excuses, sentMs, Date.now(), session.sandboxId)) report.note(what);
      else report.found('contradiction', `without any trouble, ${what}`);
    } finally {
      daemon.leave();
    }
  }

  /** Declares a turn undelivered that was never sent, as an inspection does. */
  async #voidOne(session: KnownSession, daemon: OneDaemon): Promise<void> {
    const seen = await daemon.ask('GET', pathOf(session, getAgent.path));
    if (seen.status !== 200) return;
    const { runId } = getAgent.response.parse(JSON.parse(seen.text)).session;
    const turnId = newId('agentTurn');
    const answer = await daemon.ask('POST', `${pathOf(session, getAgent.path)}/turns/${turnId}/void`);
    if (answer.status === 200) session.voided.push({ turnId, runId });
  }

  async #takenCopy(session: KnownSession, turn: number): Promise<Copy | null> {
    const taken = session.messages.filter(({ turnId, isTaken }) => turnId !== null && isTaken);
    const message = taken[Math.floor(turn * taken.length)];
    if (message?.turnId == null) return null;
    const text = 'select run_id from agent_turn where id = $1';
    const [row] = await queryDatabase<{ run_id: string }>(this.#parts.paths.root, text, [message.turnId]);
    return row === undefined ? null : { turnId: message.turnId, runId: row.run_id, text: message.text };
  }
}

function voidedCopy({ voided }: KnownSession, turn: number): Copy | null {
  const one = voided[Math.floor(turn * voided.length)];
  return one === undefined ? null : { ...one, text: 'say never' };
}

function pathOf({ id, sandboxId }: KnownSession, path: string): string {
  return `/vms/${sandboxId}${path.replace('{sessionId}', id)}`;
}

/** True if the guest took the message as a new one. */
function isRun({ status, text }: HostAnswer): boolean {
  return status === 200 && !sendAgentMessage.response.parse(JSON.parse(text)).known;
}

function codeOf({ status, text }: HostAnswer): string {
  return status === 200 ? 'known' : (hostError.safeParse(JSON.parse(text)).data?.error.code ?? text.slice(0, 100));
}
