// `berth exec -d`, `ps` and `kill` against a real service with scripted processes.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { PROCESS_LIMITS } from '@berth/contract/route/command-options.ts';
import stringWidth from 'string-width';
import { ProcessService } from '../world/process-service.ts';

let world: ProcessService;
before(async () => {
  world = await ProcessService.start();
});
after(() => world.service.close());

test('exec -d prints the id of a process with exactly the options and arguments', async () => {
  const options = [
    '-d',
    '-i',
    '-w',
    'my app',
    '-e',
    'A=1=2',
    '-u',
    'root',
    '--name',
    'web',
    '--timeout-seconds',
    '900',
    '--keep-awake',
  ];
  const words = ['', "it's", '$HOME', 'a  b', '-x', '--json', 'line\nend'];
  const { code, stdout, stderr } = await world.run(['exec', ...options, 'SBX', '--', 'printf', ...words]);
  assert.deepEqual([code, stderr], [0, '']);
  assert.match(stdout, /^prc_[a-z2-7]{24}\n$/);
  const { digest: _, ...asked } = world.guest(stdout.trim()).asked;
  assert.deepEqual(asked, {
    argv: ['printf', ...words],
    cwd: 'my app',
    env: ['A=1=2'],
    user: 'root',
    stdin: true,
    keepAwake: true,
    name: 'web',
    limitSeconds: 900,
    outputBytes: PROCESS_LIMITS.outputBytes.default,
  });
});

test('exec -d passes a single word as a shell line, with no timeout and no input', async () => {
  const { stdout } = await world.run(['exec', '--detach', 'SBX', 'npm ci && npm start']);
  const { command, argv, stdin, limitSeconds, terminal, name } = world.guest(stdout.trim()).asked;
  assert.deepEqual(
    [command, argv, stdin, limitSeconds, terminal, name],
    ['npm ci && npm start', undefined, false, null, undefined, null],
  );
});

test('exec -dt starts a terminal of the size of this one, and --json prints the record', async () => {
  const json = await world.run(['exec', '-dt', '--json', 'SBX', '--', 'top']);
  const { process } = JSON.parse(json.stdout) as { process: { id: string; tty: boolean; command: string } };
  assert.deepEqual([process.tty, process.command], [true, 'top']);
  assert.deepEqual(world.guest(process.id).asked.terminal, { cols: 80, rows: 24 });
  const screen = world.terminal(['exec', '-dt', 'SBX', '--', 'top']);
  assert.equal(await screen.ended(), 0);
  const [, id = ''] =
    /^(prc_\S+)\r\nberth: follow its output with berth logs -f sbx_\S+ \1\r\n$/.exec(screen.text) ?? [];
  assert.deepEqual(world.guest(id).asked.terminal, { cols: 120, rows: 40 });
});

test('a usage error of exec -d, ps or kill is reported with exit code 2, and starts nothing', async () => {
  const count = world.service.api.front.processes.of(world.sandboxId).size;
  for (const [args, expected] of [
    [['exec', '-d', 'SBX'], /missing required argument 'command'/],
    [['exec', '-d', 'SBX', '--'], /missing command/],
    [['exec', 'SBX', '-d', '--name', 'a b', 'x'], /\n {2}berth exec -d --name 'a b' sbx_\S+ -- COMMAND\n/],
    [['exec', '--name', 'web', 'SBX', 'x'], /--name requires -d/],
    [['exec', '--keep-awake', 'SBX', 'x'], /--keep-awake requires -d/],
    [['exec', '-d', '--name', 'x'.repeat(65), 'SBX', 'x'], /must have 1 to 64 characters, not 65/],
    [
      ['exec', '--timeout-seconds', '601', 'SBX', 'x'],
      /from 1 to 600 without -d\n {2}berth exec -d --timeout-seconds 601/,
    ],
    [['exec', '-d', '--timeout-seconds', '31536001', 'SBX', 'x'], /from 1 to 600, with -d to 31536000/],
    [['exec', '-d', '', 'x'], /invalid sandbox ''/],
    [['ps'], /missing required argument 'sandbox'/],
    [['ps', '--al', 'SBX'], /unknown option '--al'\n\(Did you mean --all\?\)/],
    [['kill', 'SBX'], /missing required argument 'processes'/],
    [['kill', '-s', 'SIGNONE', 'SBX', 'x'], /Allowed signals are SIGHUP, SIGINT, /],
    [['kill', '--remove', '-s', 'KILL', 'SBX', 'x'], /--signal cannot be combined with --remove/],
  ] as const) {
    const { code, stdout, stderr } = await world.run(args);
    assert.deepEqual([code, stdout], [2, ''], args.join(' '));
    assert.match(stderr, expected);
  }
  assert.equal(world.service.api.front.processes.of(world.sandboxId).size, count);
});

test('a failed start is exit code 125 with the reason', async () => {
  const { code, stdout, stderr } = await world.run(['exec', '-d', 'sbx_aaaaaaaaaaaaaaaaaaaaaaaa', '--', 'x']);
  assert.deepEqual([code, stdout], [125, '']);
  assert.match(stderr, /^berth: .*\(sandbox_not_found\)\n {2}use the id of a sandbox that .*\n$/);
});

test('ps lists what runs, newest first, with -a what ended and how, and escapes foreign text', async () => {
  const own = await world.withSandbox();
  const none = await own.run(['ps', 'SBX']);
  assert.deepEqual(none, {
    code: 0,
    stdout: '',
    stderr: `no processes; start one with berth exec -d ${own.sandboxId} -- COMMAND\n`,
  });
  const ends = [
    [{ exitCode: 0 }, 'exited 0'],
    [{ exitCode: 3 }, 'exited 3'],
    [{ exitCode: null, signal: 'SIGTERM' }, 'killed SIGTERM'],
    [{ exitCode: null, signal: 'SIGKILL', reason: 'timed_out' }, 'timed out'],
    [{ exitCode: null, signal: 'SIGKILL', reason: 'out_of_memory' }, 'out of memory'],
    [{ exitCode: null, reason: 'lost' }, 'lost'],
  ] as const;
  const ids = new Map<string, string>();
  for (const [end, status] of ends) {
    const { id, guest } = await own.process();
    guest.end(end);
    ids.set(id, status);
  }
  assert.equal(
    (await own.run(['ps', 'SBX'])).stderr,
    `no process runs; berth ps -a ${own.sandboxId} lists those that ended\n`,
  );
  const evil = await own.process({ command: `echo '\u001B[2J\nnext' ${'x'.repeat(300)}`, name: 'e\u001B[1mvil' });
  const plain = await own.process({ argv: ['node', 'server.js'] });
  ids.set(evil.id, 'running').set(plain.id, 'running');

  const running = await own.run(['ps', 'SBX']);
  const lines = running.stdout.trimEnd().split('\n');
  assert.match(lines[0] ?? '', /^ID +NAME +STATUS +STARTED +COMMAND$/);
  assert.match(lines[1] ?? '', new RegExp(String.raw`^${plain.id}  - +running  \d+ s ago +node server\.js$`));
  assert.match(
    lines[2] ?? '',
    new RegExp(String.raw`^${evil.id}  e\\u001b\[1mvil  running  \d+ s ago +echo '\\u001b\[2J\\nnext' x{200}`),
  );
  assert.equal(lines.length, 3);

  const all = await own.run(['ps', '-a', 'SBX']);
  for (const [id, status] of ids) assert.match(all.stdout, new RegExp(`^${id}  .*${status}`, 'm'));
  assert.equal((await own.run(['ps', '-aq', 'SBX'])).stdout, `${[...ids.keys()].toReversed().join('\n')}\n`);
  const path = `/v1/sandboxes/${own.sandboxId}/processes`;
  assert.deepEqual(JSON.parse((await own.run(['ps', '--json', '-a', 'SBX'])).stdout), await own.service.body(path));
  const json = JSON.parse((await own.run(['ps', '--json', 'SBX'])).stdout) as { processes: { id: string }[] };
  assert.deepEqual(
    json.processes.map(({ id }) => id),
    [plain.id, evil.id],
  );

  const screen = own.terminal(['ps', 'SBX']);
  assert.equal(await screen.ended(), 0);
  for (const line of screen.text.split('\r\n')) assert.ok(stringWidth(line) <= 120, line);
  // oxlint-disable-next-line no-control-regex -- these may not be there
  assert.doesNotMatch(screen.text.replaceAll('\r\n', ''), /[\u0000-\u001F]/);
});

test('kill sends a signal to each process by id or name, and tries all of them', async () => {
  const [web, job] = [await world.process({ name: 'web server' }), await world.process()];
  assert.deepEqual(await world.run(['kill', 'SBX', 'web server', job.id]), {
    code: 0,
    stdout: `${web.id} SIGTERM sent\n${job.id} SIGTERM sent\n`,
    stderr: '',
  });
  assert.equal((await world.run(['kill', '-s', 'int', 'SBX', job.id])).stdout, `${job.id} SIGINT sent\n`);
  const json = await world.run(['kill', '--json', '--signal=SIGKILL', 'SBX', job.id]);
  assert.equal((JSON.parse(json.stdout) as { process: { id: string } }).process.id, job.id);
  assert.deepEqual([web.guest.signals, job.guest.signals], [['SIGTERM'], ['SIGTERM', 'SIGINT', 'SIGKILL']]);
  job.guest.end();
  const some = await world.run(['kill', 'SBX', 'nobody', job.id, web.id]);
  assert.deepEqual([some.code, some.stdout], [1, `${web.id} SIGTERM sent\n`]);
  const [first, remedy, second, ...rest] = some.stderr.split('\n');
  assert.equal(first, `berth: nobody: ${world.sandboxId} has no process 'nobody'`);
  assert.equal(remedy, `  berth ps -a ${world.sandboxId} lists its processes`);
  assert.match(second ?? '', new RegExp(String.raw`^berth: ${job.id}: .*\(process_over\)$`));
  assert.deepEqual(rest, ['  start another process', '']);
});

test('kill --remove removes running and ended processes', async () => {
  const [runs, ended] = [await world.process(), await world.process()];
  ended.guest.end();
  assert.deepEqual(await world.run(['kill', '--remove', 'SBX', runs.id, ended.id]), {
    code: 0,
    stdout: `${runs.id} removed\n${ended.id} removed\n`,
    stderr: '',
  });
  const { code, stderr } = await world.run(['kill', '--remove', 'SBX', runs.id]);
  assert.deepEqual([code, stderr.split('\n')[1]], [1, `berth: ${world.sandboxId} has no process '${runs.id}'`]);
});

test('a name means the one running process that has it, or the only one; others are refused with ids', async () => {
  const first = await world.process({ name: 'twice' });
  first.guest.end({ exitCode: 1 });
  assert.equal((await world.run(['kill', '--remove', 'SBX', 'twice'])).stdout, `${first.id} removed\n`);
  const old = await world.process({ name: 'twice' });
  old.guest.end({ exitCode: 1 });
  const second = await world.process({ name: 'twice' });
  assert.equal((await world.run(['kill', 'SBX', 'twice'])).stdout, `${second.id} SIGTERM sent\n`);
  const third = await world.process({ name: 'twice' });
  const ids = `${third.id} (running), ${second.id} (running), ${old.id} (exited 1)`;
  assert.deepEqual(await world.run(['logs', 'SBX', 'twice']), {
    code: 1,
    stdout: '',
    stderr: `berth: 3 processes have the name 'twice': ${ids}\n  use an id\n`,
  });
  second.guest.end();
  third.guest.end();
  const ended = await world.run(['kill', 'SBX', 'twice']);
  assert.match(ended.stderr, /3 processes have the name 'twice'/);
});
