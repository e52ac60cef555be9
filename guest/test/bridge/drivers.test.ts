// The real agents behind the driver interface, with scripted models.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { untilTrue } from '../../../os/test/until.ts';
import { ModelServer } from '../../../e2e/model-servers/server.ts';
import { AgentHome, type AgentSession } from './agent-session.ts';

const hasCode = (code: string) => (error: unknown) => (error as { code?: unknown }).code === code;

let models: ModelServer;
before(async () => {
  models = await ModelServer.start();
});
after(() => models.close());

for (const agent of ['codex', 'claude'] as const) {
  // The pinned packages are those of x86-64.
  describe(agent, { skip: process.arch !== 'x64' }, () => {
    let home: AgentHome;
    let session: AgentSession;
    before(async () => {
      home = await AgentHome.create(agent);
      session = await home.start({ gatewayUrl: models.url });
    });
    after(() => home.remove());

    test('a turn returns its replies and calls the model once', async () => {
      assert.deepEqual(await session.run(`${agent}-turn`, '@say hello'), { state: 'completed' });
      assert.deepEqual(session.replies.splice(0), ['hello']);
      assert.equal(models.callsFor(`${agent}-turn`), 1);
      assert.ok(session.signs > 0);
    });

    test('accept runs the command, and replies come before and after it', async () => {
      const turn = session.run(`${agent}-accept`, '@say first', '@run touch a; echo ran', '@result', '@say last');
      const prompt = await session.prompt();
      assert.equal(prompt.kind, 'command');
      assert.match(prompt.detail, /touch a; echo ran/);
      assert.equal(prompt.workingDirectory, home.work);
      prompt.answer('accept');
      assert.deepEqual(await turn, { state: 'completed' });
      const [first, result, last] = session.replies.splice(0);
      assert.deepEqual([first, last], ['first', 'last']);
      assert.match(result ?? '', /ran/);
      session.prompts.length = 0;
    });

    test('decline skips the command and tells the model; cancel ends the turn', async () => {
      const declined = session.run(`${agent}-decline`, '@run touch declined', '@result');
      (await session.prompt()).answer('decline');
      assert.deepEqual(await declined, { state: 'completed' });
      assert.match(session.replies.splice(0).join(), /declined|rejected/i);

      const canceled = session.run(`${agent}-cancel`, '@run touch canceled', '@say not reached');
      (await session.prompt(2)).answer('cancel');
      assert.deepEqual(await canceled, { state: 'canceled' });
      assert.deepEqual(session.replies.splice(0), []);
      assert.equal(models.callsFor(`${agent}-cancel`), 1);
      assert.equal((await home.read('declined')) + (await home.read('canceled')), '');
      session.prompts.length = 0;
    });

    test('an edit asks for a file change with its text', async () => {
      const turn = session.run(`${agent}-edit`, `@edit ${home.work}/edited some text`);
      const prompt = await session.prompt();
      assert.equal(prompt.kind, 'file_change');
      assert.match(prompt.detail, /edited[^]*some text/);
      prompt.answer('accept');
      assert.deepEqual(await turn, { state: 'completed' });
      assert.equal(await home.read('edited'), 'some text\n');
      session.prompts.length = 0;
    });

    test('interrupt ends a streaming turn, and the next turn works', async () => {
      const turn = session.run(`${agent}-stream`, '@slow 100000');
      await untilTrue('a call of the model', () => models.callsFor(`${agent}-stream`) > 0);
      await session.driver.interrupt();
      assert.deepEqual(await turn, { state: 'canceled' });
      session.replies.length = 0;
      assert.deepEqual(await session.run(`${agent}-after-stream`, '@say next'), { state: 'completed' });
      assert.deepEqual(session.replies.splice(0), ['next']);
    });

    test('interrupt ends the command that the turn runs', async () => {
      const turn = session.run(`${agent}-tool`, '@run echo $$ > pid; sleep 600', '@say not reached');
      (await session.prompt()).answer('accept');
      await untilTrue('the command', async () => (await home.read('pid')) !== '');
      await session.driver.interrupt();
      assert.deepEqual(await turn, { state: 'canceled' });
      const pid = Number(await home.read('pid'));
      await untilTrue('the end of the command', () => !isAlive(pid));
      session.prompts.length = 0;
    });

    test('interrupt withdraws an approval; an answer to it has no effect', async () => {
      const turn = session.run(`${agent}-approval`, '@run touch late');
      const prompt = await session.prompt();
      await session.driver.interrupt();
      assert.deepEqual(await turn, { state: 'canceled' });
      assert.ok(prompt.isWithdrawn);
      prompt.answer('accept');
      assert.deepEqual(await session.run(`${agent}-after-approval`, '@say next'), { state: 'completed' });
      assert.equal(await home.read('late'), '');
      session.prompts.length = 0;
      session.replies.length = 0;
    });

    test('a large reply is complete', async () => {
      assert.deepEqual(await session.run(`${agent}-large`, '@big 300000'), { state: 'completed' });
      assert.equal(session.replies.splice(0).join('').length, 300_000);
    });

    test('errors of the model that pass are retried; others fail the turn', async () => {
      assert.deepEqual(await session.run(`${agent}-500`, '@status 500', '@say ok'), { state: 'completed' });
      assert.deepEqual(session.replies.splice(0), ['ok']);
      // Codex leaves a rate limit to the caller.
      const limited = await session.run(`${agent}-429`, '@status 429', '@say ok');
      assert.equal(limited.state, agent === 'codex' ? 'failed' : 'completed');
      session.replies.length = 0;
      const end = await session.run(`${agent}-400`, '@status 400 always');
      assert.equal(end.state, 'failed');
      assert.match(end.state === 'failed' ? end.message : '', /scripted status 400/);
      assert.deepEqual(session.replies, []);
    });

    test('a stream that breaks after a tool call or its result runs the tool once', async () => {
      const script = ['@run echo x >> effects', '@cut', '@drop', '@say done'];
      const turn = session.run(`${agent}-broken`, ...script);
      (await session.prompt()).answer('accept');
      assert.deepEqual(await turn, { state: 'completed' });
      assert.equal(await home.read('effects'), 'x\n');
      assert.equal(session.replies.splice(0).at(-1), 'done');
      assert.ok(models.callsFor(`${agent}-broken`) >= 3);
      session.prompts.length = 0;
    });

    test('a crash ends the turn and the events; a new driver resumes the conversation', async () => {
      const home = await AgentHome.create(agent);
      try {
        const first = await home.start({ gatewayUrl: models.url });
        await first.run(`${agent}-before-crash`, '@say remembered');
        const turn = first.run(`${agent}-crash`, '@hang');
        await untilTrue('a call of the model', () => models.callsFor(`${agent}-crash`) > 0);
        process.kill(first.driver.pid, 'SIGKILL');
        assert.equal((await turn).state, 'failed');
        assert.equal(first.exits.length, 1);

        const second = await home.start({ gatewayUrl: models.url, savedId: first.driver.savedId });
        assert.equal(second.driver.savedId, first.driver.savedId);
        assert.deepEqual(await second.run(`${agent}-resumed`, '@history'), { state: 'completed' });
        assert.match(second.replies.join(), /remembered/);
        assert.equal(models.callsFor(`${agent}-crash`), 1);
        await second.driver.close();
        assert.equal(second.exits.length, 0);
      } finally {
        await home.remove();
      }
    });

    test('a session that accepts by itself runs commands at once', async () => {
      const home = await AgentHome.create(agent);
      try {
        const session = await home.start({ gatewayUrl: models.url, accepts: true });
        assert.deepEqual(await session.run(`${agent}-never`, '@run echo x > a'), { state: 'completed' });
        assert.equal(await home.read('a'), 'x\n');
        assert.equal(session.prompts.length, 0);
      } finally {
        await home.remove();
      }
    });

    test('a question is answered with an explanation to the model', async () => {
      const home = await AgentHome.create(agent);
      try {
        // Codex offers its question tool in other modes than the default one.
        await home.write('.codex/config.toml', '[features]\ndefault_mode_request_user_input = true\n');
        const session = await home.start({ gatewayUrl: models.url });
        assert.deepEqual(await session.run(`${agent}-question`, '@question Which color?', '@result'), {
          state: 'completed',
        });
        assert.match(session.replies.join(), /Nobody can answer questions/);
        assert.equal(session.prompts.length, 0);
      } finally {
        await home.remove();
      }
    });

    test('a start without sign-in, conversation or program is refused', async () => {
      const home = await AgentHome.create(agent);
      try {
        await assert.rejects(home.start({ gatewayUrl: null }), hasCode('agent_not_signed_in'));
        const savedId = '6f9c8e6c-5a2f-4a43-9b39-2f6a8f6c3c99';
        await assert.rejects(home.start({ gatewayUrl: models.url, savedId }), hasCode('agent_conversation_missing'));
        const program = `${home.folder}/nothing`;
        await assert.rejects(home.start({ gatewayUrl: models.url, program }), hasCode('agent_not_installed'));
      } finally {
        await home.remove();
      }
    });
  });
}

// Claude Code has no such commands: its background tasks are off.
test(
  'interrupt ends commands that a turn of Codex left running, and spares earlier ones',
  { skip: process.arch !== 'x64' },
  async () => {
    const home = await AgentHome.create('codex');
    try {
      const session = await home.start({ gatewayUrl: models.url, accepts: true });
      await session.run('codex-earlier', '@start echo $$ > earlier; exec sleep 600');
      const turn = session.run('codex-left', '@start echo $$ > left; exec sleep 600', '@hang');
      await untilTrue('the second call of the model', () => models.callsFor('codex-left') === 2);
      await session.driver.interrupt();
      assert.deepEqual(await turn, { state: 'canceled' });
      const left = Number(await home.read('left'));
      await untilTrue('the end of the command', () => !isAlive(left));
      assert.ok(isAlive(Number(await home.read('earlier'))));
    } finally {
      await home.remove();
    }
  },
);

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
