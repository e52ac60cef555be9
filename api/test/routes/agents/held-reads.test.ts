// Held reads of agent sessions (`Prefer: wait`): their places, and the calls beside them.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { HOLDS } from '@berth/contract/route/limits.ts';
import { LONG_RUN } from '../../../../os/test/long-run.ts';
import { startApi, type Answer, type TestApi, type TestOrg } from '../../world/api.ts';
import { untilTrue } from '../../../../os/test/until.ts';
import { AgentSessionUnderTest } from './agent-session.ts';

const ORGS = 10;
/** A loaded machine does not start 2,000 reads before the first of them ends. */
const READS_PER_ORG = LONG_RUN ? 200 : 40;
const HELD = { prefer: 'wait=25' };
const isHeld = ({ headers }: Answer): boolean => headers.get('preference-applied') === 'wait=25';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

class Tenant {
  readonly token: string;
  readonly session: AgentSessionUnderTest;
  /** Revision of the session before its first turn. */
  readonly revision: string;

  constructor({ token }: TestOrg, session: AgentSessionUnderTest, revision: string) {
    this.token = token;
    this.session = session;
    this.revision = revision;
  }

  static async make(): Promise<Tenant> {
    const org = await api.makeOrg();
    const sandbox = await api.makeSandbox('ready', { org_id: org.orgId, project_id: org.projectId });
    const session = await AgentSessionUnderTest.create(api, sandbox, { token: org.token });
    return new Tenant(org, session, (await session.get('', { token: org.token })).body.revision);
  }

  send = (text: string): Promise<Answer> => this.session.send(text, undefined, { token: this.token });
  get = (headers = {}, signal?: AbortSignal): Promise<Answer> =>
    this.session.get(`?revision=${this.revision}`, { token: this.token, headers, ...(signal && { signal }) });
  output = (headers = {}, signal?: AbortSignal): Promise<Answer> =>
    this.session.output('', { token: this.token, headers, ...(signal && { signal }) });

  /** Readers of the session and of its output, half of each, held until there is something new. */
  hold(readers: number, signal?: AbortSignal): { states: Promise<Answer>[]; pages: Promise<Answer>[] } {
    const many = (read: () => Promise<Answer>, isNew: (answer: Answer) => boolean): Promise<Answer>[] =>
      Array.from({ length: readers / 2 }, async () => {
        for (;;) {
          const answer = await read();
          assert.equal(answer.status, 200, JSON.stringify(answer.body));
          assert.ok(isHeld(answer), 'there is a place');
          if (isNew(answer)) return answer;
        }
      });
    return {
      states: many(
        () => this.get(HELD, signal),
        ({ body }) => body.turnState !== null,
      ),
      pages: many(
        () => this.output(HELD, signal),
        ({ body }) => body.messages.length > 0,
      ),
    };
  }
}

/** Waits until the guests hold as many calls. */
async function untilHeld(reads: number): Promise<void> {
  await untilTrue(`${reads} reads are held`, () => {
    if (api.context.holds.taken !== reads) return false;
    return api.agents.calls.filter(({ query }) => query.has('waitMs')).length >= reads;
  });
}

test('the messages of ten orgs with held reads pass, and each held read gets what is new', async () => {
  const tenants = await Promise.all(Array.from({ length: ORGS }, () => Tenant.make()));
  api.agents.calls.length = 0;
  const reads = tenants.map((tenant) => ({ tenant, ...tenant.hold(READS_PER_ORG) }));
  await untilHeld(ORGS * READS_PER_ORG);

  for (const { tenant } of reads) assert.equal((await tenant.get()).body.turnState, null);
  for (const { tenant, states } of reads) {
    assert.equal((await tenant.send('hello')).status, 202);
    for (const read of states) assert.equal((await read).body.turnState, 'running');
  }
  for (const [number, { tenant, pages }] of reads.entries()) {
    tenant.session.guest.reply(`reply ${number}`);
    for (const read of pages) {
      assert.deepEqual(
        (await read).body.messages.map(({ text }: { text: string }) => text),
        [`reply ${number}`],
      );
    }
  }
  assert.equal(api.context.holds.taken, 0);
});

test('reads above the places of their sandbox or org respond at once and say so; other orgs are held', async () => {
  const [full, other] = [await Tenant.make(), await Tenant.make()];
  await full.send('hello');
  const { orgId } = (await full.get()).body;
  const places: (() => void)[] = [];
  const fill = (sandboxOf: (number: number) => string): number => {
    const before = places.length;
    for (;;) {
      const place = api.context.holds.take({ orgId, sandboxId: sandboxOf(places.length), callerId: 'caller' });
      if (place === null) return places.length - before;
      places.push(place);
    }
  };
  const assertNotHeld = async (): Promise<void> => {
    for (const answer of [await full.output(HELD), await full.get(HELD)])
      assert.deepEqual([answer.status, answer.headers.get('preference-applied')], [200, null]);
  };
  assert.equal(
    fill(() => full.session.sandboxId),
    HOLDS.perSandbox,
  );
  await assertNotHeld();
  places.pop()?.();
  fill((number) => `sandbox-${number}`);
  assert.equal(places.length, HOLDS.perReplica / 2);
  await assertNotHeld();
  assert.equal((await full.send('while the places are taken')).body.error.code, 'agent_turn_active');

  api.agents.calls.length = 0;
  const read = other.get(HELD);
  await untilTrue('the read of another org is held', () => api.agents.calls.some(({ query }) => query.has('waitMs')));
  await other.send('hello');
  assert.ok(isHeld(await read));
  for (const release of [...places, ...places]) release();
  assert.equal(api.context.holds.taken, 0, 'a place is released once');
});

test('held reads whose callers disconnect free their places and end in the guest', async () => {
  const tenant = await Tenant.make();
  const { agents } = api.front;
  let left = 0;
  api.front.agents = (call, gone) => {
    if (call.query.has('waitMs')) gone.addEventListener('abort', () => (left += 1), { once: true });
    return agents(call, gone);
  };
  const callers = new AbortController();
  api.agents.calls.length = 0;
  const { states, pages } = tenant.hold(READS_PER_ORG, callers.signal);
  const failed = Promise.allSettled([...states, ...pages]);
  await untilHeld(READS_PER_ORG);
  callers.abort();
  assert.ok((await failed).every(({ status }) => status === 'rejected'));
  await untilTrue('the places are free', () => api.context.holds.taken === 0);
  await untilTrue('the guest holds none', () => left === READS_PER_ORG);
  api.front.agents = agents;
});

for (const [prefer, applied] of [
  ['wait=1', 'wait=1'],
  ['WAIT = 1', 'wait=1'],
  ['wait=1; because="of this", wait=25', 'wait=1'],
  ['respond-async, handling=lenient, wait=1', 'wait=1'],
  ['wait=soon, wait=1', 'wait=1'],
  ['wait=0', null],
  ['wait=0, wait=25', null],
  ['wait=-1', null],
  ['wait=1.5', null],
  ['wait=abc', null],
  ['wait=1000000', null],
  ['wait="25"', null],
  ['wait', null],
  ['waiting=25', null],
  ['respond-async', null],
  ['', null],
] as const) {
  test(`Prefer: ${prefer} ${applied === null ? 'holds no read' : `holds a read for ${applied}`}`, async () => {
    const tenant = await Tenant.make();
    for (const answer of await Promise.all([tenant.output({ prefer }), tenant.get({ prefer })]))
      assert.deepEqual([answer.status, answer.headers.get('preference-applied')], [200, applied]);
  });
}

for (const seconds of ['26', '60', '999999']) {
  test(`Prefer: wait=${seconds} holds a read for 25 s`, async () => {
    const tenant = await Tenant.make();
    api.agents.calls.length = 0;
    const read = tenant.output({ prefer: `wait=${seconds}` });
    await untilHeld(1);
    assert.equal(api.agents.calls.at(-1)?.query.get('waitMs'), '25000');
    await tenant.send('hello');
    tenant.session.guest.reply('news');
    assert.ok(isHeld(await read));
  });
}
