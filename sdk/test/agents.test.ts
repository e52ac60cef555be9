// Agent sessions of the SDK on the real service and on the test server, with the same expectations.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { BerthError, type AgentReply, type AgentSession, type AgentTurn, type Berth } from '../src/index.ts';
import { failing, realWorld, worldInMemory, type World } from './worlds.ts';

async function textsOf(replies: AsyncIterable<AgentReply>): Promise<string[]> {
  const texts: string[] = [];
  for await (const { text } of replies) texts.push(text);
  return texts;
}

async function endOf(turn: AgentTurn): Promise<unknown[]> {
  const { state, reason } = await turn.done();
  return [state, reason];
}

for (const start of [realWorld, worldInMemory]) {
  describe(start === realWorld ? 'on the real service' : 'on the test server', () => {
    let world: World;
    let berth: Berth;
    before(async () => {
      world = await start();
      berth = world.client();
    });
    after(() => world.close());
    const startSession = async (): Promise<AgentSession> => {
      const sandbox = await berth.sandboxes.create({ agent: 'agent_two', machineSize: 'small' });
      return await sandbox.agents.start();
    };

    test('a started session is ready, fetched by id, and discovered newest first', async () => {
      const sandbox = await berth.sandboxes.create({ agent: 'agent_two', machineSize: 'small' });
      const session = await sandbox.agents.start();
      const { agent, agentLabel, bridgeState, sandboxId, turnId } = session.data;
      assert.deepEqual(
        [agent, agentLabel, bridgeState, sandboxId, turnId],
        ['agent_two', 'Claude Code', 'ready', sandbox.id, null],
      );
      assert.deepEqual(
        ['messages', 'output', 'recovery', 'of a later version'].map((one) => session.can(one)),
        [true, true, true, false],
      );
      assert.equal((await berth.agents.get(session.id)).data.createdAt, session.data.createdAt);
      const second = await berth.agents.start(sandbox.id);
      assert.deepEqual(
        (await sandbox.agents.list()).map(({ id }) => id),
        [second.id, session.id],
      );
      const page = await berth.agents.list({ sandboxId: sandbox.id, limit: 1 });
      assert.deepEqual([page.sessions.map(({ id }) => id), page.hasMore], [[second.id], true]);
      const all: string[] = [];
      for await (const { id } of berth.agents.all({ sandboxId: sandbox.id, limit: 1 })) all.push(id);
      assert.deepEqual(all, [second.id, session.id]);
      await assert.rejects(berth.agents.get('ags_nothing'), failing('agent_session_not_found', 404));
      await assert.rejects(berth.agents.start('sbx_nothing'), failing('sandbox_not_found', 404));
    });

    test('each turn yields its own replies and its end', async () => {
      const session = await startSession();
      const first = await session.send('say one\nsay two');
      assert.equal(first.replayed, false);
      assert.deepEqual(await textsOf(first.replies()), ['one', 'two']);
      assert.deepEqual(await endOf(first), ['completed', null]);
      const second = await session.send('say three\nfail');
      assert.deepEqual(await textsOf(second.replies()), ['three']);
      assert.deepEqual(await endOf(second), ['failed', 'agent_error']);
      assert.deepEqual(await textsOf(session.turn(first.id).replies()), ['one', 'two']);
      assert.deepEqual(await textsOf(first.replies()), [], 'a second read continues behind the last reply');

      const { turns } = await session.turns();
      assert.deepEqual(
        turns.map(({ turnId, text, number }) => [turnId, text, number]),
        [
          [first.id, 'say one\nsay two', 1],
          [second.id, 'say three\nfail', 2],
        ],
      );
      const page = await session.output({ limit: 2 });
      assert.deepEqual([page.messages.map(({ text }) => text), page.hasMore], [['one', 'two'], true]);
      const { nextCursor: after } = page;
      assert.deepEqual(await textsOf(session.turn(first.id, { after }).replies()), []);
      assert.deepEqual(await textsOf(session.turn(second.id, { after }).replies()), ['three']);
      const rest = await session.output({ after: page.nextCursor }, { waitSeconds: 25 });
      assert.deepEqual(
        rest.messages.map(({ text }) => text),
        ['three'],
      );
    });

    test('a reader that leaves in mid page continues behind the last reply', async () => {
      const session = await startSession();
      const turn = await session.send('say one\nsay two\nsay three');
      for await (const { text } of turn.replies()) {
        assert.equal(text, 'one');
        break;
      }
      assert.deepEqual(await textsOf(turn.replies()), ['two', 'three']);
    });

    for (const [decision, replies, end] of [
      ['accept', ['accept', 'after'], 'completed'],
      ['decline', ['decline', 'after'], 'completed'],
      ['cancel', [], 'canceled'],
    ] as const) {
      test(`an approval is shown to its handler, and ${decision} takes effect`, async () => {
        const session = await startSession();
        const turn = await session.send('ask Run the tests\nsay after');
        const asked: unknown[] = [];
        const handled = turn.replies({
          onApproval: ({ title, detail, kind }) => {
            asked.push([title, detail, kind].map((text) => typeof text));
            return decision;
          },
        });
        assert.deepEqual(await textsOf(handled), replies);
        assert.deepEqual(asked, [['string', 'string', 'string']]);
        assert.equal((await turn.done()).state, end);
      });
    }

    test('an approval left by its handler is asked once, and answered through the session', async () => {
      const session = await startSession();
      const turn = await session.send('ask Run the tests');
      let asked = 0;
      const handled = Promise.withResolvers<void>();
      const end = turn.done({
        onApproval: () => {
          asked += 1;
          handled.resolve();
          return undefined;
        },
      });
      await handled.promise;
      await session.refresh({ detail: 'full' });
      const { pendingInput, needsYou } = session.data;
      assert.deepEqual([needsYou, pendingInput?.workingDirectory], [true, '/code']);
      assert.ok((await berth.agents.list({ needsYou: true })).sessions.some(({ id }) => id === session.id));
      const requestId = pendingInput?.requestId ?? 0;
      await assert.rejects(session.answer(String(requestId), 'accept'), failing('agent_prompt_not_pending', 409));
      assert.equal((await session.answer(requestId, 'accept')).repeated, false);
      assert.equal((await session.answer(requestId, 'accept')).repeated, true);
      await assert.rejects(session.answer(requestId, 'decline'), failing('agent_prompt_not_pending', 409));
      assert.equal((await end).state, 'completed');
      assert.equal(asked, 1);
    });

    test('an interrupted turn is canceled, and the next message works', async () => {
      const session = await startSession();
      const turn = await session.send('say begun\nhang');
      await assert.rejects(session.send('say more'), failing('agent_turn_active', 409));
      const interrupted = await session.interrupt();
      assert.equal(interrupted.id, turn.id);
      assert.deepEqual(await endOf(interrupted), ['canceled', null]);
      await assert.rejects(session.interrupt(), failing('agent_turn_not_active', 409));
      assert.deepEqual(await textsOf((await session.send('say next')).replies()), ['next']);
    });

    test('a resend with the same key returns the first turn, and another text is refused', async () => {
      const session = await startSession();
      const requestKey = 'order-4711';
      const turn = await session.send('say once', { requestKey });
      await turn.done();
      const again = await session.send('say once', { requestKey });
      assert.deepEqual([again.id, again.replayed, again.state], [turn.id, true, 'completed']);
      assert.deepEqual(await textsOf(again.replies()), ['once']);
      await assert.rejects(session.send('say twice', { requestKey }), failing('request_key_conflict', 409));
    });

    test('a message of uncertain delivery runs once, when it is sent again with the key of the error', async () => {
      const session = await startSession();
      world.loseNextMessage();
      const error: unknown = await session.send('say once').catch((one: unknown) => one);
      assert.ok(failing('message_delivery_uncertain', 503)(error) && error instanceof BerthError);
      const { turnId = '', requestKey = '', retryable } = error;
      assert.equal(retryable, true);
      const again = await session.send('say once', { requestKey });
      assert.deepEqual([again.id, again.replayed], [turnId, true]);
      assert.deepEqual(await textsOf(session.turn(turnId).replies()), ['once']);
      assert.equal((await session.turns()).turns.length, 1);
    });

    test('a message without a key is not safe to repeat after an uncertain delivery', async () => {
      const session = await startSession();
      world.loseNextMessage();
      const error: unknown = await session.send('say once', { requestKey: null }).catch((one: unknown) => one);
      assert.ok(failing('message_delivery_uncertain', 503)(error) && error instanceof BerthError);
      assert.deepEqual([error.requestKey, error.retryable], [undefined, false]);
      assert.equal((await session.turn(error.turnId ?? '').done()).state, 'completed');
    });

    test('a stopped agent fails its turn, and recovers with its replies', async () => {
      const session = await startSession();
      const turn = await session.send('say before\nhang');
      for await (const { text } of turn.replies()) {
        assert.equal(text, 'before');
        world.stopAgent(session);
      }
      assert.deepEqual(await endOf(turn), ['failed', 'agent_ended']);
      await session.refresh();
      assert.deepEqual(
        [session.data.bridgeState, session.can('messages'), session.can('recovery')],
        ['stopped', false, true],
      );
      await assert.rejects(session.send('say x'), failing('agent_bridge_stopped', 409));
      assert.equal((await session.recover()).data.bridgeState, 'ready');
      assert.equal((await session.recover()).data.bridgeState, 'ready');
      assert.deepEqual(await textsOf((await session.send('say after')).replies()), ['after']);
      assert.equal((await session.output()).messages.length, 2);
    });

    test('a held refresh returns when the session changes', async () => {
      const session = await startSession();
      const { revision } = session.data;
      const held = session.refresh({ waitSeconds: 25 });
      const other = await berth.agents.get(session.id);
      await (await other.send('say x')).done();
      assert.notEqual((await held).data.revision, revision);
    });

    test('a turn goes on while its reader waits through a sleep of the sandbox', async () => {
      const session = await startSession();
      const sandbox = await berth.sandboxes.get(session.data.sandboxId);
      const turn = await session.send('say one\nask Run the tests');
      const read: string[] = [];
      const reading = (async () => {
        for await (const { text } of turn.replies({ onApproval: () => undefined })) read.push(text);
      })();
      await sandbox.sleep();
      await session.refresh();
      assert.deepEqual([session.data.bridgeState, session.can('output')], ['suspended', false]);
      await assert.rejects(session.output(), failing('sandbox_state_conflict', 409));
      await sandbox.wake();
      await session.refresh();
      await session.answer(session.data.pendingInput?.requestId ?? 0, 'accept');
      await reading;
      assert.deepEqual(read, ['one', 'accept']);
      await sandbox.destroy();
      await session.refresh();
      assert.equal(session.data.bridgeState, 'gone');
    });

    test('a call that follows a turn ends on its signal and at its timeout', async () => {
      const session = await startSession();
      const turn = await session.send('hang');
      const reason = new Error('not any more');
      const aborted = new AbortController();
      const waiting = turn.done({ signal: aborted.signal });
      aborted.abort(reason);
      await assert.rejects(waiting, reason);
      await assert.rejects(turn.done({ timeoutMs: 200 }), failing('timeout'));
      await assert.rejects(textsOf(turn.replies({ timeoutMs: 200 })), failing('timeout'));
      await session.interrupt();
    });
  });
}
