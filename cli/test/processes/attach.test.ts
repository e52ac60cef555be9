// `berth attach` against a real service with scripted processes.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { untilTrue } from '../../../os/test/until.ts';
import type { FakeProcess } from '../../../api/test/world/guests/process-guests.ts';
import { ProcessService } from '../world/process-service.ts';

let world: ProcessService;
before(async () => {
  world = await ProcessService.start();
});
after(() => world.service.close());

const hasInput = async (guest: FakeProcess, text: string): Promise<void> =>
  await untilTrue(`the input is ${JSON.stringify(text)}`, () => guest.input.toString() === text);

test('in pipes stdin with all bytes goes to the process and its end closes the input', async () => {
  const { id, guest } = await world.process({ stdin: true, name: 'filter' });
  guest.write('stdout', 'before\n');
  const { child, seen, ended } = world.begin(['attach', 'SBX', 'filter']);
  await untilTrue('the last output', () => seen.stdout === 'before\n');
  const sent = Buffer.concat([Buffer.from([0, 255, 0x10, 0x11]), Buffer.alloc(700_000, 'x')]);
  child.stdin.write(sent);
  await untilTrue('the input arrives', () => guest.input.equals(sent));
  assert.equal(guest.inputIsOpen, true);
  child.stdin.end();
  await untilTrue('the input is closed', () => !guest.inputIsOpen);
  guest.write('stdout', 'after\n');
  guest.write('stderr', 'error\n');
  guest.end({ exitCode: 7 });
  assert.deepEqual(await ended, { code: 7, stdout: 'before\nafter\n', stderr: 'error\n' }, id);
});

test('attach shows the last 4096 bytes, or --tail, and returns the exit code of any end', async () => {
  for (const [end, code, text] of [
    [{ exitCode: 0 }, 0, ''],
    [{ exitCode: null, signal: 'SIGTERM' }, 143, ''],
    [{ exitCode: null, signal: 'SIGKILL', reason: 'timed_out' }, 124, ''],
    [{ exitCode: null, reason: 'lost' }, 125, /^berth: the exit code is unknown: prc_\w+ was lost: the sandbox was/],
  ] as const) {
    const { id, guest } = await world.process();
    guest.write('stdout', `gone${'x'.repeat(4_093)}end`);
    const { seen, ended } = world.begin(['attach', 'SBX', id]);
    await untilTrue('the last output', () => seen.stdout.length >= 4_096);
    guest.end(end);
    const ran = await ended;
    assert.deepEqual([ran.code, ran.stdout], [code, `${'x'.repeat(4_093)}end`]);
    assert.match(ran.stderr, text === '' ? /^$/ : text);
    assert.equal((await world.run(['attach', '--tail', '2', 'SBX', id])).stdout, 'nd', 'also of an ended process');
  }
});

test('attach ends with the process although another program holds its output', async () => {
  const { id, guest } = await world.process();
  guest.outputsAreClosed = false;
  guest.write('stdout', 'one\n');
  const { seen, ended } = world.begin(['attach', 'SBX', id]);
  await untilTrue('the first output', () => seen.stdout !== '');
  guest.end({ exitCode: 4 });
  assert.deepEqual(await ended, { code: 4, stdout: 'one\n', stderr: '' });
});

test('a process without input is followed, and typed input is reported', async () => {
  const { id, guest } = await world.process();
  const empty = world.begin(['attach', 'SBX', id]);
  empty.child.stdin.end();
  const full = world.begin(['attach', 'SBX', id]);
  full.child.stdin.write('lost\n');
  await untilTrue('the input is refused', () => full.seen.stderr !== '');
  guest.write('stdout', 'seen\n');
  await untilTrue('both follow', () => empty.seen.stdout !== '' && full.seen.stdout !== '');
  guest.end();
  assert.deepEqual(await empty.ended, { code: 0, stdout: 'seen\n', stderr: '' });
  assert.deepEqual(await full.ended, { code: 0, stdout: 'seen\n', stderr: `berth: ${id} reads no input\n` });
});

test('--no-stdin leaves the input alone', async () => {
  const { id, guest } = await world.process({ stdin: true });
  const { child, seen, ended } = world.begin(['attach', '--no-stdin', 'SBX', id]);
  child.stdin.end('not this');
  guest.write('stdout', 'x');
  await untilTrue('it follows', () => seen.stdout === 'x');
  guest.end();
  assert.equal((await ended).code, 0);
  assert.equal(guest.input.length, 0);
});

test('Ctrl-C sends SIGINT to a process with pipes, a second one detaches, and the process continues', async () => {
  const { id, guest } = await world.process({ stdin: true });
  const screen = world.terminal(['attach', 'SBX', id]);
  guest.write('stdout', 'begun\n');
  await screen.shows('begun\r\n');
  screen.type('typed\n');
  await hasInput(guest, 'typed\n');
  screen.type('\x03');
  await screen.shows('berth: SIGINT sent; Ctrl-C again detaches');
  assert.deepEqual(guest.signals, ['SIGINT']);
  screen.type('\x03');
  assert.equal(await screen.ended(), 130);
  assert.match(
    screen.text,
    new RegExp(`berth: detached; the process continues: berth attach sbx_\\w+ ${id}\r\nberth: stopped by SIGINT`),
  );
  assert.deepEqual([guest.signals, guest.view.end, guest.inputIsOpen], [['SIGINT'], null, true]);
});

test('SIGTERM of berth detaches, and SIGQUIT is passed on', async () => {
  const { id, guest } = await world.process({ stdin: true });
  const { child, seen, ended } = world.begin(['attach', 'SBX', id]);
  guest.write('stdout', 'begun\n');
  await untilTrue('it follows', () => seen.stdout !== '');
  child.kill('SIGQUIT');
  await untilTrue('it is passed on', () => guest.signals.length > 0);
  child.kill('SIGTERM');
  assert.deepEqual(await ended, { code: 143, stdout: 'begun\n', stderr: 'berth: stopped by SIGTERM\n' });
  assert.deepEqual([guest.signals, guest.view.end, guest.inputIsOpen], [['SIGQUIT'], null, true]);
});

test('a terminal gets keys as bytes, the size at the start and on resize, and is restored', async () => {
  const { id, guest } = await world.process({ tty: true });
  guest.write('output', 'screen\n');
  const screen = world.terminal(['attach', 'SBX', id]);
  await screen.shows('screen\n');
  // The first size differs, for a redraw.
  await untilTrue('the size', () => guest.sizes.length >= 2);
  assert.deepEqual(guest.sizes.slice(0, 2), [
    { cols: 120, rows: 41 },
    { cols: 120, rows: 40 },
  ]);
  await screen.resize(33, 101);
  await untilTrue('the new size', () => JSON.stringify(guest.sizes.at(-1)) === '{"cols":101,"rows":33}');
  assert.match(await screen.settings(), / -icanon.* -echo /s);
  screen.type('\x03\x1a\x04é\x11');
  await hasInput(guest, '\x03\x1a\x04é\x11');
  guest.end({ exitCode: 5 });
  assert.equal(await screen.ended(), 5);
  assert.deepEqual(guest.signals, []);
});

test('Ctrl-P Ctrl-Q detaches, also when typed apart, and any other key after Ctrl-P is sent with it', async () => {
  const { id, guest } = await world.process({ tty: true });
  const attached = async (): Promise<ReturnType<ProcessService['terminal']>> => {
    const { length } = guest.sizes;
    const screen = world.terminal(['attach', 'SBX', id]);
    await untilTrue('it is attached', () => guest.sizes.length > length);
    return screen;
  };
  const first = await attached();
  first.type('a\x10b\x10\x10c');
  await hasInput(guest, 'a\x10b\x10\x10c');
  first.type('d\x10');
  await hasInput(guest, 'a\x10b\x10\x10cd');
  first.type('\x11never');
  assert.equal(await first.ended(), 0);
  assert.match(first.text, new RegExp(`berth: detached; the process continues: berth attach sbx_\\w+ ${id}\r\n$`));
  const second = await attached();
  second.type('e\x10\x11');
  assert.equal(await second.ended(), 0);
  await hasInput(guest, 'a\x10b\x10\x10cde');
  assert.equal(guest.view.end, null);
});

test('piped stdin goes to a terminal, and its end leaves the input open', async () => {
  const { id, guest } = await world.process({ tty: true });
  const { child, seen, ended } = world.begin(['attach', 'SBX', id]);
  child.stdin.end('exit\n\x10\x11');
  await hasInput(guest, 'exit\n\x10\x11');
  guest.write('output', 'bye\r\n');
  await untilTrue('it follows', () => seen.stdout !== '');
  assert.equal(guest.inputIsOpen, true);
  guest.end();
  assert.deepEqual(await ended, { code: 0, stdout: 'bye\r\n', stderr: '' });
});

test('attach continues after a sleep, and input of a sandbox that sleeps ends it with the reason', async () => {
  const own = await world.withSandbox();
  const { id, guest } = await own.process({ stdin: true });
  const { child, seen, ended } = own.begin(['attach', 'SBX', id]);
  guest.write('stdout', 'before\n');
  await untilTrue('the first output', () => seen.stdout === 'before\n');
  await own.sleep();
  guest.write('stdout', 'last\n');
  await untilTrue('the sleep is reported', () => seen.stderr.includes('is not awake'));
  await own.wake();
  guest.write('stdout', 'after\n');
  await untilTrue('the output continues', () => seen.stdout.endsWith('after\n'));
  await own.sleep();
  child.stdin.write('typed');
  const { code, stderr } = await ended;
  assert.equal(code, 125);
  assert.match(stderr, /berth: .*\(sandbox_state_conflict\)\n {2}wait with berth sandbox wait, or .*\n$/);
  assert.equal(guest.input.length, 0);
});

test('wrong input of attach names what is allowed, and a removed process ends it', async () => {
  const { id, guest } = await world.process();
  for (const [args, code, expected] of [
    [['SBX'], 2, /missing required argument 'process'/],
    [['SBX', id, '--tail', '-1'], 2, /must be a whole number from 0 to 262144/],
    [['SBX', id, '--json'], 2, /unknown option '--json'/],
    [['SBX', 'nobody'], 125, /has no process 'nobody'\n {2}berth ps -a sbx_\w+ lists its processes/],
    [['sbx_aaaaaaaaaaaaaaaaaaaaaaaa', id], 125, /\(sandbox_not_found\)/],
  ] as const) {
    const ran = await world.run(['attach', ...args]);
    assert.deepEqual([ran.code, ran.stdout], [code, ''], args.join(' '));
    assert.match(ran.stderr, expected);
  }
  const { seen, ended } = world.begin(['attach', 'SBX', id]);
  guest.write('stdout', 'seen\n');
  await untilTrue('it follows', () => seen.stdout !== '');
  assert.equal((await world.run(['kill', '--remove', 'SBX', id])).code, 0);
  guest.write('stdout', 'last\n');
  const { code, stderr } = await ended;
  assert.equal(code, 125);
  assert.match(stderr, /\(process_not_found\)\n {2}use the id of a process that berth ps -a lists\n$/);
});
