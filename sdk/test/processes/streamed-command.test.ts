// Commands with onStdout and onStderr on the real service and on the test server.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { until, untilTrue } from '../../../os/test/until.ts';
import { BerthError, CommandFailed, type Berth, type ExecOptions, type RunningCommand } from '../../src/index.ts';
import type { Sandbox } from '../../src/index.ts';
import { realWorld, worldInMemory, type World } from '../worlds.ts';
import { Faults } from './faults.ts';
import type { GuestProcess } from '../guests/guest-process.ts';

interface Running {
  command: RunningCommand;
  sandbox: Sandbox;
  guest: GuestProcess;
  /** Calls of the callbacks, in order. */
  seen: string[];
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
    const newest = (sandbox: Sandbox): Promise<GuestProcess> =>
      until('the process', () => Promise.resolve(world.guests.of(sandbox.id).at(-1) ?? null));
    const run = async (options: ExecOptions = {}, client = berth): Promise<Running> => {
      const { id } = await berth.sandboxes.create({ agent: 'agent_one' });
      const sandbox = await client.sandboxes.get(id);
      const seen: string[] = [];
      const command = sandbox.exec('build', {
        onStdout: (text) => void seen.push(`out ${text}`),
        onStderr: (text) => void seen.push(`err ${text}`),
        ...options,
      });
      command.catch(() => undefined);
      return { command, sandbox, guest: await newest(sandbox), seen };
    };

    test('output is passed on while the command runs, and its process is removed at its end', async () => {
      const { command, sandbox, guest, seen } = await run({ cwd: 'app', user: 'root' });
      assert.deepEqual([guest.asked.command, guest.asked.cwd, guest.asked.user], ['build', 'app', 'root']);
      for (const [stream, text] of [
        ['stdout', 'one'],
        ['stderr', 'two'],
        ['stdout', 'three'],
      ] as const) {
        const before = seen.length;
        guest.write(stream, text);
        await untilTrue('its callback', () => seen.length > before);
      }
      guest.write('stdout', ', four');
      guest.end({ exitCode: 3 });
      const { exitCode, stdout, stderr, truncated, timedOut } = await command;
      assert.deepEqual([exitCode, stdout, stderr, truncated, timedOut], [3, 'onethree, four', 'two', false, false]);
      assert.deepEqual(seen, ['out one', 'err two', 'out three', 'out , four']);
      assert.deepEqual(await sandbox.processes.list(), []);
      await assert.rejects(command.orThrow(), CommandFailed);
    });

    test('a callback is awaited before the next one', async () => {
      const gate = Promise.withResolvers<void>();
      const seen: string[] = [];
      const onStdout = async (text: string): Promise<void> => {
        await gate.promise;
        seen.push(text);
      };
      const { command, guest } = await run({ onStdout, onStderr: (text) => void seen.push(text) });
      guest.write('stdout', 'first');
      guest.write('stderr', 'second');
      guest.end();
      gate.resolve();
      await command;
      assert.deepEqual(seen, ['first', 'second']);
    });

    test('the result has the last bytes of long outputs, which are all passed on', async () => {
      const { command, guest, seen } = await run();
      for (let part = 0; part < 4; part += 1) {
        guest.write('stdout', 'ü'.repeat(100_000));
        const most = (part + 1) * 100_000;
        await untilTrue('its callbacks', () => seen.join('').replaceAll('out ', '').length >= most);
      }
      guest.end();
      const { stdout, truncated } = await command;
      assert.deepEqual([stdout, truncated], ['ü'.repeat(32_768), true]);
      assert.equal(seen.join('').replaceAll('out ', ''), 'ü'.repeat(400_000));
    });

    test('text that is cut between requests stays whole', async () => {
      const { command, guest, seen } = await run();
      const bytes = Buffer.from('\0grüße');
      for (const byte of bytes) {
        guest.write('stdout', Buffer.of(byte));
        await untilTrue('its callback', () => byte > 127 || seen.join('').includes(String.fromCharCode(byte)));
      }
      guest.end();
      const { stdout, truncated } = await command;
      assert.deepEqual([stdout, truncated], ['\0grüße', false]);
      assert.equal(seen.join('').replaceAll('out ', ''), '\0grüße');
    });

    test('the command gets its input, which is closed', async () => {
      const { command, guest } = await run({ stdin: 'typed\n' });
      await untilTrue('its input', () => !guest.inputIsOpen);
      assert.equal(guest.input.toString(), 'typed\n');
      guest.end();
      assert.equal((await command).exitCode, 0);
      const other = await run({ stdin: 'never read' });
      other.guest.end({ exitCode: 2 });
      assert.equal((await other.command).exitCode, 2);
      const without = await run();
      assert.equal(without.guest.asked.stdin, false);
      without.guest.end();
      await without.command;
    });

    test('a signal and a timeout of the command are in its result', async () => {
      for (const [end, expected] of [
        [{ signal: 'SIGINT' }, [130, false]],
        [{ signal: 'SIGKILL', reason: 'timed_out' }, [124, true]],
      ] as const) {
        const { command, guest } = await run();
        guest.end(end);
        const { exitCode, timedOut } = await command;
        assert.deepEqual([exitCode, timedOut], expected);
      }
      const { command, guest } = await run();
      guest.end({ reason: 'lost' });
      await assert.rejects(command, /was lost/);
    });

    test('a command that leaves a writer in the background ends with its own output', async () => {
      const { command, guest, seen, sandbox } = await run();
      guest.write('stdout', 'mine');
      guest.endInFront();
      const { stdout } = await command;
      assert.deepEqual([stdout, seen], ['mine', ['out mine']]);
      assert.deepEqual(await sandbox.processes.list(), []);
      guest.close();
    });

    test('a command survives broken connections and a sleep of its sandbox', async () => {
      const faults = new Faults(world.fetch);
      const { command, sandbox, guest, seen } = await run({}, world.client({ fetch: faults.fetch }));
      faults.next({ method: 'GET', path: '/processes/', as: 'lost', times: 3 });
      guest.write('stdout', 'before,');
      await untilTrue('its callback', () => seen.length === 1);
      await sandbox.sleep();
      world.breakCalls(sandbox.id);
      await sandbox.wake();
      guest.write('stdout', 'after');
      guest.end();
      assert.equal((await command).stdout, 'before,after');
    });

    test('an abort kills the command, also while it starts', async () => {
      const aborted = new AbortController();
      const reason = new Error('not any more');
      const { command, sandbox, guest, seen } = await run({ signal: aborted.signal });
      guest.write('stdout', 'running');
      await untilTrue('its callback', () => seen.length === 1);
      aborted.abort(reason);
      await assert.rejects(command, reason);
      assert.deepEqual(await sandbox.processes.list(), []);

      const early = new AbortController();
      const starting = sandbox.exec('build', { onStdout: () => undefined, signal: early.signal });
      early.abort(reason);
      await assert.rejects(starting, reason);
      await untilTrue('its removal', async () => (await sandbox.processes.list()).length === 0);
      const never = sandbox.exec('build', { onStdout: () => undefined, signal: AbortSignal.abort(reason) });
      await assert.rejects(never, reason);
    });

    test('the timeout of the call kills the command', async () => {
      const { command, sandbox } = await run({ timeoutMs: 500 });
      await assert.rejects(command, (error: unknown) => error instanceof BerthError && error.code === 'timeout');
      await untilTrue('its removal', async () => (await sandbox.processes.list()).length === 0);
    });

    test('an error of a callback kills the command, also after its end', async () => {
      const failure = new Error('the disk is full');
      for (const ends of [false, true]) {
        const { command, sandbox, guest } = await run({ onStdout: () => Promise.reject(failure) });
        guest.write('stdout', 'x');
        if (ends) guest.endInFront();
        await assert.rejects(command, failure);
        assert.deepEqual(await sandbox.processes.list(), []);
      }
    });

    test('a command in a deleted sandbox fails instead of waiting', async () => {
      const { command, sandbox } = await run();
      await sandbox.destroy();
      world.breakCalls(sandbox.id);
      await assert.rejects(command, (error: unknown) => {
        assert.ok(error instanceof BerthError);
        return error.code === 'sandbox_state_conflict';
      });
    });
  });
}
