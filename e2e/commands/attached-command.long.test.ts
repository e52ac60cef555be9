// Attached commands on a real VM: bytes intact in both directions, how commands end, and that
// nothing of them remains.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { after, before, test, type TestContext } from 'node:test';
import { COMMAND_OUTPUT, type CommandOrder } from '@berth/contract/connections/terminal.ts';
import type { WebSocket } from 'ws';
import { requestWebSocket } from '../../api/test/world/websocket-client.ts';
import { awakeSandbox, exec, sleepSandbox, wakeSandbox } from '../world/client.ts';
import { activityOf, queryDatabase } from '../world/database.ts';
import { createKey, startInstance, type Instance } from '../world/instance.ts';
import { until } from '../../os/test/until.ts';

const MIB = 2 ** 20;
const EACH_WAY = 32 * MIB;
const UNSENT = 4 * MIB;

let berth: Instance;
let id: string;

before(async () => {
  berth = await startInstance('attached');
  ({ id } = await awakeSandbox(berth));
});
after(() => berth?.end());

/** A command, and its output. */
class Command {
  readonly socket: WebSocket;
  readonly closed: Promise<number>;
  exit: unknown;
  readonly hashes = { [COMMAND_OUTPUT.stdout]: createHash('sha256'), [COMMAND_OUTPUT.stderr]: createHash('sha256') };
  readonly bytes = { [COMMAND_OUTPUT.stdout]: 0, [COMMAND_OUTPUT.stderr]: 0 };
  stdout = '';

  constructor(socket: WebSocket) {
    this.socket = socket;
    this.closed = new Promise((resolve) => socket.once('close', resolve));
    socket.on('error', () => undefined);
    socket.on('message', (data: Buffer, isBinary) => {
      if (isBinary) this.#take(data);
      else this.exit = JSON.parse(data.toString());
    });
    socket.resume();
  }

  static async start(
    command: string,
    query: Record<string, string> = { tty: 'false' },
    token = berth.token,
  ): Promise<Command> {
    const asked = new URLSearchParams({ ...query, command }).toString();
    const answer = await requestWebSocket(`${berth.url}/v1/sandboxes/${id}/terminal?${asked}`, {
      authorization: `Bearer ${token}`,
    });
    assert.ok('socket' in answer, JSON.stringify(answer));
    return new Command(answer.socket);
  }

  order(order: CommandOrder): void {
    this.socket.send(JSON.stringify(order));
  }

  /** Sends bytes as fast as they are taken; resolves with their checksum. */
  async send(bytes: number): Promise<string> {
    const sum = createHash('sha256');
    for (let sent = 0; sent < bytes; sent += MIB / 2) {
      const some = randomBytes(MIB / 2);
      sum.update(some);
      await new Promise<void>((resolve) => {
        this.socket.send(some, () => resolve());
        if (this.socket.bufferedAmount < UNSENT) resolve();
      });
    }
    return sum.digest('hex');
  }

  async ended(): Promise<unknown> {
    assert.equal(await this.closed, 1000);
    return this.exit;
  }

  #take(data: Buffer): void {
    const [stream] = data;
    assert.ok(stream === COMMAND_OUTPUT.stdout || stream === COMMAND_OUTPUT.stderr);
    this.hashes[stream].update(data.subarray(1));
    this.bytes[stream] += data.length - 1;
    if (stream === COMMAND_OUTPUT.stdout && this.stdout.length < 4_096) this.stdout += data.subarray(1).toString();
  }
}

async function output(command: string): Promise<string> {
  return (await exec(berth, id, command)).stdout.trim();
}

/** Notes a throughput. */
function note(t: TestContext, what: string, bytes: number, sinceMs: number): void {
  t.diagnostic(`${what}: ${(bytes / 1e6 / ((performance.now() - sinceMs) / 1_000)).toFixed(1)} MB/s`);
}

test('a command runs as another user, in a directory and with variables', async () => {
  const options = { user: 'root', cwd: '/tmp', 'env[NAME]': 'a=b c' };
  const command = await Command.start('echo "$(id -un) $PWD $NAME"', { tty: 'false', ...options });
  await command.closed;
  assert.deepEqual([command.stdout, command.exit], ['root /tmp a=b c\n', { exit: 0 }]);
});

test('large input and output of a command stay intact', async (t) => {
  let sinceMs = performance.now();
  const taking = await Command.start('sha256sum | cut -d" " -f1');
  const sent = await taking.send(EACH_WAY);
  taking.order({ end: true });
  assert.deepEqual([await taking.ended(), taking.stdout], [{ exit: 0 }, `${sent}\n`]);
  note(t, 'into a command, with its sum', EACH_WAY, sinceMs);

  await output(`head -c ${EACH_WAY} /dev/urandom > /tmp/random`);
  sinceMs = performance.now();
  const giving = await Command.start('cat /tmp/random');
  assert.deepEqual(await giving.ended(), { exit: 0 });
  note(t, 'out of a command', EACH_WAY, sinceMs);
  assert.equal(
    giving.hashes[COMMAND_OUTPUT.stdout].digest('hex'),
    await output('sha256sum < /tmp/random | cut -d" " -f1'),
  );

  const both = await Command.start('tee /dev/stderr');
  const through = await both.send(EACH_WAY / 2);
  both.order({ end: true });
  assert.deepEqual(await both.ended(), { exit: 0 });
  assert.deepEqual(
    Object.values(both.hashes).map((hash) => hash.digest('hex')),
    [through, through],
  );
  assert.deepEqual(both.bytes, { [COMMAND_OUTPUT.stdout]: EACH_WAY / 2, [COMMAND_OUTPUT.stderr]: EACH_WAY / 2 });
});

test('a command ends by its exit code, its signal or its input, with and without a terminal', async () => {
  for (const [command, query, exit] of [
    ['exit 0', { tty: 'false' }, { exit: 0 }],
    ['exit 255', { tty: 'false' }, { exit: 255 }],
    ['no-such-command', { tty: 'false' }, { exit: 127 }],
    ['kill -TERM $$', { tty: 'false' }, { exit: 143, signal: 'SIGTERM' }],
    ['exec head -c 1 /dev/stdin', { tty: 'false' }, { exit: 0 }],
    ['test -t 0 -a -t 1 -a "$(stty size)" = "40 100"; exit $((7 + $?))', { cols: '100', rows: '40' }, { exit: 7 }],
    ['kill -KILL $$', { tty: 'true' }, { exit: 137, signal: 'SIGKILL' }],
  ] as const) {
    const ending = query.tty === 'false' ? await Command.start(command, query) : await inTerminal(command, query);
    // The command may still take input.
    if (query.tty === 'false') for (let sent = 0; sent < 20; sent += 1) ending.socket.send(Buffer.alloc(MIB / 2));
    assert.deepEqual(await ending.ended(), exit, command);
  }
  const details = (await activityOf(berth.dataFolder, id))
    .filter(({ kind }) => kind === 'sandbox_connected')
    .map((row) => row.details);
  assert.deepEqual(details.slice(-2), [
    { command: true, terminal: true },
    { command: true, terminal: true },
  ]);
});

async function inTerminal(
  command: string,
  query: Record<string, string>,
): Promise<{ socket: WebSocket; ended(): Promise<unknown> }> {
  const asked = new URLSearchParams({ ...query, command }).toString();
  const answer = await requestWebSocket(`${berth.url}/v1/sandboxes/${id}/terminal?${asked}`, {
    authorization: `Bearer ${berth.token}`,
  });
  assert.ok('socket' in answer, JSON.stringify(answer));
  const { socket } = answer;
  let exit: unknown;
  socket.on('message', (data: Buffer, isBinary) => {
    if (!isBinary) exit = JSON.parse(data.toString());
  });
  const closed = new Promise<unknown>((resolve) => socket.once('close', () => resolve(exit)));
  socket.resume();
  return { socket, ended: () => closed };
}

test('a hundred concurrent commands stay separate', async () => {
  const all = await Promise.all(Array.from({ length: 100 }, (_, index) => Command.start(`cat; exit ${index}`)));
  all.forEach((command, index) => {
    command.socket.send(Buffer.from(`number ${index}`));
    command.order({ end: true });
  });
  const exits = await Promise.all(all.map((command) => command.ended()));
  exits.forEach((exit, index) => assert.deepEqual([exit, all[index]?.stdout], [{ exit: index }, `number ${index}`]));
});

test('signals reach the command; a gone client ends all of it, even with unread input', async () => {
  const asked = await Command.start(`trap 'echo told; exit 5' USR1; echo ready; while :; do sleep 0.1; done`);
  await until('it is ready', async () => (asked.stdout === 'ready\n' ? true : null));
  asked.order({ signal: 'SIGUSR1' });
  assert.deepEqual([await asked.ended(), asked.stdout], [{ exit: 5 }, 'ready\ntold\n']);

  for (const leave of [
    (command: Command) => command.socket.close(),
    (command: Command) => command.socket.terminate(),
  ]) {
    const left = await Command.start(`trap '' HUP TERM; sleep 6161 & sleep 6161; sleep 6161`);
    await until('it runs', async () => ((await output('pgrep -cx -f "sleep 6161"')) === '2' ? true : null));
    leave(left);
    await until('it is gone', async () =>
      (await output('pgrep -x -f "sleep 6161" || echo none')) === 'none' ? true : null,
    );
  }
  const full = await Command.start('exec sleep 6262');
  for (let sent = 0; sent < 64; sent += 1) full.socket.send(Buffer.alloc(MIB));
  await until('no more is taken', async () => {
    const before = full.socket.bufferedAmount;
    await output('sleep 0.3');
    return before > 0 && before === full.socket.bufferedAmount ? true : null;
  });
  full.socket.terminate();
  await until('it is gone', async () =>
    (await output('pgrep -x -f "sleep 6262" || echo none')) === 'none' ? true : null,
  );
});

test('a command ends when its key is revoked and when its sandbox sleeps', async () => {
  const token = await createKey(berth, 'revoked');
  const revoked = await Command.start('trap "" HUP; sleep 6363', { tty: 'false' }, token);
  await until('it runs', async () =>
    (await output('pgrep -x -f "sleep 6363" || echo none')) === 'none' ? null : true,
  );
  await queryDatabase(berth.dataFolder, `update api_key set revoked_at = now() where name = 'revoked'`);
  assert.equal(await revoked.closed, 4_401);
  await until('it is gone', async () =>
    (await output('pgrep -x -f "sleep 6363" || echo none')) === 'none' ? true : null,
  );
  const slept = await Command.start('trap "" HUP; sleep 6464');
  await until('it runs', async () =>
    (await output('pgrep -x -f "sleep 6464" || echo none')) === 'none' ? null : true,
  );
  await sleepSandbox(berth, id);
  assert.equal(await slept.closed, 4_409);
  await wakeSandbox(berth, id);
  await until('it is gone', async () =>
    (await output('pgrep -x -f "sleep 6464" || echo none')) === 'none' ? true : null,
  );
});
