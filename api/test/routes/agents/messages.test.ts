// Messages to agents: each runs at most once, whatever is lost on the way.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test, type TestContext } from 'node:test';
import pino from 'pino';
import { openControlPlane } from '../../../src/control-plane/control-plane.ts';
import { openServer } from '../../../src/control-plane/server.ts';
import { listen } from '../../../src/http/app.ts';
import { AGENT_TURNS_KEPT } from '@berth/contract/route/limits.ts';
import { sql } from 'kysely';
import { newId } from '../../../src/store/database/ids.ts';
import { makeKeyRow } from '../../world/people-rows.ts';
import { startApi, type Answer, type TestApi } from '../../world/api.ts';
import { AgentSessionUnderTest, assertRefused } from './agent-session.ts';
import { type AgentCall } from '../../world/guests/exec-front.ts';
import { ExecRefusal } from '../../world/guests/exec-refusal.ts';

const KEY = 'request-key.1';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());
beforeEach(() => {
  api.agents.before = () => undefined;
  api.agents.after = () => undefined;
});

const create = (): Promise<AgentSessionUnderTest> => AgentSessionUnderTest.create(api);
const onMessage = (run: () => void | Promise<void>) => async (call: AgentCall) => {
  if (call.verb === 'messages') await run();
};
/** The next response to a message is lost after it took effect. */
function loseResponse(): void {
  api.agents.after = onMessage(() => {
    api.agents.after = () => undefined;
    throw new ExecRefusal('guest_unreachable', 'the guest did not respond');
  });
}
/** The next message is lost before it takes effect. */
function loseMessage(): void {
  api.agents.before = onMessage(() => {
    api.agents.before = () => undefined;
    throw new ExecRefusal('guest_unreachable', 'the guest did not respond');
  });
}

async function turnRows({ id }: AgentSessionUnderTest): Promise<number> {
  return (await api.db.selectFrom('agent_turn').select('id').where('session_id', '=', id).execute()).length;
}

/** A second replica on the same database; returns its URL. */
async function replica(t: TestContext): Promise<string> {
  const { plans, settings, secretKey, lifecycle, mailer } = api.context;
  const shared = { databaseUrl: api.databaseUrl, hostUrl: api.front.url, hostToken: api.host.token };
  const config = { ...shared, databaseConnections: 5, plans, settings, secretKey, oidc: null };
  const other = await openControlPlane(config, pino({ level: 'silent' }), { lifecycle, mailer, payments: null });
  const app = await openServer(other);
  t.after(async () => {
    app.server.closeAllConnections();
    await app.close();
    await other.close();
  });
  const { port } = await listen(app, '127.0.0.1', 0);
  return `http://127.0.0.1:${port}`;
}

test('a message starts a turn whose state the session shows until its end', async () => {
  const session = await create();
  const sent = await session.send('Say hello');
  assert.equal(sent.status, 202);
  assert.deepEqual(Object.keys(sent.body).toSorted(), ['state', 'turnId']);
  assert.equal(sent.body.state, 'running');
  assert.deepEqual(
    session.guest.messages.map(({ text, turnId }) => [text, turnId]),
    [['Say hello', sent.body.turnId]],
  );
  const running = (await session.get()).body;
  assert.deepEqual([running.turnId, running.turnState], [sent.body.turnId, 'running']);
  assert.equal(running.communication.status, 'busy');

  session.guest.end();
  const ended = (await session.get()).body;
  assert.equal(ended.turnState, 'completed');
  assert.equal(ended.communication.status, 'available');
  assert.deepEqual(
    ended.recentTurns.map(({ turnId, state }: { turnId: string; state: string }) => [turnId, state]),
    [[sent.body.turnId, 'completed']],
  );
  assert.deepEqual(
    (await session.events()).map(({ kind }) => kind),
    ['agent_session_created', 'agent_message_sent', 'agent_turn_ended'],
  );
});

test('no row, event or log has the text of a message, reply or approval', async () => {
  const session = await create();
  const secret = (what: string): string => api.secret(`unguessable words of ${what}`, what);
  const text = secret('a message');
  api.agents.promptText = { title: secret('a title'), detail: secret('a detail') };
  const turnId = await session.turn(text, KEY);
  session.guest.reply(secret('a reply'));
  const requestId = session.guest.ask();
  const reads = (): Promise<Answer[]> =>
    Promise.all([session.get('?detail=full'), session.output(), session.call('GET', '/turns')]);
  const shown = JSON.stringify((await reads()).map(({ body }) => body));
  for (const what of ['a message', 'a title', 'a detail', 'a reply']) assert.ok(shown.includes(secret(what)), what);
  assertRefused(await session.send(`${text}, again`), 409, 'agent_turn_active');
  assertRefused(await session.answer(requestId, text), 400, 'invalid_request');

  // A guest that sends its texts in the wrong places.
  const { view } = session.guest;
  for (const wrong of [
    { ...view, prompt: { ...view.prompt, title: secret('a title'), kind: secret('a kind') } },
    { ...view, turn: { ...view.turn, reason: secret('a reason') } },
    { ...view, bridge: secret('a bridge'), bridgeReason: secret('a bridge reason') },
  ]) {
    api.agents.after = ({ verb }) => {
      if (verb === '') session.guest.view = wrong as typeof view;
    };
    await reads();
    session.guest.view = view;
  }
  api.agents.after = () => undefined;
  assert.equal((await session.answer(requestId, 'accept')).status, 200);
  session.guest.end();
  assert.equal((await session.get()).body.turnId, turnId);
  await api.scanSecrets();
});

test('a second message is refused while a turn is active, and never queued', async () => {
  const session = await create();
  await session.turn('first');
  assertRefused(await session.send('second'), 409, 'agent_turn_active');
  session.guest.end();
  await session.turn('third');
  assert.deepEqual(
    session.guest.messages.map(({ text }) => text),
    ['first', 'third'],
  );
});

test('30 messages at once during a turn are refused and have no effect', async () => {
  const session = await create();
  await session.turn('first');
  const history = (await session.call('GET', '/turns')).body;
  const sent = await Promise.all(
    Array.from({ length: 30 }, (_, n) => session.send(`more ${n}`, n % 2 === 0 ? `${KEY}.${n}` : undefined)),
  );
  for (const one of sent) assertRefused(one, 409, 'agent_turn_active');
  assert.deepEqual((await session.call('GET', '/turns')).body, history);
  assert.equal(await turnRows(session), 1);
  session.guest.end();
  assert.equal((await session.get()).body.turnState, 'completed');
  assert.equal(session.guest.messages.length, 1);
});

test('of 30 messages at once to an idle session one runs, however fast its turn ends', async () => {
  const session = await create();
  await session.turn('first');
  session.guest.end();
  const all = Promise.withResolvers<void>();
  let looks = 0;
  api.agents.before = async ({ verb }) => {
    if (verb !== '') return;
    looks += 1;
    if (looks === 30) all.resolve();
    await all.promise;
  };
  api.agents.after = onMessage(() => session.guest.end());
  const sent = await Promise.all(Array.from({ length: 30 }, (_, n) => session.send(`next ${n}`)));
  assert.equal(sent.filter(({ status }) => status === 202).length, 1);
  for (const one of sent.filter(({ status }) => status !== 202)) assertRefused(one, 409, 'agent_turn_active');
  assert.equal(session.guest.messages.length, 2);
});

test('a message that waits for a slow guest until the turn has ended is refused; the next one is not', async (t) => {
  api.agents.clock = () => Date.now();
  t.after(() => (api.agents.clock = null));
  const session = await create();
  await session.turn('first');
  api.agents.before = ({ verb }) => {
    if (verb === '') session.guest.end();
    api.agents.before = () => undefined;
  };
  assertRefused(await session.send('during'), 409, 'agent_turn_active');
  await session.turn('after');
  session.guest.end();
  api.agents.clock = () => Date.now() + 60_000;
  await session.turn('a minute after an end that nobody has read');
  assert.deepEqual(
    session.guest.messages.map(({ text }) => text),
    ['first', 'after', 'a minute after an end that nobody has read'],
  );
});

test('a resend with the same key and text returns the turn and its state, and runs nothing', async () => {
  const session = await create();
  const turnId = await session.turn('once', KEY);
  assert.deepEqual((await session.send('once', KEY)).body, { turnId, state: 'running', replayed: true });
  session.guest.end();
  await session.get();
  assert.deepEqual((await session.send('once', KEY)).body, { turnId, state: 'completed', replayed: true });
  assert.equal(session.guest.messages.length, 1);
  const conflict = assertRefused(await session.send('other', KEY), 409, 'request_key_conflict');
  assert.match(conflict.error.message, new RegExp(turnId));
});

test('keys belong to a session and a credential', async () => {
  const [session, other] = [await create(), await create()];
  const turnId = await session.turn('once', KEY);
  assert.notEqual(await other.turn('once', KEY), turnId);
  session.guest.end();
  const { token } = await makeKeyRow(api.db, { orgId: api.orgId, createdBy: api.userId });
  const second = await session.send('once', KEY, { token });
  assert.equal(second.status, 202, JSON.stringify(second.body));
  assert.notEqual(second.body.turnId, turnId);
});

test('a key sent with an access token belongs to its sign-in', async () => {
  const session = await create();
  const { token, loginId } = await api.makeSession({ role: 'owner' });
  const first = await session.send('once', KEY, { token });
  const row = await session.turnRow(first.body.turnId);
  assert.deepEqual([row?.caller_kind, row?.caller_id], ['session', loginId]);
});

test('the same key sent 20 times at once is one turn', async () => {
  const session = await create();
  const sent = await Promise.all(Array.from({ length: 20 }, () => session.send('once', KEY)));
  assert.deepEqual(new Set(sent.map(({ status }) => status)), new Set([202]));
  assert.equal(new Set(sent.map(({ body }) => body.turnId)).size, 1);
  assert.equal(sent.filter(({ body }) => body.replayed === undefined).length, 1);
  assert.equal(session.guest.messages.length, 1);
});

test('one key sent 20 times at once through two replicas is one turn', async (t) => {
  const session = await create();
  const urls = [api.url, await replica(t)];
  const sent = await Promise.all(
    Array.from({ length: 20 }, async (_, number) => {
      const response = await fetch(`${urls[number % 2]}/v1/agent-sessions/${session.id}/messages`, {
        method: 'POST',
        headers: { authorization: `Bearer ${api.token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ text: 'once', requestKey: KEY }),
      });
      return { status: response.status, body: (await response.json()) as { turnId: string; replayed?: true } };
    }),
  );
  assert.deepEqual(new Set(sent.map(({ status }) => status)), new Set([202]), JSON.stringify(sent));
  assert.equal(new Set(sent.map(({ body }) => body.turnId)).size, 1);
  assert.equal(sent.filter(({ body }) => body.replayed === undefined).length, 1);
  assert.equal(session.guest.messages.length, 1);
});

for (const [what, lose, runs] of [
  ['lost on its way back', loseResponse, 1],
  ['lost on its way there', loseMessage, 0],
] as const) {
  test(`a keyed message ${what} is uncertain; its resend runs it once in all`, async () => {
    const session = await create();
    lose();
    const { error } = assertRefused(await session.send('once', KEY), 503, 'message_delivery_uncertain');
    assert.match(error.turnId, /^trn_/);
    assert.equal(session.guest.messages.length, runs);
    const resent = await session.send('once', KEY);
    assert.deepEqual(resent.body, { turnId: error.turnId, state: 'running', replayed: true });
    assert.equal(session.guest.messages.length, 1);
    const sent = (await session.events()).filter(({ kind }) => kind === 'agent_message_sent');
    assert.equal(sent.length, 1);
  });

  test(`a message without a key ${what}: an inspection makes its fate definite`, async () => {
    const session = await create();
    lose();
    const { error } = assertRefused(await session.send('once'), 503, 'message_delivery_uncertain');
    await session.age(error.turnId);
    const inspected = (await session.get()).body;
    assert.equal(inspected.turnId, error.turnId);
    const outcome = runs === 1 ? ['running', null] : ['failed', 'not_delivered'];
    assert.deepEqual([inspected.turnState, inspected.turnReason], outcome);
    assert.equal((await session.send('again')).status, runs === 1 ? 409 : 202);
  });
}

test('a message that arrives after an inspection never runs', async () => {
  const session = await create();
  loseMessage();
  const { error } = assertRefused(await session.send('late'), 503, 'message_delivery_uncertain');
  await session.age(error.turnId);
  assert.equal((await session.get()).body.turnReason, 'not_delivered');
  const { runId } = session.guest.view;
  const call = { vmId: session.sandboxId, sessionId: session.id, verb: 'messages', turnId: undefined };
  const body = { turnId: error.turnId, runId, text: 'late', author: '', keyed: false };
  await assert.rejects(
    api.agents.answer({ ...call, query: new URLSearchParams(), body }, new AbortController().signal),
    { code: 'agent_turn_void' },
  );
  assert.equal(session.guest.messages.length, 0);
});

test('a fresh delivery is not declared undelivered by a poller', async () => {
  const session = await create();
  let polled = '';
  api.agents.before = onMessage(async () => {
    polled = (await session.get()).body.turnState;
  });
  const turnId = await session.turn();
  assert.notEqual(polled, 'failed');
  assert.equal((await session.turnRow(turnId))?.state, 'running');
});

const refusals: { readonly [what: string]: (session: AgentSessionUnderTest) => Promise<[number, string]> } = {
  'refused because a turn is active': async (session) => {
    await session.turn('first');
    return [409, 'agent_turn_active'];
  },
  'refused by the guest as another turn began': async (session) => {
    api.agents.before = onMessage(() => void session.guest.begin(newId('agentTurn'), 'first', ''));
    return [409, 'agent_turn_active'];
  },
  'refused by a stopped bridge': async (session) => {
    session.guest.change({ bridge: 'stopped', bridgeReason: 'idle' });
    return [409, 'agent_bridge_stopped'];
  },
  'not sent by the host': async () => {
    api.agents.before = onMessage(() => {
      throw new ExecRefusal('vm_not_running', 'the VM does not run');
    });
    return [503, 'sandbox_unreachable'];
  },
};
for (const [what, prepare] of Object.entries(refusals)) {
  for (const text of ['second', 'another']) {
    const which = text === 'second' ? 'the same' : 'another';
    test(`a message ${what} leaves its key free: ${which} text is new`, async () => {
      const session = await create();
      const [status, code] = await prepare(session);
      const before = await turnRows(session);
      assertRefused(await session.send('second', KEY), status, code);
      assert.equal(await turnRows(session), before);
      api.agents.before = () => undefined;
      if (session.guest.view.turn !== null) session.guest.end();
      session.guest.change({ bridge: 'ready', bridgeReason: null });
      const sent = await session.send(text, KEY);
      assert.deepEqual([sent.status, sent.body.replayed], [202, undefined], JSON.stringify(sent.body));
      assert.equal(session.guest.messages.at(-1)?.text, text);
      assert.equal(session.guest.messages.filter((message) => message.text === text).length, 1);
    });
  }
}

for (const [other, outcome] of Object.entries({
  taken: 'is uncertain if the other call is taken',
  'ends first': 'frees the key if the other call has failed',
  'ends last': 'frees the key, and the other call never runs',
})) {
  test(`a refusal of one of two calls with the same key ${outcome}`, async () => {
    const session = await create();
    const [arrived, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let dispatches = 0;
    api.agents.before = async ({ verb }) => {
      if (verb === 'messages') dispatches += 1;
      if (verb === 'messages' && dispatches === 1) {
        arrived.resolve();
        await released.promise;
      } else if (verb === 'messages' && dispatches === 2) {
        // A turn that the API does not know refuses the second call.
        session.guest.begin(newId('agentTurn'), 'other', '');
      } else if (verb === 'void') {
        session.guest.end();
        if (other !== 'taken') return;
        released.resolve();
        await first;
      }
    };
    api.agents.after = async ({ verb }) => {
      if (verb !== 'void' || other !== 'ends first') return;
      released.resolve();
      await first;
    };
    const first = session.send('once', KEY);
    await arrived.promise;
    const second = await session.send('once', KEY);
    released.resolve();
    if (other === 'taken') {
      assertRefused(second, 503, 'message_delivery_uncertain');
      assert.equal((await first).body.state, 'running');
      assert.equal((await session.send('once', KEY)).body.replayed, true);
    } else {
      assertRefused(second, 409, 'agent_turn_active');
      assert.equal((await first).body.state, 'failed');
      assert.equal((await session.send('once', KEY)).body.replayed, undefined);
    }
    assert.equal(session.guest.messages.filter(({ text }) => text === 'once').length, 1);
  });
}

for (const forgets of [false, true]) {
  test(`a boot of the disk fails a ${forgets ? 'forgotten' : 'kept'} turn, and its key runs nothing`, async () => {
    const session = await create();
    loseResponse();
    const { error } = assertRefused(await session.send('once', KEY), 503, 'message_delivery_uncertain');
    api.agents.boot(session.sandboxId, { forgets });
    session.guest.change({ bridge: 'ready' });
    assert.deepEqual((await session.send('once', KEY)).body, { turnId: error.turnId, state: 'failed', replayed: true });
    assert.equal((await session.turnRow(error.turnId))?.reason, 'machine_lost');
    assert.equal(session.guest.messages.length, 1);
    await session.turn('next');
  });
}

test('a message for an earlier run of the guest is refused by the guest', async () => {
  const session = await create();
  let boots = true;
  api.agents.before = onMessage(() => {
    if (boots) api.agents.boot(session.sandboxId);
    boots = false;
  });
  assertRefused(await session.send('late', KEY), 409, 'agent_bridge_stopped');
  assert.equal(session.guest.messages.length, 0);
});

test('a stopped bridge is named, and recovery makes the session usable', async () => {
  const session = await create();
  session.guest.change({ bridge: 'stopped', bridgeReason: 'idle' });
  const { error } = assertRefused(await session.send('hello'), 409, 'agent_bridge_stopped');
  assert.match(error.message, /recover/);
  const recovered = await session.call('POST', '/recover');
  assert.equal(recovered.body.bridgeState, 'ready', JSON.stringify(recovered.body));
  await session.turn();
});

test('a bridge without keyed messages refuses keys before anything is stored', async () => {
  const session = await create();
  session.guest.change({ bridgeVersion: 6 });
  await session.get();
  assertRefused(await session.send('hello', KEY), 409, 'session_retry_upgrade_required');
  const rows = await api.db.selectFrom('agent_turn').selectAll().where('session_id', '=', session.id).execute();
  assert.deepEqual(rows, []);
  assert.equal((await session.send('hello')).status, 202);
});

for (const [what, body] of Object.entries({
  'no text': {},
  'an empty text': { text: '' },
  'a text over the limit': { text: 'a'.repeat(131_073) },
  'a short key': { text: 'a', requestKey: '1234567' },
  'a long key': { text: 'a', requestKey: 'k'.repeat(129) },
  'a key with a space': { text: 'a', requestKey: 'with space' },
  'an unknown field': { text: 'a', model: 'x' },
})) {
  test(`${what} is 400`, async () => {
    const session = await create();
    assertRefused(await session.call('POST', '/messages', { body }), 400, 'invalid_request');
  });
}

test('a text of the limit is taken', async () => {
  const session = await create();
  await session.turn('\u{1f9ad}'.repeat(65_536));
});

test('a session keeps its last 1,000 turns, and forgets the keys of older ones', async () => {
  const session = await create();
  const first = await session.turn('first', KEY);
  session.guest.end();
  await session.get();
  await sql`
    insert into agent_turn (id, session_id, sandbox_id, caller_kind, caller_id, caller_user_id, text_hmac, state,
      run_id, created_at, dispatched_at, started_at, ended_at)
    select 'trn_filler' || n, session_id, sandbox_id, caller_kind, caller_id, caller_user_id, text_hmac, state,
      run_id, now(), now(), now(), now()
    from agent_turn, generate_series(1, ${AGENT_TURNS_KEPT.perSession}::int) n where id = ${first}`.execute(api.db);
  const last = await session.turn('last');
  const rows = await api.db.selectFrom('agent_turn').select('id').where('session_id', '=', session.id).execute();
  assert.equal(rows.length, AGENT_TURNS_KEPT.perSession);
  assert.equal(await session.turnRow(first), undefined);
  assert.equal((await session.turnRow(last))?.state, 'running');
});
