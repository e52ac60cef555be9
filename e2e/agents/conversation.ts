// An agent session as a client of the public API uses it, through faults: repeats reads, resends a
// message with its key, wakes the sandbox and recovers the session where an error says so.
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { AgentSession, AgentTurn } from '@berth/contract/agents/sessions.ts';
import { until } from '../../os/test/until.ts';
import { act, call, exec, getSandbox, waitForStatus, type Answer, type Caller } from '../world/client.ts';

const RETRY_MS = 100;
/** Longer than a turn of unknown delivery takes to be settled. */
const SETTLE_MS = 300_000;
const FINAL = ['completed', 'failed', 'canceled'];

interface Reply {
  seq: number;
  turnId: string;
  text: string;
}

interface Refused {
  error?: { code?: string; message?: string; turnId?: string };
}

export class Conversation {
  readonly caller: Caller;
  readonly sandboxId: string;
  readonly id: string;
  /** Replies that were read, with the cursor after them. */
  readonly read: Reply[] = [];
  #cursor: string | undefined;

  private constructor(caller: Caller, sandboxId: string, id: string) {
    this.caller = caller;
    this.sandboxId = sandboxId;
    this.id = id;
  }

  /** Recovers the session if its agent was not ready in time, as on an emulated CPU under load. */
  static async create(caller: Caller, sandboxId: string): Promise<Conversation> {
    const { status, body } = await call(caller, 'POST', `/v1/sandboxes/${sandboxId}/agent-sessions`);
    if ((body as Refused).error?.code !== 'agent_bridge_not_ready') {
      assert.equal(status, 201, JSON.stringify(body));
      return new Conversation(caller, sandboxId, (body as AgentSession).id);
    }
    const listed = await call(caller, 'GET', `/v1/agent-sessions?sandboxId=${sandboxId}`);
    const [session] = (listed.body as { sessions: AgentSession[] }).sessions;
    assert.ok(session);
    const conversation = new Conversation(caller, sandboxId, session.id);
    await conversation.recover();
    return conversation;
  }

  /** Null: no response arrived. */
  async call(method: 'GET' | 'POST', rest = '', body?: unknown): Promise<Answer | null> {
    return await call(this.caller, method, `/v1/agent-sessions/${this.id}${rest}`, body).catch(() => null);
  }

  /** The record, once a call succeeds. */
  async session(): Promise<AgentSession> {
    return await until('the session is read', async () => {
      const answer = await this.call('GET');
      return answer?.status === 200 ? (answer.body as AgentSession) : null;
    });
  }

  /** Resolves once the session is as described. */
  async until(what: string, isMet: (session: AgentSession) => boolean): Promise<AgentSession> {
    return await until(what, async () => {
      const session = await this.session();
      return isMet(session) ? session : null;
    });
  }

  async turn(turnId: string): Promise<AgentTurn | undefined> {
    return (await this.session()).recentTurns?.find((turn) => turn.turnId === turnId);
  }

  /** Sends until the API takes the message or says that its turn ended; returns the turn's id. */
  async deliver(text: string, requestKey: string): Promise<string> {
    const deadline = Date.now() + SETTLE_MS;
    for (;;) {
      const answer = await this.call('POST', '/messages', { text, requestKey });
      if (answer?.status === 202) return (answer.body as { turnId: string }).turnId;
      const code = (answer?.body as Refused | undefined)?.error?.code;
      assert.ok(Date.now() < deadline, `not delivered: ${JSON.stringify(answer?.body)}`);
      if (code === 'agent_bridge_stopped' || code === 'agent_bridge_not_ready') await this.recover();
      else if (code === 'sandbox_state_conflict') await this.wake();
      else if (answer !== null && answer.status < 500 && code !== 'agent_turn_active')
        assert.fail(JSON.stringify(answer.body));
      await delay(RETRY_MS);
    }
  }

  /** Waits until the turn has ended, as the API reports it. */
  async ended(turnId: string): Promise<AgentTurn> {
    let last: AgentTurn | undefined;
    return await until(
      () => `${turnId} has ended: ${JSON.stringify(last)}`,
      async () => {
        last = await this.turn(turnId);
        return last !== undefined && FINAL.includes(last.state) ? last : null;
      },
      SETTLE_MS,
    );
  }

  /** Reads replies after those read before. */
  async readOn(): Promise<Reply[]> {
    const query = this.#cursor === undefined ? '' : `?after=${this.#cursor}`;
    const answer = await this.call('GET', `/output${query}`);
    if (answer?.status !== 200) return [];
    const { messages, nextCursor } = answer.body as { messages: Reply[]; nextCursor: string };
    this.#cursor = nextCursor;
    this.read.push(...messages);
    return messages;
  }

  /** Fails unless the replies of the whole conversation begin with those that were read. */
  async assertReadAgain(): Promise<void> {
    const all: Reply[] = [];
    for (let cursor: string | undefined; ;) {
      const answer = await this.call('GET', `/output?limit=100${cursor === undefined ? '' : `&after=${cursor}`}`);
      assert.equal(answer?.status, 200, JSON.stringify(answer?.body));
      const page = answer.body as { messages: Reply[]; nextCursor: string; hasMore: boolean };
      all.push(...page.messages);
      if (!page.hasMore) break;
      cursor = page.nextCursor;
    }
    assert.deepEqual(all.slice(0, this.read.length).map(shown), this.read.map(shown));
    assert.equal(new Set(all.map(({ seq }) => seq)).size, all.length, 'a reply number was given twice');
  }

  async recover(): Promise<void> {
    await until(
      'the session is recovered',
      async () => {
        const answer = await this.call('POST', '/recover');
        const code = (answer?.body as Refused | undefined)?.error?.code;
        if (code === 'sandbox_state_conflict') await this.wake();
        return answer?.status === 200 ? true : null;
      },
      SETTLE_MS,
    );
  }

  /** Wakes the sandbox unless it is awake. */
  async wake(): Promise<void> {
    const { status } = await until('the sandbox is at rest', async () => {
      const sandbox = await getSandbox(this.caller, this.sandboxId).catch(() => null);
      return sandbox !== null && ['running', 'ready', 'stopped', 'failed'].includes(sandbox.status) ? sandbox : null;
    });
    if (status === 'stopped' || status === 'failed') await act(this.caller, this.sandboxId, 'wake');
    await waitForStatus(this.caller, this.sandboxId, ['running', 'ready'], SETTLE_MS);
  }

  /** Runs a shell command in the sandbox once it is awake; returns its output. */
  async run(command: string): Promise<string> {
    await this.wake();
    const { stdout, stderr, exitCode } = await exec(this.caller, this.sandboxId, command);
    assert.equal(exitCode, 0, `${command}: ${stderr}`);
    return stdout;
  }

  /** Ids of executed turns, in their order. */
  async effects(): Promise<string[]> {
    return (await this.run('cat ~/agent-effects 2>/dev/null || true')).split('\n').filter(Boolean);
  }
}

const shown = ({ seq, turnId, text }: Reply): unknown => [seq, turnId, text];
