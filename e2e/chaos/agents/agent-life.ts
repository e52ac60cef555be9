// An agent client of the chaos run. Has one sandbox at a time, and carries out the operations of
// its plan on agent sessions there, as two callers with a cursor each.
import { setTimeout as delay } from 'node:timers/promises';
import type { AgentSession } from '@berth/contract/agents/sessions.ts';
import type { SentTurn } from '@berth/contract/agents/conversation.ts';
import { AGENT_READY_MS } from '@berth/protocol/agent-errors.ts';
import type { ClientLife } from '../sandboxes/client-life.ts';
import type { ChaosClient, Reply } from '../judging/client.ts';
import type { Report } from '../judging/report.ts';
import type { KnownSandbox } from '../model/known-sandbox.ts';
import { KnownSession, type SeenReply, type SentMessage } from './known-session.ts';
import type { AgentOperation, Work } from './plan.ts';

const SESSIONS_AT_MOST = 3;
/** Pause before retrying a service that does not respond. */
const SILENCE_PAUSE_MS = 300;

export class AgentLife {
  readonly sessions: KnownSession[] = [];
  /** Creates, wakes, reads and destroys the sandbox. */
  readonly life: ClientLife;
  readonly #client: ChaosClient;
  readonly #report: Report;
  #number = 0;

  constructor(life: ClientLife, client: ChaosClient, report: Report) {
    this.life = life;
    this.#client = client;
    this.#report = report;
  }

  get sandbox(): KnownSandbox | undefined {
    return this.life.sandboxes.findLast((sandbox) => !sandbox.gone);
  }

  /** Sessions of the current sandbox. */
  get liveSessions(): KnownSession[] {
    return this.sessions.filter(({ sandboxId }) => sandboxId === this.sandbox?.id);
  }

  async run(operation: AgentOperation): Promise<void> {
    const { kind, pick } = operation;
    const { sandbox } = this;
    if (sandbox === undefined)
      return await this.life.run({ kind: 'create', pauseMs: 0, ttlSeconds: null, respondAsync: false });
    if (!sandbox.mayBe('awake') || sandbox.moving) await this.life.get(sandbox);
    const sessions = this.liveSessions;
    const session = sessions[Math.floor(pick * sessions.length)];
    if (kind === 'sleep') return await this.life.verb(sandbox, 'sleep');
    if (kind === 'wake' || !sandbox.mayBe('awake')) return await this.#wake(sandbox);
    if (session === undefined || (kind === 'start' && sessions.length < SESSIONS_AT_MOST))
      return await this.#start(sandbox);
    switch (kind) {
      case 'send':
        return await this.#sendNew(session, operation.work, operation);
      case 'resend':
        return await this.#resend(session, operation.turn, operation.otherText);
      case 'answer':
        return await this.answer(session, operation.decision);
      case 'interrupt':
        return await this.interrupt(session);
      case 'poll': {
        const headers = operation.holdSeconds === 0 ? {} : { prefer: `wait=${operation.holdSeconds}` };
        await this.poll(session, operation.reader, operation.limit, headers);
        return;
      }
      case 'recover':
        return void (await this.recover(session));
      default:
        return void (await this.get(session));
    }
  }

  /** The record, if it was read. */
  async get(session: KnownSession): Promise<AgentSession | null> {
    const reply = await this.#send(session, 'getAgentSession');
    if (reply.kind !== 'done') return null;
    const view = reply.body as AgentSession;
    session.observe(view.recentTurns ?? [], reply);
    return view;
  }

  async recover(session: KnownSession): Promise<boolean> {
    const reply = await this.#send(session, 'recoverAgentSession');
    // The guest may still start the agent.
    if (reply.kind === 'unknown') session.startsUntilMs = reply.receivedMs + AGENT_READY_MS;
    if (reply.kind === 'done') session.isAcknowledged = true;
    else if (reply.kind === 'refused' && reply.code === 'agent_conversation_missing')
      session.isMissing = !session.isAcknowledged;
    return reply.kind === 'done';
  }

  async answer(session: KnownSession, decision: string): Promise<void> {
    const pending = (await this.get(session))?.pendingInput;
    if (pending == null) return;
    await this.#send(session, 'answerAgentPrompt', { body: { requestId: pending.requestId, decision } });
  }

  async interrupt(session: KnownSession): Promise<void> {
    await this.#send(session, 'interruptAgentTurn');
  }

  /** Reads one page; the number of replies, or null without a response. */
  async poll(
    session: KnownSession,
    reader: number,
    limit: number,
    headers: Record<string, string> = {},
  ): Promise<number | null> {
    const known = session.readers[reader];
    if (known === undefined) throw new Error(`there is no reader ${reader}`);
    const page = await this.page(session, known.cursor, limit, headers);
    if (page === null) return null;
    session.read(known, page.messages, page.nextCursor);
    return page.messages.length;
  }

  async page(
    session: KnownSession,
    cursor: string | undefined,
    limit: number,
    headers: Record<string, string> = {},
  ): Promise<{ messages: SeenReply[]; nextCursor: string; hasMore: boolean } | null> {
    const query = `?limit=${limit}${cursor === undefined ? '' : `&after=${cursor}`}`;
    const reply = await this.#send(session, 'getAgentOutput', { query, headers });
    if (reply.kind === 'refused' && reply.code === 'invalid_request')
      this.#report.found('cursor-invalid', `${session.id}: the cursor ${cursor} was refused: ${reply.message}`);
    return reply.kind === 'done' ? (reply.body as Awaited<ReturnType<AgentLife['page']>>) : null;
  }

  /** Sends a message, or sends it again; true if it was taken. */
  async deliver(session: KnownSession, message: SentMessage): Promise<boolean> {
    const { text, requestKey } = message;
    const body = { text, ...(requestKey === null ? {} : { requestKey }) };
    const reply = await this.#send(session, 'sendAgentMessage', { body });
    if (reply.kind === 'done') {
      const { turnId, state, replayed = false } = reply.body as SentTurn;
      session.delivered(message, turnId, { state, replayed }, reply);
    } else if (reply.kind === 'unknown' && reply.turnId !== undefined) {
      session.delivered(message, reply.turnId, null, reply);
    } else if (reply.kind === 'refused' && reply.code === 'agent_bridge_stopped') {
      await this.recover(session);
    }
    return reply.kind === 'done';
  }

  newMessage(session: KnownSession, work: Work, keyed = true): SentMessage {
    const number = (this.#number += 1);
    return session.message(work, number, keyed ? `${this.life.name}-key-${number}` : null);
  }

  async #sendNew(
    session: KnownSession,
    work: Work,
    { twice, keyed }: { twice: boolean; keyed: boolean },
  ): Promise<void> {
    const message = this.newMessage(session, work, keyed);
    await Promise.all([this.deliver(session, message), twice && keyed && this.deliver(session, message)]);
  }

  async #resend(session: KnownSession, pick: number, otherText: boolean): Promise<void> {
    const keyed = session.messages.filter(({ requestKey, isTaken }) => requestKey !== null && (isTaken || !otherText));
    const message = keyed[Math.floor(pick * keyed.length)];
    if (message === undefined) return;
    if (!otherText) return void (await this.deliver(session, message));
    const body = { text: 'say another', requestKey: message.requestKey };
    const reply = await this.#send(session, 'sendAgentMessage', { body });
    if (reply.kind === 'done' || (reply.kind === 'refused' && !CONFLICTS.has(reply.code)))
      this.#report.found('contradiction', `${session.id}: another text with a used key: ${JSON.stringify(reply)}`);
  }

  async #start(sandbox: KnownSandbox): Promise<void> {
    const reply = await this.#client.send({ route: 'createAgentSession', sandboxId: sandbox.id });
    if (reply.kind === 'refused') this.#report.note(`createAgentSession refused: ${reply.code}`);
    if (reply.kind === 'unknown') return await this.#discover(sandbox);
    if (reply.kind !== 'done') return;
    const view = reply.body as AgentSession;
    this.#adopt(view.id, sandbox, true);
    if (view.bridgeState !== 'ready')
      this.#report.found('contradiction', `${view.id} was created as ${view.bridgeState}`);
  }

  /** A session whose create was not answered can be used once it is recovered. */
  async #discover(sandbox: KnownSandbox): Promise<void> {
    const query = `?sandboxId=${sandbox.id}`;
    const reply = await this.#client.send({ route: 'listAgentSessions', sandboxId: sandbox.id, query });
    if (reply.kind !== 'done') return;
    const { sessions } = reply.body as { sessions: AgentSession[] };
    for (const { id } of sessions) if (this.sessions.every((known) => known.id !== id)) this.#adopt(id, sandbox, false);
  }

  #adopt(id: string, sandbox: KnownSandbox, isAcknowledged: boolean): void {
    const session = new KnownSession(id, sandbox.id, isAcknowledged, this.#report);
    if (!isAcknowledged) session.startsUntilMs = Date.now() + AGENT_READY_MS;
    this.sessions.push(session);
    this.#report.counts.sessions += 1;
  }

  async #wake(sandbox: KnownSandbox): Promise<void> {
    if (!sandbox.is('awake')) await this.life.verb(sandbox, 'wake');
  }

  async #send(
    session: KnownSession,
    route: string,
    more: { body?: unknown; query?: string; headers?: Record<string, string> } = {},
  ): Promise<Reply> {
    const { id, sandboxId, startsUntilMs } = session;
    const explained = Date.now() < startsUntilMs ? 'agent_bridge_not_ready' : undefined;
    const reply = await this.#client.send({ route, sandboxId, params: { sessionId: id }, explained, ...more });
    if (reply.kind === 'refused') this.#report.note(`${route} refused: ${reply.code}`);
    if (reply.kind === 'unknown') await delay(SILENCE_PAUSE_MS);
    if (reply.kind === 'refused' && reply.code === 'agent_session_not_found')
      this.#report.found('contradiction', `${id} was acknowledged, and is unknown to ${route}`);
    return reply;
  }
}

/** Responses to a used key with another text. */
const CONFLICTS: ReadonlySet<string> = new Set(['request_key_conflict', 'sandbox_state_conflict']);
