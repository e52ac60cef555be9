// `berth logs` against a real service with scripted processes.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer, request as forward } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import type { ProcessOutputChunk } from '@berth/contract/commands/processes.ts';
import { untilTrue } from '../../../os/test/until.ts';
import { cleanEnvironment, MAIN, startBerth } from '../world/berth.ts';
import { ProcessService } from '../world/process-service.ts';

let world: ProcessService;
before(async () => {
  world = await ProcessService.start();
});
after(() => world.service.close());

/** Output as bytes, in latin1. */
function bytesOf(args: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const words = [MAIN, ...args.map((word) => (word === 'SBX' ? world.sandboxId : word))];
  const env = cleanEnvironment(world.service.environment());
  return new Promise((resolve) => {
    execFile(process.execPath, words, { env, encoding: 'latin1', maxBuffer: 64_000_000 }, (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), stdout, stderr }),
    );
  });
}

test('each stream is printed on its own with all bytes unchanged, and without -f only what is there', async () => {
  const { id, guest } = await world.process();
  const all = Buffer.from(Array.from({ length: 256 }, (_, at) => at));
  const large = Buffer.alloc(1_000_000, 'é\0\u{1F600}ÿ');
  guest.write('stdout', Buffer.concat([all, large, Buffer.from('\u{FEFF}é').subarray(0, 4)]));
  guest.write('stderr', '\u001B[1mbold\r\n');
  const wanted = Buffer.concat([all, large, Buffer.from('\u{FEFF}é').subarray(0, 4)]).toString('latin1');
  const { code, stdout, stderr } = await bytesOf(['logs', 'SBX', id]);
  assert.deepEqual([code, stdout.length, stdout === wanted, stderr], [0, wanted.length, true, '\u001B[1mbold\r\n']);
});

test('the output of a terminal is printed on stdout', async () => {
  const { id, guest } = await world.process({ tty: true });
  guest.write('output', 'screen\r\n');
  assert.deepEqual(await world.run(['logs', 'SBX', id]), { code: 0, stdout: 'screen\r\n', stderr: '' });
});

test('--tail prints the last bytes of each stream, --since what follows a cursor', async () => {
  const { id, guest } = await world.process();
  guest.write('stdout', 'one two');
  guest.write('stderr', 'uno due');
  assert.deepEqual(await world.run(['logs', 'SBX', id, '--tail', '3']), { code: 0, stdout: 'two', stderr: 'due' });
  assert.deepEqual(await world.run(['logs', '--tail', '0', 'SBX', id]), { code: 0, stdout: '', stderr: '' });
  const rest = await world.run(['logs', 'SBX', id, '--since', '4.7']);
  assert.deepEqual(rest, { code: 0, stdout: 'two', stderr: '' });
});

test('lost bytes are reported where they are missing, with their number', async () => {
  const { id, guest } = await world.process();
  guest.write('stdout', 'end\n', 12_345);
  const lost = await world.run(['logs', 'SBX', id]);
  assert.deepEqual(lost, {
    code: 0,
    stdout: 'end\n',
    stderr: 'berth: 12345 bytes of stdout here are missing: no longer kept\n',
  });
  const terminal = await world.process({ tty: true });
  terminal.guest.write('output', 'x', 1);
  assert.match((await world.run(['logs', 'SBX', terminal.id])).stderr, /^berth: 1 byte of the output here are missing/);
});

test('--json prints the chunks of the API, one a line', async () => {
  const { id, guest } = await world.process();
  guest.write('stdout', '\u{FEFF}ü\u202E\n', 7);
  guest.write('stderr', Buffer.from([0, 255]));
  const chunks = [
    { stream: 'stdout', offset: 7, lostBytes: 7, data: '\u{FEFF}ü\u202E\n', encoding: 'utf8', cursor: '16.0' },
    { stream: 'stderr', offset: 0, lostBytes: 0, data: 'AP8=', encoding: 'base64', cursor: '16.2' },
  ];
  const { body } = await world.service.api.call('GET', `/v1/sandboxes/${world.sandboxId}/processes/${id}/output`);
  assert.deepEqual((body as { chunks: ProcessOutputChunk[] }).chunks, chunks);
  const { code, stdout, stderr } = await world.run(['logs', '--json', 'SBX', id]);
  assert.deepEqual([code, stderr], [0, '']);
  assert.deepEqual(
    stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown),
    chunks,
  );
  // oxlint-disable-next-line no-control-regex -- these may not be there
  assert.doesNotMatch(stdout, /[\u0000-\u0009\u000B-\u001F\u202E\uFEFF]/);
});

test('-f follows the output to its end and reports the end of the process', async () => {
  for (const [end, said] of [
    [{ exitCode: 3 }, 'exited with code 3'],
    [{ exitCode: null, signal: 'SIGTERM' }, 'was killed by SIGTERM'],
    [{ exitCode: null, signal: 'SIGKILL', reason: 'timed_out' }, 'was killed at its timeout'],
    [{ exitCode: null, signal: 'SIGKILL', reason: 'out_of_memory' }, 'was killed: the sandbox was out of memory'],
    [{ exitCode: null, reason: 'lost' }, 'was lost: the sandbox was started from its disk'],
  ] as const) {
    const { id, guest } = await world.process();
    guest.write('stdout', 'a\n');
    const { seen, ended } = world.begin(['logs', '-f', 'SBX', id]);
    await untilTrue('the first output', () => seen.stdout === 'a\n');
    guest.write('stdout', 'b\n');
    await untilTrue('the next output', () => seen.stdout === 'a\nb\n');
    guest.end(end);
    assert.deepEqual(await ended, { code: 0, stdout: 'a\nb\n', stderr: `berth: ${id} ${said}\n` });
  }
});

test('-f waits while the sandbox sleeps, reports that once, and continues after the wake', async () => {
  const own = await world.withSandbox();
  const { id, guest } = await own.process();
  guest.write('stdout', 'before\n');
  const { seen, ended } = own.begin(['logs', '--follow', 'SBX', id]);
  await untilTrue('the first output', () => seen.stdout === 'before\n');
  await own.sleep();
  // Ends the held request, which a real sleep does too.
  guest.write('stdout', 'last\n');
  await untilTrue('the sleep is reported', () => seen.stderr !== '');
  const refused = await own.run(['logs', 'SBX', id]);
  assert.deepEqual([refused.code, refused.stdout], [1, '']);
  assert.match(refused.stderr, /\(sandbox_state_conflict\)\n {2}wait with berth sandbox wait, or .*\n$/);
  await own.wake();
  guest.write('stdout', 'after\n');
  await untilTrue('the output continues', () => seen.stdout.endsWith('after\n'));
  guest.end();
  assert.deepEqual(await ended, {
    code: 0,
    stdout: 'before\nlast\nafter\n',
    stderr:
      `berth: the sandbox is not awake; the process continues after berth sandbox wake ${own.sandboxId}\n` +
      `berth: the sandbox is awake\nberth: ${id} exited with code 0\n`,
  });
});

test('-f continues after an outage of the service, reports it once, and prints each byte once', async () => {
  const { id, guest } = await world.process();
  let isDown = false;
  const proxy = createServer((request, response) => {
    if (isDown) {
      request.socket.destroy();
      return;
    }
    const { method, url, headers } = request;
    const onward = forward(`${world.service.api.url}${url}`, { method: method ?? 'GET', headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    response.once('close', () => onward.destroy());
    request.pipe(onward);
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const env = {
    ...world.service.environment(),
    BERTH_URL: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
  };
  guest.write('stdout', 'before\n');
  const { seen, ended } = startBerth(['logs', '-f', world.sandboxId, id], { env });
  await untilTrue('the first output', () => seen.stdout === 'before\n');
  isDown = true;
  proxy.closeAllConnections();
  guest.write('stdout', 'during\n');
  await untilTrue('the outage is reported', () => seen.stderr !== '');
  isDown = false;
  await untilTrue('the output continues', () => seen.stdout !== 'before\n');
  guest.end();
  const { code, stdout, stderr } = await ended;
  proxy.close();
  assert.deepEqual([code, stdout], [0, 'before\nduring\n']);
  const [outage, ...rest] = stderr.split('\n');
  assert.match(outage ?? '', /^berth: .*; retrying\. The process continues meanwhile$/);
  assert.deepEqual(rest, ['berth: the service responds again', `berth: ${id} exited with code 0`, '']);
});

test('in a terminal Ctrl-C ends -f with the cursor to continue with', async () => {
  const { id, guest } = await world.process();
  guest.write('stdout', 'seen');
  const screen = world.terminal(['logs', '-f', 'SBX', id]);
  await screen.shows('seen');
  screen.type('\x03');
  assert.equal(await screen.ended(), 130);
  assert.match(screen.text, /\nberth: continue with --since 4\.0\r\nberth: stopped by SIGINT\r\n$/);
  guest.write('stdout', ' later\n');
  assert.equal((await world.run(['logs', 'SBX', id, '--since', '4.0'])).stdout, ' later\n');
  const now = world.terminal(['logs', 'SBX', id]);
  assert.equal(await now.ended(), 0);
  assert.equal(now.text, 'seen later\r\nberth: continue with --since 11.0\r\n');
  guest.end();
  const over = world.terminal(['logs', 'SBX', id]);
  assert.equal(await over.ended(), 0);
  assert.equal(over.text, 'seen later\r\n');
});

test('a closed stdout ends -f without a message', async () => {
  const { id, guest } = await world.process();
  guest.write('stdout', 'first\nsecond\n');
  const { child, seen, ended } = world.begin(['logs', '-f', 'SBX', id]);
  await untilTrue('the first output', () => seen.stdout !== '');
  child.stdout.destroy();
  guest.write('stdout', 'third\n');
  const { code, stderr } = await ended;
  assert.deepEqual([code, stderr], [141, '']);
});

test('wrong input of logs names what is allowed', async () => {
  const { id } = await world.process();
  const terminal = await world.process({ tty: true });
  for (const [args, code, expected] of [
    [['SBX', '--tail', '1'], 2, /--tail requires a process\n {2}berth ps lists them/],
    [['SBX', id, '--tail', '262145'], 2, /must be a whole number from 0 to 262144/],
    [['SBX', id, '--since', 'x'], 2, /must be a cursor of berth logs, such as 1024\.0/],
    [['SBX', id, '--since', '5.0', '--tail', '1'], 2, /--tail cannot be combined with --since/],
    [
      ['SBX', id, '--since', '5'],
      2,
      /'5' is not a cursor of prc_\w+: a cursor of pipes has two numbers\n {2}example: /,
    ],
    [['SBX', terminal.id, '--since', '5.0'], 2, /a cursor of a terminal has one number\n {2}example: --since 1024\n/],
    [['SBX', id, '--folow'], 2, /unknown option '--folow'\n\(Did you mean --follow\?\)/],
    [['SBX', 'n\u001B[1mo'], 1, /sbx_\w+ has no process 'n\\u001b\[1mo'\n {2}berth ps -a sbx_\w+ lists its processes/],
    [['SBX', ''], 1, /sbx_\w+ has no process ''/],
    [['../x', id], 1, /no sandbox of the org org_\w+ has the name '\.\.\/x'/],
  ] as const) {
    const ran = await world.run(['logs', ...args]);
    assert.deepEqual([ran.code, ran.stdout], [code, ''], args.join(' '));
    assert.match(ran.stderr, expected);
  }
});
