// Terminals, commands and tunnels of the SDK on the real service, over the global WebSocket and
// `ws`.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { buffer, text } from 'node:stream/consumers';
import { after, afterEach, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket as NodeWebSocket } from 'ws';
import { signInAs, startApi, type TestApi } from '../../api/test/world/api.ts';
import { ExecRefusal } from '../../api/test/world/guests/exec-refusal.ts';
import { untilTrue } from '../../os/test/until.ts';
import {
  Berth,
  BerthError,
  type SandboxStreams,
  type SandboxTerminal,
  type WebSocketConstructor,
} from '../src/index.ts';
import { TestServer } from '../src/testing/index.ts';
import { against, type Answer } from './scripted-server.ts';
import { StreamGuest } from './stream-guest.ts';

const MIB = 1_048_576;

let api: TestApi;
let guest: StreamGuest;
before(async () => {
  api = await startApi({ durable: false, settings: { requestsPerMinute: 100_000 } });
});
after(() => api.close());

const failing =
  (code: string, message = /./) =>
  (error: unknown): boolean => {
    assert.ok(error instanceof BerthError, String(error));
    assert.equal(error.code, code, error.message);
    assert.match(error.message, message);
    return true;
  };

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

for (const [name, WebSocket] of [
  ['of the platform', globalThis.WebSocket],
  ['of ws', NodeWebSocket],
] as const satisfies readonly [string, WebSocketConstructor][]) {
  describe(`over the WebSocket ${name}`, () => {
    const isNode = WebSocket === NodeWebSocket;
    let berth: Berth;
    before(() => {
      berth = new Berth({ url: api.url, apiKey: api.token, WebSocket, maxRetries: 0 });
    });
    afterEach(() => guest.close());
    async function ready(): Promise<SandboxStreams> {
      guest = new StreamGuest();
      api.front.stream = guest.answer;
      return berth.sandboxes.streams((await api.makeSandbox('ready')).id);
    }

    test('a command gets stdin and its end, and returns both outputs and the exit code', async () => {
      const sandbox = await ready();
      const command = await sandbox.command('cat; echo ünd >&2; exit 3');
      const input = command.stdin.getWriter();
      await input.write('text, ');
      await input.write(new Uint8Array([0, 255, 10]));
      await input.close();
      const [stdout, stderr] = await Promise.all([buffer(command.stdout), text(command.stderr)]);
      assert.deepEqual([...stdout], [...Buffer.from('text, '), 0, 255, 10]);
      assert.deepEqual([stderr, await command.exited], ['ünd\n', { exitCode: 3 }]);
      assert.equal(new URL(guest.targets[0] ?? '', 'http://guest').searchParams.get('tty'), 'false');
    });

    test('directory, variables and user of a command reach the sandbox', async () => {
      const sandbox = await ready();
      const staged: string[][] = [];
      api.front.variables = (_id, env) => void staged.push(env);
      const options = { cwd: 'my app', env: { A: 'ü=1&2', _B: '' }, user: 'root' };
      await (
        await sandbox.command('true', options)
      ).exited;
      (await sandbox.terminal({ command: 'true', ...options })).close();
      const given = guest.targets.map((target) => new URL(target, 'http://guest').searchParams);
      for (const query of given) assert.deepEqual([query.get('cwd'), query.get('user')], ['my app', 'root']);
      const variables = ['A=ü=1&2', '_B='];
      assert.deepEqual(staged, [variables, variables]);
    });

    test('a command receives and returns 8 MiB unchanged', async () => {
      const command = await (await ready()).command('cat');
      const sent = randomBytes(8 * MIB);
      const [received] = await Promise.all([
        buffer(command.stdout),
        new Blob([sent]).stream().pipeTo(command.stdin),
        command.stderr.cancel(),
      ]);
      assert.equal(sha256(received), sha256(sent));
      assert.deepEqual(await command.exited, { exitCode: 0 });
    });

    test('a signal reaches a command and is named in its exit', async () => {
      const command = await (await ready()).command('exec sleep 1000');
      command.signal('SIGTERM');
      assert.deepEqual(await command.exited, { exitCode: 143, signal: 'SIGTERM' });
      assert.deepEqual(guest.orders, [{ signal: 'SIGTERM' }]);
    });

    test('writing to an exited command fails', async () => {
      const command = await (await ready()).command('true');
      await command.exited;
      await assert.rejects(command.stdin.getWriter().write('late'), failing('stream_closed'));
    });

    test('closing, disposing, aborting the signal and aborting stdin each end the command', async () => {
      const sandbox = await ready();
      for (const end of ['close', 'dispose', 'signal', 'stdin'] as const) {
        const controller = new AbortController();
        const command = await sandbox.command('exec sleep 1000', { signal: controller.signal });
        await untilTrue('the command runs', () => guest.running.size === 1);
        const reason = new Error('a reason of the test');
        if (end === 'close') command.close();
        if (end === 'dispose') await command[Symbol.asyncDispose]();
        if (end === 'signal') controller.abort(reason);
        if (end === 'stdin') await command.stdin.abort(reason);
        const expected =
          end === 'signal' || end === 'stdin' ? reason : failing('stream_closed', /closed by the client/);
        await assert.rejects(command.exited, expected, end);
        await assert.rejects(text(command.stdout), expected, end);
        await untilTrue('nothing runs', () => guest.running.size === 0);
      }
    });

    test('a terminal has a size, accepts keys, resizes and signals, and reports its exit', async () => {
      const sandbox = await ready();
      const terminal = await sandbox.terminal({ cols: 100, rows: 30 });
      assert.equal(guest.targets[0], 'terminal?cols=100&rows=30');
      const keys = terminal.writable.getWriter();
      await keys.write('ls ü\r');
      const { value } = await terminal.readable.getReader().read();
      assert.equal(Buffer.from(value ?? []).toString(), 'ls ü\r');
      terminal.resize({ cols: 90, rows: 20 });
      terminal.signal('SIGHUP');
      assert.deepEqual(await terminal.exited, { exitCode: 129, signal: 'SIGHUP' });
      assert.deepEqual(guest.orders, [{ resize: { cols: 90, rows: 20 } }, { signal: 'SIGHUP' }]);
      const other = await sandbox.terminal({ command: 'vim "a b"' });
      const query = new URL(guest.targets[1] ?? '', 'http://guest').searchParams;
      assert.deepEqual(Object.fromEntries(query), { cols: '80', rows: '24', command: 'vim "a b"' });
      await other.writable.getWriter().write(new Uint8Array([4]));
      assert.deepEqual(await other.exited, { exitCode: 0 });
      assert.equal(await text(other.readable), '');
      (await sandbox.terminal({ agent: true })).close();
      assert.match(guest.targets[2] ?? '', /^terminal\?cols=80&rows=24&agent=ags_/);
    });

    test('a paused terminal sends no output until it resumes, and still takes keys', async () => {
      const sandbox = await ready();
      const [terminal, other] = await Promise.all([sandbox.terminal(), sandbox.terminal()]);
      const echo = async ({ readable, writable }: SandboxTerminal, keys: string): Promise<string> => {
        const [output, input] = [readable.getReader(), writable.getWriter()];
        await input.write(keys);
        const { value } = await output.read();
        output.releaseLock();
        input.releaseLock();
        return Buffer.from(value ?? []).toString();
      };
      terminal.pause();
      terminal.pause();
      const held = echo(terminal, 'while paused');
      await untilTrue('the keys arrive', () => guest.typed.includes('while paused'));
      assert.equal(await Promise.race([held, echo(other, 'meanwhile')]), 'meanwhile');
      terminal.resume();
      assert.equal(await held, 'while paused');
    });

    test('a renewed token replaces the first one; one of nobody ends the terminal', async () => {
      const { id } = await ready();
      const { token, userId } = await api.makeSession({ role: 'member' });
      const person = new Berth({ url: api.url, apiKey: token, WebSocket, maxRetries: 0 });
      const terminal = await person.sandboxes.streams(id).terminal();
      terminal.renew((await signInAs(api.db, userId)).token);
      await terminal.writable.getWriter().write('still here');
      const { value } = await terminal.readable.getReader().read();
      assert.equal(Buffer.from(value ?? []).toString(), 'still here');
      terminal.close();
      const other = await person.sandboxes.streams(id).terminal();
      other.renew('bst_nonsense_of_a_token');
      await assert.rejects(other.exited, failing('unauthenticated'));
    });

    test('a paused terminal notices that its sandbox is gone', async () => {
      const sandbox = await ready();
      const terminal = await sandbox.terminal();
      terminal.pause();
      await berth.raw.destroySandbox({ path: { sandboxId: sandbox.id } });
      await assert.rejects(terminal.exited, failing('sandbox_state_conflict', /no longer awake/));
    });

    test('a paused command takes a limited part of its input, and all of it later', async () => {
      const command = await (await ready()).command('cat');
      command.pause();
      const sent = randomBytes(8 * MIB);
      const writing = new Blob([sent]).stream().pipeTo(command.stdin);
      const taken = await settled(() => guest.typed.length);
      assert.ok(taken > 0 && taken <= 2 * MIB, `${taken} bytes`);
      command.resume();
      const [received] = await Promise.all([buffer(command.stdout), writing, command.stderr.cancel()]);
      assert.equal(sha256(received), sha256(sent));
    });

    test('a tunnel carries bytes both ways and ends when both sides have ended', async () => {
      const sandbox = await ready();
      const tunnel = await sandbox.connect(8080);
      assert.match(guest.targets[0] ?? '', /8080/);
      const sent = randomBytes(3 * MIB);
      const [received] = await Promise.all([
        buffer(tunnel.readable),
        new Blob([sent]).stream().pipeTo(tunnel.writable),
      ]);
      assert.equal(sha256(received), sha256(sent));
      await tunnel.closed;
      const other = await sandbox.connect(22);
      assert.match(guest.targets[1] ?? '', /22/);
      other.close();
      await assert.rejects(other.closed, failing('stream_closed'));
      await untilTrue('the sandbox hears of it', () => guest.streams.size === 0);
    });

    test('an unread tunnel holds the sandbox back, and all of it arrives later', async () => {
      const tunnel = await (await ready()).connect(8080);
      const sent = randomBytes(64 * MIB);
      let taken = 0;
      const source = new ReadableStream<Uint8Array>({
        pull: (controller) => {
          if (taken === sent.length) controller.close();
          else controller.enqueue(sent.subarray(taken, (taken += MIB / 4)));
        },
      });
      const writing = source.pipeTo(tunnel.writable);
      const held = await settled(() => taken);
      assert.ok(held < 48 * MIB, `${held} bytes were taken`);
      const [received] = await Promise.all([buffer(tunnel.readable), writing]);
      assert.equal(sha256(received), sha256(sent));
      await tunnel.closed;
    });

    test('each side of a tunnel ends its direction alone', async () => {
      const sandbox = await ready();
      api.front.stream = () => (stream) => {
        guest.streams.add(stream);
        stream.write('ready');
        let asked = '';
        stream.on('data', (chunk: Buffer) => (asked += chunk.toString()));
        stream.once('end', () => stream.end(`, you said ${asked}`));
      };
      const tunnel = await sandbox.connect(8080);
      const output = tunnel.readable.getReader();
      assert.equal(Buffer.from((await output.read()).value ?? []).toString(), 'ready');
      const input = tunnel.writable.getWriter();
      await input.write('hello');
      await input.close();
      assert.equal(Buffer.from((await output.read()).value ?? []).toString(), ', you said hello');
      assert.equal((await output.read()).done, true);
      await tunnel.closed;
    });

    test('a broken connection fails its streams', async () => {
      const command = await (await ready()).command('echo begun; exec sleep 1000');
      const output = command.stdout.getReader();
      await output.read();
      guest.close();
      await assert.rejects(command.exited, failing('stream_closed', /^the connection to the command was closed: /));
      await assert.rejects(output.read(), failing('stream_closed'));
      const tunnel = await (await ready()).connect(22);
      guest.close();
      assert.equal(await text(tunnel.readable), '');
      await tunnel.writable.getWriter().write('to nobody');
      await assert.rejects(tunnel.closed, failing('stream_closed', /^the tunnel was closed: /));
    });

    test('a stream reports that its sandbox was destroyed', async () => {
      const sandbox = await ready();
      const tunnel = await sandbox.connect(22);
      await berth.raw.destroySandbox({ path: { sandboxId: sandbox.id } });
      await assert.rejects(tunnel.closed, failing('sandbox_state_conflict', /no longer awake/));
    });

    test('a refused connection has the error code of the API', async () => {
      const { id } = await api.makeSandbox('stopped');
      await assert.rejects(berth.sandboxes.streams(id).terminal(), failing('sandbox_state_conflict'));
      await assert.rejects(berth.sandboxes.streams('sbx_nothing').connect(22), failing('sandbox_not_found'));
      const nobody = new Berth({ url: api.url, apiKey: 'brt_wrong', WebSocket });
      await assert.rejects(nobody.sandboxes.streams(id).connect(22), failing('unauthenticated'));
      const nowhere = new Berth({ url: 'http://127.0.0.1:9', apiKey: 'brt_x', WebSocket, maxRetries: 0 });
      await assert.rejects(nowhere.sandboxes.streams(id).connect(22), failing('connection_failed'));
      const sandbox = await ready();
      api.front.stream = () => {
        throw new ExecRefusal('port_refused', 'nothing listens there');
      };
      await assert.rejects(sandbox.connect(1), failing('port_refused', /nothing listens on port 1 of the sandbox/));
      api.front.stream = () => {
        throw new ExecRefusal('too_many_streams', 'words of the host');
      };
      const full = await sandbox.connect(1).catch((error: unknown) => error as BerthError);
      assert.ok(full instanceof BerthError && full.requestId !== undefined);
      assert.deepEqual([full.code, full.status, full.retryable], ['too_many_connections', 429, true]);
    });

    test('opening a stream fails at its timeout and on an aborted signal', async () => {
      const sandbox = await ready();
      api.front.stream = () => new Promise(() => undefined);
      await assert.rejects(sandbox.connect(1, { timeoutMs: 200 }), failing('timeout'));
      const controller = new AbortController();
      const opening = sandbox.connect(1, { signal: controller.signal });
      const reason = new Error('a reason of the test');
      setImmediate(() => controller.abort(reason));
      await assert.rejects(opening, reason);
      await assert.rejects(sandbox.connect(1, { signal: controller.signal }), reason);
    });

    test('unread output blocks the command and arrives completely later', async () => {
      const bytes = 128 * MIB;
      const command = await (await ready()).command(`head -c ${bytes} /dev/zero`);
      await untilTrue('the sandbox is held back', () => guest.heldBack);
      let [read, most] = [0, 0];
      for await (const chunk of command.stdout) {
        read += chunk.byteLength;
        most = Math.max(most, guest.sentBytes - read);
        // Read slower than the sender writes.
        if (most < 8 * MIB && read < 16 * MIB) await delay(1);
      }
      assert.equal(read, bytes);
      assert.ok(most < 48 * MIB, `${most} bytes were under way`);
    });

    test('a command with unread output accepts no more input', async () => {
      const command = await (await ready()).command('cat');
      const input = command.stdin.getWriter();
      const piece = new Uint8Array(MIB);
      let taken = 0;
      const writing = (async () => {
        for (; taken < 128; taken += 1) {
          await input.ready;
          await input.write(piece);
        }
        await input.close();
      })();
      await untilTrue('the sandbox is held back', () => guest.heldBack);
      const sentBytes = await settled(() => guest.sentBytes);
      assert.ok(sentBytes < 48 * MIB && taken < 64, `${sentBytes} bytes out, ${taken} MiB in`);
      const [received] = await Promise.all([lengthOf(command.stdout), writing]);
      assert.deepEqual([received, await command.exited], [128 * MIB, { exitCode: 0 }]);
    });

    if (isNode) {
      test('a refusal whose body never ends is limited by timeout and signal', { timeout: 30_000 }, async (t) => {
        const stalled: Answer = (_, response) =>
          void response.writeHead(409, { 'content-type': 'application/json' }).write('{"error":');
        const { berth: refused, seen } = await against(t, [stalled], { WebSocket });
        const sandbox = refused.sandboxes.streams('sbx_1');
        await assert.rejects(sandbox.connect(1, { timeoutMs: 200 }), failing('invalid_answer', /status 409/));
        const controller = new AbortController();
        const opening = sandbox.connect(1, { signal: controller.signal });
        await untilTrue('the request arrived', () => seen.length === 2);
        const reason = new Error('a reason of the test');
        controller.abort(reason);
        await assert.rejects(opening, reason);
      });
    } else {
      test('output read promptly is unlimited', async () => {
        const command = await (await ready()).command(`head -c ${64 * MIB} /dev/zero`);
        assert.equal(await lengthOf(command.stdout), 64 * MIB);
        assert.deepEqual(await command.exited, { exitCode: 0 });
      });
    }
  });
}

async function lengthOf(stream: ReadableStream<Uint8Array>): Promise<number> {
  let length = 0;
  for await (const chunk of stream) length += chunk.byteLength;
  return length;
}

/** Returns the number after several equal readings. */
async function settled(read: () => number): Promise<number> {
  let [last, same] = [read(), 0];
  await untilTrue('the number stands still', () => {
    const now = read();
    same = now === last ? same + 1 : 0;
    last = now;
    return same === 30;
  });
  return last;
}

test('a command too long for a URL is refused before the request', async () => {
  const streams = new Berth({ url: 'http://127.0.0.1:9', apiKey: 'brt_x' }).sandboxes.streams('sbx_abc');
  await assert.rejects(streams.command('x'.repeat(15_000)), failing('command_too_long', /15008 bytes/));
  const env = { LONG: 'x'.repeat(14_400) };
  await assert.rejects(streams.command('x', { env }), failing('command_too_long', /command with its options too long/));
});

test('a missing WebSocket is reported, in a runtime and in the test server', async (t) => {
  t.mock.property(globalThis, 'WebSocket', undefined);
  const streams = new Berth({ url: 'http://127.0.0.1:9', apiKey: 'brt_x' }).sandboxes.streams('sbx_abc');
  await assert.rejects(streams.connect(22), failing('configuration', /no global WebSocket.*npm package ws/));
  const simulated = new TestServer().client().sandboxes.streams('sbx_abc');
  await assert.rejects(simulated.connect(22), failing('configuration', /no streams/));
});
