// `berth agent` against the SDK's test server, in pipes: output, exit codes, remedies.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { AgentSession } from '@berth/sdk';
import { playAgent } from '../../../sdk/test/scripted-agent.ts';
import { until } from '../../../os/test/until.ts';
import type { Ended } from '../world/berth.ts';
import { TestService } from '../world/test-service.ts';

let service: TestService;
before(async () => {
  service = await TestService.start({ agent: playAgent });
});
after(async () => await service.close());

const newSession = async (): Promise<AgentSession> =>
  await service.server.client().agents.start((await service.sandbox()).id);
const run = async (...args: string[]): Promise<Ended> => await service.run(['agent', ...args]);
const failed = (code: number, stderr: string): Ended => ({ code, stdout: '', stderr });
const becomes = async (session: AgentSession, status: string): Promise<void> => {
  await until(`the session is ${status}`, async () =>
    (await session.refresh()).data.communication.status === status ? true : null,
  );
};

describe('start, ls and get', () => {
  test('start prints the id of a ready session, which is listed by sandbox and shown', async () => {
    const { id } = await service.sandbox();
    const { code, stdout, stderr } = await run('start', id);
    assert.equal(code, 0, stderr);
    const ags = stdout.trim();
    assert.match(ags, /^ags_[a-z2-7]{24}$/);
    assert.match(stderr, new RegExp(`^Codex is ready; send a message with berth agent send ${ags} TEXT`));
    const list = await run('ls', '--sandbox', id);
    assert.match(
      list.stdout,
      new RegExp(`^ID +AGENT +STATUS +TURN +SANDBOX +.*\\n${ags}  Codex  available +- +${id} `),
    );
    assert.deepEqual(await run('ls', '--sandbox', id, '--quiet'), { code: 0, stdout: `${ags}\n`, stderr: '' });
    const shown = await run('get', ags);
    const available = 'messages, output, approvals, interruption, recovery';
    assert.ok(shown.stdout.includes(`\nstatus       available\navailable    ${available}\n`), shown.stdout);
    const json = JSON.parse((await run('get', ags, '--json')).stdout) as { id: string };
    assert.equal(json.id, ags);
  });

  test('a signal during a start exits with its code, and names the list that has the session', async () => {
    const { id } = await service.sandbox();
    const [arrived, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    service.before = async (path) => {
      if (!path.endsWith('/agent-sessions')) return;
      arrived.resolve();
      await held.promise;
    };
    const starting = service.start(['agent', 'start', id]);
    await arrived.promise;
    starting.child.kill('SIGINT');
    const { code, stdout, stderr } = await starting.ended;
    service.before = () => undefined;
    held.resolve();
    assert.deepEqual([code, stdout], [130, '']);
    const [, words = ''] =
      /^the session may have been created: berth (agent ls --sandbox \S+) lists it$/m.exec(stderr) ?? [];
    assert.notEqual(words, '', stderr);
    await until('the session is listed', async () =>
      (await service.run([...words.split(' '), '--quiet'])).stdout.startsWith('ags_') ? true : null,
    );
  });

  test('pages of the list continue by cursor, and --all prints them as one table', async () => {
    const { id } = await service.sandbox();
    const ids: string[] = [];
    for (let count = 0; count < 3; count += 1) ids.unshift((await service.server.client().agents.start(id)).id);
    const filter = ['ls', '--sandbox', id, '--quiet'];
    const first = await run(...filter, '--limit', '2');
    assert.deepEqual(first.stdout.trim().split('\n'), ids.slice(0, 2));
    const [, cursor = ''] = /^more sessions exist: use --all, or --after (\S+)\n$/.exec(first.stderr) ?? [];
    assert.deepEqual(await run(...filter, '--after', cursor), { code: 0, stdout: `${ids[2]}\n`, stderr: '' });
    assert.deepEqual((await run(...filter, '--all')).stdout.trim().split('\n'), ids);
    assert.deepEqual(
      await run('ls', '--all', '--limit', '2'),
      failed(2, 'berth: --all cannot be combined with --limit\n'),
    );
    assert.deepEqual(await run('ls', '--sandbox', (await service.sandbox()).id), {
      code: 0,
      stdout: '',
      stderr: 'no matching agent sessions\n',
    });
  });

  test('wrong ids are refused before a request, and a sandbox in place of a session is explained', async () => {
    const seen = service.server.requests.length;
    assert.deepEqual(
      await run('get', 'ags/../x'),
      failed(
        2,
        "berth: invalid agent session id 'ags/../x'; example: ags_uodiunxlni4uyqmllemsqh4l\n" +
          '  berth agent ls lists them\n',
      ),
    );
    assert.match((await run('send', 'sbx_one', 'x')).stderr, /^berth: sbx_one is a sandbox, not an agent session\n/);
    assert.equal((await run('answer', 'ags_one', '--decision', 'accept')).code, 2);
    assert.equal((await run('answer', 'ags_one')).code, 2);
    assert.equal((await run('chat', 'ags_one')).code, 2);
    assert.equal((await run('send', 'ags_one', 'x', '--key', 'short')).code, 2);
    assert.equal(service.server.requests.length, seen);
    const missing = await run('get', 'ags_nothing');
    assert.deepEqual([missing.code, missing.stdout], [1, '']);
    assert.match(missing.stderr, /agent_session_not_found/);
  });
});

describe('send and log', () => {
  test('send prints the turn id, and --wait the replies, with the exit code of the end', async () => {
    const { id } = await newSession();
    const { code, stdout, stderr } = await run('send', id, 'say', 'hello');
    assert.deepEqual([code, stderr], [0, '']);
    assert.match(stdout, /^trn_[a-z2-7]{24}\n$/);
    await becomes(await service.server.client().agents.get(id), 'available');
    const waited = await run('send', id, 'say one\nsay two', '--wait');
    assert.deepEqual([waited.code, waited.stdout], [0, 'one\n\ntwo\n']);
    const bad = await run('send', id, 'say three\nfail', '--wait');
    assert.deepEqual([bad.code, bad.stdout], [5, 'three\n']);
    assert.match(bad.stderr, /^turn (trn_\w+)\nturn \1 failed: the agent reported an error \(agent_error\)\n$/);
    const json = JSON.parse((await run('send', id, 'say four', '--wait', '--json')).stdout) as Record<string, unknown>;
    assert.deepEqual(
      [(json['messages'] as { text: string }[]).map(({ text }) => text), (json['turn'] as { state: string }).state],
      [['four'], 'completed'],
    );
  });

  test('the message is read from stdin, and must be text with a length in the limits', async () => {
    const { id } = await newSession();
    const piped = await service.run(['agent', 'send', id, '--wait'], { stdin: 'say grüße\r\n' });
    assert.deepEqual([piped.code, piped.stdout], [0, 'grüße\n']);
    for (const [stdin, message] of [
      ['', 'the message is empty'],
      [Buffer.from([0xff, 0x41]), 'stdin is not UTF-8 text'],
      ['x'.repeat(131_073), 'the message is too long: 131073 UTF-16 code units, limit 131072'],
      ['x'.repeat(500_000), 'the message is too long: it, limit 131072'],
    ] as const) {
      const { code, stderr } = await service.run(['agent', 'send', id], { stdin });
      assert.deepEqual([code, stderr.split('\n')[0]], [2, `berth: ${message}`]);
    }
  });

  test('a message of unknown delivery exits with 7, and its key sends it once', async () => {
    const session = await newSession();
    for (const failure of ['message_delivery_uncertain', 'lost-answer'] as const) {
      service.server.failNext({ path: '/messages', with: failure });
      const text = `say once ${failure}`;
      const lost = await run('send', session.id, text);
      assert.deepEqual([lost.code, lost.stdout], [7, '']);
      if (failure === 'message_delivery_uncertain') assert.match(lost.stderr, /delivered as the turn trn_\w+: /);
      const [, key = ''] =
        /send the same text again with berth agent send ags_\w+ --key (\S+) TEXT: it runs at most once/.exec(
          lost.stderr,
        ) ?? [];
      const again = await run('send', session.id, text, '--key', key, '--wait');
      assert.deepEqual([again.code, again.stdout], [0, `once ${failure}\n`], again.stderr);
    }
    assert.equal((await session.turns()).turns.length, 2);
    const other = await run('send', session.id, 'say other', '--key', 'a-key-of-mine');
    assert.equal(other.code, 0);
    const conflict = await run('send', session.id, 'say another', '--key', 'a-key-of-mine');
    assert.equal(conflict.code, 1);
    assert.match(conflict.stderr, /request_key_conflict/);
  });

  test('a signal while sending names the key, and one while waiting the way back', async () => {
    const session = await newSession();
    const held = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<void>();
    service.before = async (path) => {
      if (!path.endsWith('/messages')) return;
      arrived.resolve();
      await held.promise;
    };
    const sending = service.start(['agent', 'send', session.id, 'hang']);
    await arrived.promise;
    sending.child.kill('SIGINT');
    const stopped = await sending.ended;
    service.before = () => undefined;
    held.resolve();
    assert.equal(stopped.code, 130);
    assert.match(stopped.stderr, /may have been delivered; send the same text again with berth agent send \S+ --key /);

    await becomes(session, 'busy');
    const following = service.start(['agent', 'log', session.id, '--follow']);
    await until('it follows', async () =>
      service.server.requests.some(({ path }) => path.startsWith(`/v1/agent-sessions/${session.id}?revision=`))
        ? true
        : null,
    );
    following.child.kill('SIGTERM');
    assert.equal((await following.ended).code, 143);
    assert.equal((await session.refresh()).data.communication.status, 'busy');
  });

  test('log shows why the last turn failed, behind its last reply', async () => {
    const session = await newSession();
    const turn = await session.send('say one\nfail');
    await turn.done();
    const end = `turn ${turn.id} failed: the agent reported an error (agent_error)\n`;
    const { code, stdout, stderr } = await run('log', session.id);
    assert.deepEqual([code, stdout.includes('    one\n')], [0, true]);
    assert.ok(stderr.startsWith(`${end}continue with --after `), stderr);
    await (await session.send('say two')).done();
    assert.doesNotMatch((await run('log', session.id)).stderr, /failed/);
    await (await session.send('fail')).done();
    assert.doesNotMatch((await run('log', session.id, '--limit', '1')).stderr, /failed/);
  });

  test('log prints replies behind a cursor, and --follow those of the active turn until its end', async () => {
    const session = await newSession();
    await (await session.send('say one\nsay two')).done();
    const all = await run('log', session.id);
    assert.match(all.stdout, /^#1 {2}\S+ {2}trn_\w+\n {4}one\n\n#2 {2}\S+ {2}trn_\w+\n {4}two\n$/);
    const [, cursor = ''] = /^continue with --after (\S+)\n$/.exec(all.stderr) ?? [];
    const first = await run('log', session.id, '--limit', '1');
    assert.ok(first.stdout.includes('one') && !first.stdout.includes('two'));
    assert.match(first.stderr, /^more replies exist/);

    const turn = await session.send('say three\nhang');
    const following = service.start(['agent', 'log', session.id, '--follow', '--after', cursor]);
    await until('it prints', async () => (following.seen.stdout.includes('    three\n') ? true : null));
    assert.ok(!following.seen.stdout.includes('one'));
    await session.interrupt();
    const { code, stderr } = await following.ended;
    assert.equal(code, 6);
    assert.match(stderr, new RegExp(`^turn ${turn.id} canceled\\ncontinue with --after \\S+\\n$`));
    const pages = await run('log', session.id, '--json');
    assert.equal((JSON.parse(pages.stdout) as { messages: unknown[] }).messages.length, 3);
    const none = await run('log', session.id, '--follow', '--after', /--after (\S+)/.exec(stderr)?.[1] ?? '');
    assert.deepEqual([none.code, none.stdout], [0, '']);
  });
});

describe('approvals and interrupts', () => {
  test('a script waits, gets exit code 3, answers by id and decision, and waits on', async () => {
    const session = await newSession();
    const asked = await run('send', session.id, 'say before\nask Run the tests', '--wait', '--key', 'the-first-key');
    assert.deepEqual([asked.code, asked.stdout], [3, 'before\n']);
    assert.match(asked.stderr, /waits for an answer to an approval\n {2}answer it with berth agent answer ags_/);
    assert.ok((await run('ls', '--needs-you', '--quiet')).stdout.includes(session.id));
    const shown = await run('get', session.id, '--full');
    assert.match(
      shown.stdout,
      /The agent asks for approval\n│ request 1, command\n│ Run the tests\nin the folder\n│ \/code\ndetail\n│ npm test\n/,
    );

    const busy = await run('send', session.id, 'say more');
    assert.match(
      busy.stderr,
      /^berth: cannot send a message: the turn trn_\w+ is active\n {2}answer its approval with /,
    );
    const stale = await run('answer', session.id, '7', '--decision', 'accept');
    assert.deepEqual([stale.code, /agent_prompt_not_pending/.test(stale.stderr)], [1, true]);
    assert.deepEqual(await run('answer', session.id, '1', '--decision', 'decline'), {
      code: 0,
      stdout: '1 decline\n',
      stderr: '',
    });
    assert.equal((await run('answer', session.id, '1', '--decision', 'decline')).stdout, '1 decline (repeated)\n');
    const rest = await run('send', session.id, 'say before\nask Run the tests', '--wait', '--key', 'the-first-key');
    assert.deepEqual([rest.code, rest.stdout], [0, 'before\n\ndecline\n']);
  });

  test('interrupt ends the turn, prints its end, and needs an active one', async () => {
    const session = await newSession();
    const turn = await session.send('hang');
    assert.deepEqual(await run('interrupt', session.id), { code: 0, stdout: `${turn.id} canceled\n`, stderr: '' });
    const idle = await run('interrupt', session.id);
    assert.deepEqual([idle.code, idle.stderr.split('\n')[0]], [1, 'berth: cannot interrupt: no turn is active']);
  });
});

describe('operations that are not available', () => {
  test('a stopped agent is explained with recover, which brings the session back', async () => {
    const session = await newSession();
    service.server.stopAgent(session.id, 'idle');
    const remedy = `  recover the session with berth agent recover ${session.id}\n`;
    for (const [words, doing] of [
      [['send', session.id, 'say x'], 'send a message'],
      [['answer', session.id, '1', '--decision', 'accept'], 'answer'],
      [['interrupt', session.id], 'interrupt'],
    ] as const) {
      const calls = service.server.requests.length;
      assert.deepEqual(
        await run(...words),
        failed(1, `berth: cannot ${doing}: the agent has stopped (idle)\n${remedy}`),
      );
      assert.deepEqual(
        service.server.requests.slice(calls).map(({ method }) => method),
        ['GET'],
      );
    }
    assert.equal((await run('log', session.id)).code, 0);
    const recovered = await run('recover', session.id);
    assert.deepEqual([recovered.code, recovered.stdout], [0, `${session.id} ready\n`]);
    assert.equal((await run('recover', session.id)).stdout, `${session.id} ready\n`);
    assert.equal((await run('send', session.id, 'say x', '--wait')).stdout, 'x\n');
  });

  test('a sleeping and a destroyed sandbox are explained with what helps', async () => {
    const session = await newSession();
    const { sandboxId } = session.data;
    const sandbox = await service.server.client().sandboxes.get(sandboxId);
    await sandbox.sleep();
    const asleep = `the sandbox ${sandboxId} is not awake (stopped)\n  wake it with berth sandbox wake ${sandboxId}\n`;
    assert.deepEqual(await run('log', session.id), failed(1, `berth: cannot read replies: ${asleep}`));
    assert.ok((await run('recover', session.id)).stderr.endsWith(`berth: cannot recover ${session.id}: ${asleep}`));
    const sent = await run('send', session.id, 'say x');
    assert.deepEqual([sent.code, /sandbox_state_conflict/.test(sent.stderr)], [1, true], sent.stderr);
    await sandbox.destroy();
    const gone = await run('send', session.id, 'say x');
    assert.match(
      gone.stderr,
      /cannot send a message: its sandbox sbx_\w+ was destroyed\n {2}start a session in another/,
    );
    assert.match((await run('start', sandboxId)).stderr, /\nberth: .*\(sandbox_state_conflict\)\n/);
  });

  test('without credentials and without a service, exit code and remedy are those of every command', async () => {
    const unknown = await service.run(['agent', 'ls'], { env: { BERTH_API_KEY: 'brt_wrong' } });
    assert.deepEqual([unknown.code, unknown.stdout], [4, '']);
    const none = await service.run(['agent', 'ls'], { env: { BERTH_API_KEY: '' } });
    assert.equal(none.code, 4);
    const nobody = await service.run(['agent', 'ls'], { env: { BERTH_URL: 'http://127.0.0.1:1' } });
    assert.deepEqual([nobody.code, /check the URL of the API/.test(nobody.stderr)], [1, true], nobody.stderr);
  });
});
