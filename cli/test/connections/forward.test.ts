// `berth forward` against the real service with fake VMs, whose ports are TCP servers of the test.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { buffer, text } from 'node:stream/consumers';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { splice } from '@berth/protocol/splice.ts';
import { ExecRefusal } from '../../../api/test/world/guests/exec-refusal.ts';
import { untilTrue } from '../../../os/test/until.ts';
import { FORWARD_LIMITS } from '../../src/connections/forward-ports.ts';
import { startBerth, type Ended } from '../world/berth.ts';
import { Service } from '../world/service.ts';

let service: Service;
let id: string;
let children: ReturnType<typeof startBerth>[];
/** TCP servers in the sandbox, by port. */
let inside: Map<number, Server>;
/** Connections of the programs in the sandbox. */
let accepted: Set<Socket>;
before(async () => {
  service = await Service.start({ durable: false });
  ({ id } = await service.api.makeSandbox('ready'));
});
after(() => service.close());
beforeEach(() => {
  children = [];
  inside = new Map();
  accepted = new Set();
  service.api.front.stream = async (_vmId, target) => {
    const server = inside.get(Number(target.replace('ports/', '')));
    if (server === undefined) throw new ExecRefusal('port_refused', 'words of the host');
    const socket = connect({ port: portOf(server), host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    return (caller) => void splice(caller as Socket, socket);
  };
});
afterEach(async () => {
  for (const { child } of children) child.kill('SIGKILL');
  for (const socket of accepted) socket.destroy();
  for (const server of inside.values()) server.close();
});

const portOf = (server: Server): number => (server.address() as AddressInfo).port;

/** A program that listens on a port of the sandbox. */
async function serve(port: number, onConnection: (socket: Socket) => void): Promise<void> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    accepted.add(socket);
    socket.on('error', () => undefined).once('close', () => accepted.delete(socket));
    onConnection(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  inside.set(port, server);
}
const echo = (socket: Socket): void => void socket.pipe(socket);

interface Forward {
  /** Local port of each listener. */
  ports: number[];
  seen: Readonly<Ended>;
  /** Ends it with a signal. */
  readonly end: (signal?: NodeJS.Signals) => Promise<Ended>;
}

/** Starts a forward of `args`, which listens. */
async function forward(args: readonly string[], sandboxId = id): Promise<Forward> {
  const started = startBerth(['forward', '--json', sandboxId, ...args], { env: service.environment() });
  children.push(started);
  const { child, seen, ended } = started;
  const count = args.filter((word) => /^[\d:]+$/.test(word)).length;
  await untilTrue('it listens', () => seen.stdout.split('\n').length > count);
  return {
    seen,
    ports: seen.stdout
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { localPort: number }).localPort),
    end: (signal = 'SIGINT') => {
      child.kill(signal);
      return ended;
    },
  };
}

function dial(port = 0): Socket {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  socket.on('error', () => undefined);
  return socket;
}

/** `once` rejects for a reset. */
async function closed(socket: Socket): Promise<void> {
  if (!socket.closed) await new Promise((resolve) => socket.once('close', resolve));
}

test('forward prints a line for each listener, and Ctrl-C ends it with 130', async () => {
  await serve(3000, echo);
  const { ports, seen, end } = await forward(['0:3000', ':5432']);
  assert.deepEqual(
    seen.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown),
    [
      { address: '127.0.0.1', localPort: ports[0], port: 3000 },
      { address: '127.0.0.1', localPort: ports[1], port: 5432 },
    ],
  );
  const { code, stderr } = await end();
  assert.deepEqual([code, stderr], [130, '']);
  const again = startBerth(['forward', id, `${ports[0]}:3000`], { env: service.environment() });
  children.push(again);
  await untilTrue('it listens', () => again.seen.stdout.endsWith('\n'));
  assert.equal(again.seen.stdout, `Forwarding 127.0.0.1:${ports[0]} to port 3000 of ${id}\n`);
});

test('connections are forwarded at the same time, each with its half-closes', async () => {
  await serve(3000, echo);
  await serve(3001, (socket) => {
    // Answers only after the whole request.
    void text(socket).then((asked) => socket.end(`you said ${asked}`));
  });
  const { ports, end } = await forward(['0:3000', '0:3001']);
  const sent = randomBytes(8_000_000);
  const sums = await Promise.all(
    [1, 2, 3].map(async () => {
      const socket = dial(ports[0]);
      socket.end(sent);
      return createHash('sha256')
        .update(await buffer(socket))
        .digest('hex');
    }),
  );
  assert.deepEqual(new Set(sums), new Set([createHash('sha256').update(sent).digest('hex')]));
  const asking = dial(ports[1]);
  asking.end('hello');
  assert.equal(await text(asking), 'you said hello');
  await untilTrue('no connection is left in the sandbox', () => accepted.size === 0);
  assert.equal((await end()).stderr, '');
});

test('a connection that is reset leaves none in the sandbox', async () => {
  await serve(3000, (socket) => void socket.resume().once('end', () => socket.end()));
  const { ports, end } = await forward(['0:3000']);
  const socket = dial(ports[0]);
  socket.write('begun');
  await untilTrue('the program has it', () => accepted.size === 1);
  socket.resetAndDestroy();
  await untilTrue('the program has lost it', () => accepted.size === 0);
  assert.equal((await end()).stderr, '');
});

test('a refused connection is reported once, and the next one is tried', async () => {
  const { ports, seen, end } = await forward(['0:3000']);
  for (const _ of [1, 2]) {
    const refused = dial(ports[0]);
    await closed(refused);
  }
  await untilTrue('it is reported', () => seen.stderr.split('\n').length > 2);
  assert.equal(
    seen.stderr,
    'berth: port 3000: nothing listens on port 3000 of the sandbox (port_refused)\n' +
      '  start a server that listens on this port of the sandbox\n',
  );
  await serve(3000, echo);
  const socket = dial(ports[0]);
  socket.end('now');
  assert.equal(await text(socket), 'now');
  assert.equal((await end()).code, 130);
});

test('a sandbox that fell asleep is reported, and used again once it is awake', async () => {
  const { id: other } = await service.api.makeSandbox('ready');
  const { db } = service.api;
  const setStatus = async (status: 'ready' | 'stopped'): Promise<void> => {
    await db.updateTable('sandbox').set({ status }).where('id', '=', other).execute();
  };
  await serve(3000, echo);
  const { ports, seen } = await forward(['0:3000'], other);
  const socket = dial(ports[0]);
  socket.write('before');
  await once(socket, 'data');
  await setStatus('stopped');
  await closed(socket);
  await untilTrue('it is reported', () => seen.stderr.includes('no longer awake'));
  const during = dial(ports[0]);
  await closed(during);
  await untilTrue('it is reported', () => seen.stderr.includes('sandbox_state_conflict'));
  await setStatus('ready');
  const later = dial(ports[0]);
  later.end('after');
  assert.equal(await text(later), 'after');
});

test('more connections than the limit are refused', async () => {
  await serve(3000, echo);
  const { ports, seen } = await forward(['0:3000']);
  const open = Array.from({ length: FORWARD_LIMITS.connections }, () => dial(ports[0]));
  await Promise.all(
    open.map(async (socket) => {
      socket.write('x');
      await once(socket, 'data');
    }),
  );
  const refused = dial(ports[0]);
  await closed(refused);
  await untilTrue('it is reported', () => seen.stderr === 'berth: port 3000: 128 connections are open, the limit\n');
  open.forEach((socket) => socket.destroy());
});

test('an address beyond this computer is warned about', async () => {
  const { seen } = await forward(['0:3000', '--address', '0.0.0.0']);
  await untilTrue('a whole line', () => seen.stderr.endsWith('\n'));
  assert.match(
    seen.stderr,
    /^berth: warning: anyone who reaches 0\.0\.0\.0 can use these ports .* without signing in\n$/,
  );
});

test('a local port in use is reported before anything else', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const env = { BERTH_URL: 'http://127.0.0.1:9' };
  const port = portOf(taken);
  const { code, stdout, stderr } = await service.run(['forward', id, '0:80', `${port}:3000`], { env });
  taken.close();
  assert.deepEqual([code, stdout], [1, '']);
  assert.match(stderr, new RegExp(`^berth: cannot listen on 127\\.0\\.0\\.1:${port}: the port is in use\n`));
  assert.match(stderr, /0:REMOTE takes a free one/);
});

for (const [args, words] of [
  [['3000:'], /invalid port '3000:'.*LOCAL:REMOTE/s],
  [['70000'], /invalid port '70000'/],
  [['8080:0'], /invalid port '8080:0'/],
  [['http'], /invalid port 'http'/],
  [['8080:1', '8080:2'], /the local port 8080 was given twice/],
  [['3000', '--address', 'example.com'], /--address 'example\.com' is invalid: expected an IP address/],
  [[], /missing required argument 'ports'/],
  [Array.from({ length: 65 }, (_, at) => `0:${at + 1}`), /65 ports were given: at most 64/],
] as const) {
  test(`berth forward ${args.join(' ').slice(0, 30)} is a usage error`, async () => {
    const { code, stderr } = await service.run(['forward', id, ...args]);
    assert.equal(code, 2, stderr);
    assert.match(stderr, words);
  });
}

test('a sandbox that does not exist ends the command', async () => {
  const { code, stderr } = await service.run(['forward', `sbx_${'a'.repeat(24)}`, '0:3000']);
  assert.equal(code, 1);
  assert.match(stderr, /sandbox_not_found/);
});
