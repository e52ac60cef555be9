// A session of a test API: the public calls on it, and its guest.
import assert from 'node:assert/strict';
import type { SandboxRow } from '../../../src/store/database/schema.ts';
import type { GuestSession } from '../../world/guests/agent-guests.ts';
import type { Answer, CallOptions, TestApi } from '../../world/api.ts';

export class AgentSessionUnderTest {
  readonly api: TestApi;
  readonly sandboxId: string;
  readonly id: string;

  constructor(api: TestApi, sandboxId: string, id: string) {
    this.api = api;
    this.sandboxId = sandboxId;
    this.id = id;
  }

  /** Creates a session by the API, in a new sandbox unless one is given. */
  static async create(api: TestApi, sandbox?: SandboxRow, options: CallOptions = {}): Promise<AgentSessionUnderTest> {
    const { id } = sandbox ?? (await api.makeSandbox('ready'));
    const created = await api.call('POST', `/v1/sandboxes/${id}/agent-sessions`, options);
    assert.equal(created.status, 201, JSON.stringify(created.body));
    return new AgentSessionUnderTest(api, id, created.body.id);
  }

  get guest(): GuestSession {
    return this.api.agents.session(this.sandboxId, this.id);
  }

  call(method: 'GET' | 'POST', rest = '', options: CallOptions = {}): Promise<Answer> {
    return this.api.call(method, `/v1/agent-sessions/${this.id}${rest}`, options);
  }

  get(query = '', options: CallOptions = {}): Promise<Answer> {
    return this.call('GET', query, options);
  }

  send(text: string, requestKey?: string, options: CallOptions = {}): Promise<Answer> {
    const body = { text, ...(requestKey === undefined ? {} : { requestKey }) };
    return this.call('POST', '/messages', { ...options, body });
  }

  /** Sends a message that must be taken; returns its turn. */
  async turn(text = 'hello', requestKey?: string): Promise<string> {
    const sent = await this.send(text, requestKey);
    assert.equal(sent.status, 202, JSON.stringify(sent.body));
    return sent.body.turnId;
  }

  output(query = '', options: CallOptions = {}): Promise<Answer> {
    return this.call('GET', `/output${query}`, options);
  }

  answer(requestId: unknown, decision = 'accept', options: CallOptions = {}): Promise<Answer> {
    return this.call('POST', '/answer', { ...options, body: { requestId, decision } });
  }

  events(): Promise<{ kind: string; details: Record<string, unknown>; actor_kind: string; actor_id: string | null }[]> {
    return this.api.db
      .selectFrom('activity')
      .select(['kind', 'details', 'actor_kind', 'actor_id'])
      .where('subject_id', '=', this.id)
      .orderBy('seq')
      .execute();
  }

  turnRow(turnId: string) {
    return this.api.db.selectFrom('agent_turn').selectAll().where('id', '=', turnId).executeTakeFirst();
  }

  /** Moves the dispatch of a turn into the past, beyond any delivery. */
  async age(turnId: string): Promise<void> {
    const at = new Date(Date.now() - 60_000);
    await this.api.db.updateTable('agent_turn').set({ dispatched_at: at }).where('id', '=', turnId).execute();
  }
}

/** The refusal has the code and status; returns its body. */
export function assertRefused({ status, body }: Answer, expectedStatus: number, code: string): Answer['body'] {
  assert.equal(body.error?.code, code, JSON.stringify(body));
  assert.equal(status, expectedStatus);
  return body;
}
