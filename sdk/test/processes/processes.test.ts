// Processes of the SDK on the real service and on the test server, with the same expectations.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { untilTrue } from '../../../os/test/until.ts';
import {
  BerthError,
  type Berth,
  type BerthOptions,
  type ProcessOutput,
  type Sandbox,
  type SandboxProcess,
  type SpawnOptions,
} from '../../src/index.ts';
import { failing, realWorld, worldInMemory, type World } from '../worlds.ts';
import { Faults } from './faults.ts';
import type { GuestProcess } from '../guests/guest-process.ts';

async function allOf(chunks: AsyncIterable<ProcessOutput>): Promise<ProcessOutput[]> {
  const all: ProcessOutput[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return all;
}

async function textOf(chunks: AsyncIterable<ProcessOutput>): Promise<string> {
  return (await allOf(chunks)).map(({ text }) => text).join('');
}

for (const start of [realWorld, worldInMemory]) {
  describe(start === realWorld ? 'on the real service' : 'on the test server', () => {
    let world: World;
    let berth: Berth;
    let sandbox: Sandbox;
    before(async () => {
      world = await start();
      berth = world.client();
      sandbox = await berth.sandboxes.create({ agent: 'agent_one' });
    });
    after(() => world.close());
    const guestOf = ({ sandboxId, id }: SandboxProcess): GuestProcess => {
      const guest = world.guests.get(sandboxId, id);
      assert.ok(guest !== undefined, `there is no ${id}`);
      return guest;
    };
    const spawn = async (options: SpawnOptions = {}): Promise<[SandboxProcess, GuestProcess]> => {
      const process = await sandbox.spawn('serve', options);
      return [process, guestOf(process)];
    };
    /** The sandbox, or another one, by a client whose requests can fail. */
    const withFaults = async (
      id = sandbox.id,
      options: BerthOptions = { maxRetries: 0 },
    ): Promise<[Faults, Sandbox]> => {
      const faults = new Faults(world.fetch);
      return [faults, await world.client({ ...options, fetch: faults.fetch }).sandboxes.get(id)];
    };
    const sleep = async (one: Sandbox): Promise<void> => {
      await one.sleep();
      world.breakCalls(one.id);
    };

    test('a shell line, or a program with its arguments, is started with its options', async () => {
      const line = await sandbox.spawn('make | tee log');
      assert.deepEqual(guestOf(line).asked.command, 'make | tee log');
      const { command, cwd, user, tty, status, name, exitCode, endedAt } = line.data;
      assert.deepEqual(
        [line.sandboxId, command, cwd, user, tty, status, name, exitCode, endedAt],
        [sandbox.id, 'make | tee log', '/code', 'berth', false, 'running', null, null, null],
      );
      const options = { cwd: 'app', user: 'root', stdin: true, outputBytes: 65_536 };
      const program = await sandbox.spawn(['node', 'a b.js'], { ...options, env: { PORT: '1' }, name: 'web' });
      assert.deepEqual(guestOf(program).asked, { argv: ['node', 'a b.js'], ...options });
      assert.deepEqual(
        [program.data.command, program.data.cwd, program.data.user, program.data.name],
        ['node a b.js', 'app', 'root', 'web'],
      );
      await assert.rejects(sandbox.spawn([]), failing('invalid_request', 400));
      await assert.rejects(sandbox.spawn('x', { timeoutSeconds: 0 }), failing('invalid_request', 400));
    });

    test('processes are listed newest first and fetched by id', async () => {
      const other = await berth.sandboxes.create({ agent: 'agent_one' });
      const first = await other.spawn('first');
      const second = await other.processes.start(['second']);
      guestOf(first).end();
      assert.deepEqual(
        (await other.processes.list()).map(({ id, data }) => [id, data.command, data.status]),
        [
          [second.id, 'second', 'running'],
          [first.id, 'first', 'exited'],
        ],
      );
      assert.deepEqual((await other.processes.get(first.id)).data, (await first.refresh()).data);
      await assert.rejects(sandbox.processes.get(first.id), failing('process_not_found', 404));
      await assert.rejects(sandbox.processes.get('prc_x'), failing('process_not_found', 404));
    });

    test('a start whose response is lost is repeated and starts one process', async () => {
      const other = await berth.sandboxes.create({ agent: 'agent_one' });
      const [faults, faulty] = await withFaults(other.id, {});
      faults.next({ method: 'POST', path: '/processes', as: 'lost' });
      const { id } = await faulty.spawn('once');
      assert.deepEqual(
        (await other.processes.list()).map((process) => process.id),
        [id],
      );
      faults.next({ method: 'POST', path: '/processes', as: 'lost', times: 9 });
      await assert.rejects(faulty.spawn('twice'), (error: unknown) => {
        assert.ok(failing('connection_failed')(error) && error instanceof BerthError);
        assert.equal(error.retryable, false, 'another call would start a second process');
        return /list the processes/.test(error.message);
      });
    });

    test('a start with the key of another returns its process, whose input continues', async () => {
      const options = { idempotencyKey: 'server-1', stdin: true };
      const [first, guest] = await spawn(options);
      const writer = first.stdin.getWriter();
      await writer.write('one,');
      const [again] = await spawn(options);
      assert.equal(again.id, first.id);
      await again.stdin.getWriter().write('two');
      await untilTrue('the input', () => guest.input.toString() === 'one,two');
      await assert.rejects(sandbox.spawn('other', options), failing('idempotency_key_conflict', 409));
    });

    test('output is read in order, each byte once, until the outputs are closed', async () => {
      const [process, guest] = await spawn();
      guest.write('stdout', 'grüße\n');
      guest.write('stderr', 'careful\n');
      const seen: unknown[] = [];
      for await (const { stream, text, offset, lostBytes } of process.output()) {
        seen.push([stream, text, offset, lostBytes]);
        if (seen.length === 2) guest.write('stdout', 'more\n');
        if (seen.length === 3) guest.end();
      }
      assert.deepEqual(seen, [
        ['stdout', 'grüße\n', 0, 0],
        ['stderr', 'careful\n', 0, 0],
        ['stdout', 'more\n', 8, 0],
      ]);
      assert.equal(process.data.status, 'exited');
      assert.equal(await textOf(process.output()), 'grüße\nmore\ncareful\n');
    });

    test('a terminal has one output', async () => {
      const [process, guest] = await spawn({ tty: true, cols: 100, rows: 30 });
      assert.equal(process.data.tty, true);
      guest.write('output', 'screen');
      guest.end();
      const [chunk] = await allOf(process.output());
      assert.deepEqual([chunk?.stream, chunk?.text, chunk?.cursor], ['output', 'screen', '6']);
      assert.equal((await process.resize({ cols: 5, rows: 6 })).id, process.id);
      const [plain] = await spawn();
      await assert.rejects(plain.resize({ cols: 5, rows: 6 }), failing('process_has_no_terminal', 409));
    });

    test('bytes that are no text arrive unchanged, and a character is not cut', async () => {
      const [process, guest] = await spawn();
      const chunks: ProcessOutput[] = [];
      const parts = [Buffer.from([0, 1, 255]), Buffer.from('é').subarray(0, 1), Buffer.from('é').subarray(1)];
      const written = Buffer.concat([Buffer.from('\uFEFFfirst'), ...parts]);
      guest.write('stdout', '\uFEFFfirst');
      for await (const chunk of process.output()) {
        chunks.push(chunk);
        const part = parts.shift();
        if (part === undefined) guest.end();
        else guest.write('stdout', part);
        // Half a character is not sent: nothing would answer.
        if (parts.length === 1) guest.write('stdout', parts.shift() as Buffer);
      }
      assert.deepEqual(Buffer.concat(chunks.map(({ bytes }) => bytes)), written);
      assert.deepEqual(
        chunks.map(({ text }) => text),
        ['\uFEFFfirst', '\0\x01\uFFFD', 'é'],
      );
    });

    test('a follower survives broken connections and an outage, and tells of each', async () => {
      const [process, guest] = await spawn();
      const [faults, faulty] = await withFaults();
      const same = await faulty.processes.get(process.id);
      const retried: string[] = [];
      const onRetry = ({ code }: BerthError): void => void retried.push(code);
      const exited = same.wait({ onRetry: () => undefined });
      guest.write('stdout', '1\n');
      let text = '';
      for await (const chunk of same.output({ onRetry })) {
        text += chunk.text;
        if (chunk.text === '1\n') {
          faults.next({ path: '/output', as: 'lost' });
          faults.next({ path: '/output', as: 'dropped' });
          guest.write('stdout', '2\n');
        } else if (chunk.text === '2\n') {
          faults.next({ path: '/output', as: 'unavailable', times: 2 });
          guest.write('stdout', '3\n');
          guest.end();
        }
      }
      assert.equal(text, '1\n2\n3\n');
      assert.deepEqual(retried, ['connection_failed', 'connection_failed', 'shutting_down', 'shutting_down']);
      assert.equal((await exited).exitCode, 0);
    });

    test('output and end of a process that sleeps with its sandbox come after the wake', async () => {
      const other = await berth.sandboxes.create({ agent: 'agent_one' });
      const process = await other.spawn('serve', { stdin: true });
      const guest = guestOf(process);
      const retried: string[] = [];
      const onRetry = ({ code }: BerthError): void => void retried.push(code);
      guest.write('stdout', 'before,');
      const { exited } = process;
      let text = '';
      for await (const chunk of process.output({ onRetry })) {
        text += chunk.text;
        if (chunk.text !== 'before,') continue;
        await sleep(other);
        void untilTrue('a failed request', () => retried.length > 0).then(async () => {
          await assert.rejects(process.refresh(), failing('sandbox_state_conflict', 409));
          await assert.rejects(other.spawn('x'), failing('sandbox_state_conflict', 409));
          await assert.rejects(process.kill(), failing('sandbox_state_conflict', 409));
          await other.wake();
          guest.write('stdout', 'after');
          guest.end({ exitCode: 3 });
        });
      }
      assert.equal(text, 'before,after');
      assert.deepEqual([...new Set(retried)], ['sandbox_state_conflict']);
      assert.equal((await exited).exitCode, 3);
    });

    test('reading wakes no sandbox; a signal does in a project with wakeOnUse', async () => {
      const project = await berth.projects.create({ wakeOnUse: true });
      const other = await berth.sandboxes.create({ agent: 'agent_one', projectId: project.id });
      const process = await other.spawn('serve');
      await sleep(other);
      await assert.rejects(process.refresh(), failing('sandbox_state_conflict', 409));
      await assert.rejects(other.processes.list(), failing('sandbox_state_conflict', 409));
      await process.kill('SIGINT');
      assert.equal((await other.refresh()).status, 'ready');
      assert.deepEqual(guestOf(process).signals, ['SIGINT']);
    });

    test('a cursor of a terminal is none of pipes, and the other way round', async () => {
      for (const [tty, since] of [
        [true, '1.0'],
        [false, '1'],
      ] as const) {
        const [process] = await spawn({ tty });
        await assert.rejects(process.output({ since }).next(), (error: unknown) => {
          assert.match(String(error), /query\.since/);
          return failing('invalid_request', 400)(error);
        });
      }
    });

    test('outputUntilExit ends with the process, though others can still write', async () => {
      const [process, guest] = await spawn();
      const chunks = process.outputUntilExit();
      guest.write('stdout', 'first');
      const first = await chunks.next();
      assert.ok(first.done === false && first.value.text === 'first');
      const [second, third] = [chunks.next(), chunks.next()];
      guest.write('stdout', 'second');
      guest.endInFront({ exitCode: 3 });
      const { done, value } = await second;
      assert.ok(done === false && value.text === 'second');
      assert.deepEqual(await third, { done: true, value: { exitCode: 3, signal: null, reason: null } });
      guest.close();
    });

    test('the cursor of each chunk continues behind it in another client', async () => {
      const [process, guest] = await spawn();
      const chunks: ProcessOutput[] = [];
      guest.write('stdout', 'a1');
      guest.write('stderr', 'b1');
      for await (const chunk of process.output()) {
        chunks.push(chunk);
        if (chunks.length === 2) {
          guest.write('stdout', 'a2');
          guest.write('stderr', 'b2');
          guest.end();
        }
      }
      assert.equal(chunks.map(({ text }) => text).join(), 'a1,b1,a2,b2');
      for (const [index, { cursor }] of chunks.entries()) {
        const same = await (await world.client().sandboxes.get(sandbox.id)).processes.get(process.id);
        const found = new Map<string, string>();
        for await (const { stream, text } of same.output({ since: cursor }))
          found.set(stream, (found.get(stream) ?? '') + text);
        const rest = chunks.slice(index + 1);
        for (const stream of ['stdout', 'stderr']) {
          const expected = rest.filter((one) => one.stream === stream).map(({ text }) => text);
          assert.equal(found.get(stream) ?? '', expected.join(''), `${stream} behind ${cursor}`);
        }
      }
    });

    test('tail reads the last bytes; without follow, reading ends with the output until now', async () => {
      const [process, guest] = await spawn();
      assert.equal(await textOf(process.output({ follow: false })), '');
      guest.write('stdout', 'first,second');
      assert.equal(await textOf(process.output({ follow: false })), 'first,second');
      assert.equal(await textOf(process.output({ tail: 6, follow: false })), 'second');
      assert.equal(await textOf(process.output({ tail: 0, follow: false })), '');
      const since = (await process.output().next()).value?.cursor;
      guest.write('stdout', ',third');
      assert.equal(await textOf(process.output({ since, tail: 1, follow: false })), ',third');
      const [next] = [process.output({ tail: 5 })];
      assert.equal((await next.next()).value?.text, 'third');
      guest.end();
      assert.equal((await next.next()).done, true);
    });

    test('reading without follow ends though the process writes faster than it is read', async () => {
      const [process, guest] = await spawn();
      const [faults, faulty] = await withFaults();
      const same = await faulty.processes.get(process.id);
      guest.write('stdout', 'x'.repeat(600_000));
      faults.onRequest = () => guest.write('stdout', 'y'.repeat(300_000));
      let bytes = 0;
      for await (const chunk of same.output({ follow: false })) bytes += chunk.bytes.length;
      assert.ok(bytes >= 900_000, String(bytes));
    });

    test('bytes that are no longer kept are counted before the next chunk', async () => {
      const [process, guest] = await spawn({ outputBytes: 65_536 });
      for (let line = 0; line < 2_000; line += 1) guest.write('stdout', `${line}\n`.padStart(100, '.'));
      guest.end();
      const [first, ...others] = await allOf(process.output());
      assert.ok(first !== undefined && first.lostBytes > 0);
      assert.equal(first.offset, first.lostBytes);
      assert.ok(others.every(({ lostBytes }) => lostBytes === 0));
      const bytes = [first, ...others].reduce((sum, chunk) => sum + chunk.bytes.length, 0);
      assert.ok(bytes >= 65_536);
      assert.equal(first.lostBytes + bytes, 200_000);
    });

    test('the end has exit code, signal and reason', async () => {
      for (const [end, expected] of [
        [{ exitCode: 0 }, [0, null, null]],
        [{ exitCode: 7 }, [7, null, null]],
        [{ signal: 'SIGTERM' }, [143, 'SIGTERM', null]],
        [{ signal: 'SIGKILL', reason: 'timed_out' }, [124, 'SIGKILL', 'timed_out']],
        [{ signal: 'SIGKILL', reason: 'out_of_memory' }, [137, 'SIGKILL', 'out_of_memory']],
        [{ reason: 'lost' }, [null, null, 'lost']],
      ] as const) {
        const [process, guest] = await spawn();
        const { exited } = process;
        guest.end(end);
        const { exitCode, signal, reason } = await exited;
        assert.deepEqual([exitCode, signal, reason], expected);
        assert.equal(await process.exited, await exited);
        assert.notEqual(process.data.endedAt, null);
      }
    });

    test('input arrives once each byte, though responses are lost, and is closed', async () => {
      const [faults, faulty] = await withFaults();
      const process = await faulty.spawn('cat', { stdin: true });
      const guest = guestOf(process);
      const writer = process.stdin.getWriter();
      faults.next({ path: '/stdin', as: 'lost' });
      await writer.write('one,');
      faults.next({ path: '/stdin', as: 'dropped' });
      faults.next({ path: '/stdin', as: 'unavailable' });
      await writer.write(Uint8Array.of(0, 255));
      await writer.write('x'.repeat(700_000));
      faults.next({ path: '/stdin', as: 'lost' });
      await writer.close();
      await untilTrue('the end of the input', () => !guest.inputIsOpen);
      assert.deepEqual(
        guest.input,
        Buffer.concat([Buffer.from('one,'), Buffer.of(0, 255), Buffer.from('x'.repeat(700_000))]),
      );
    });

    test('input continues at its end in another client', async () => {
      const [process, guest] = await spawn({ stdin: true });
      await process.stdin.getWriter().write('one,');
      await (await sandbox.processes.get(process.id)).stdin.getWriter().write('two');
      await untilTrue('the input', () => guest.input.toString() === 'one,two');
    });

    test('a writer waits while the process does not read', async () => {
      const [faults, faulty] = await withFaults();
      const process = await faulty.spawn('slow', { stdin: true });
      const guest = guestOf(process);
      let requests = 0;
      faults.onRequest = (_, path) => {
        if (path.endsWith('/stdin')) requests += 1;
      };
      guest.setReads(false);
      const bytes = Buffer.from(Array.from({ length: 2_500_000 }, (_, index) => index % 251));
      const writer = process.stdin.getWriter();
      const written = writer.write(bytes);
      // Five pieces, of which some are refused.
      await untilTrue('a repeated request', () => requests > 5);
      guest.setReads(true);
      await written;
      await writer.close();
      await untilTrue('the input', () => guest.input.length === bytes.length);
      assert.ok(guest.input.equals(bytes));
    });

    test('an abort of the input ends a write that waits', async () => {
      const [process, guest] = await spawn({ stdin: true });
      guest.setReads(false);
      const writer = process.stdin.getWriter();
      const written = writer.write(new Uint8Array(3_000_000));
      const reason = new Error('not any more');
      await Promise.all([writer.abort(reason), assert.rejects(written, reason)]);
      guest.setReads(true);
    });

    test('writing to an ended process fails; closing its input does not', async () => {
      const [process, guest] = await spawn({ stdin: true });
      guest.end();
      await process.exited;
      await process.stdin.close();
      const [other, otherGuest] = await spawn({ stdin: true });
      otherGuest.end();
      await assert.rejects(other.stdin.getWriter().write('x'), failing('process_over', 409));
      const [without] = await spawn();
      await assert.rejects(without.stdin.getWriter().write('x'), failing('process_over', 409));
    });

    test('a process is signaled, and killed with its output by remove', async () => {
      const [process, guest] = await spawn();
      assert.equal(await process.kill(), process);
      await process.kill('SIGINT');
      assert.deepEqual(guest.signals, ['SIGTERM', 'SIGINT']);
      guest.end();
      await assert.rejects(process.kill(), failing('process_over', 409));
      await process.remove();
      await assert.rejects(process.refresh(), failing('process_not_found', 404));
      await process.remove();
      const kinds: string[] = [];
      for await (const { kind, details } of berth.activity.all({ sandboxId: sandbox.id }))
        if (details['processId'] === process.id) kinds.push(kind);
      const removed = 'sandbox_process_removed';
      const signaled = 'sandbox_process_signaled';
      assert.deepEqual(kinds, [removed, signaled, signaled, 'sandbox_process_started']);
    });

    test('await using removes a process at the end of its scope, and ends its followers', async () => {
      let following: Promise<string>;
      let waiting: Promise<unknown>;
      {
        await using process = await sandbox.spawn('serve');
        following = textOf(process.output());
        waiting = process.wait();
        following.catch(() => undefined);
        waiting.catch(() => undefined);
      }
      await assert.rejects(waiting, failing('process_not_found', 404));
      // The service may answer that no writer is left.
      const end = await following.catch((error: unknown) => failing('process_not_found', 404)(error) && '');
      assert.equal(end, '');
    });

    test('a follower ends on its signal and at its timeout', async () => {
      const [process, guest] = await spawn();
      const reason = new Error('not any more');
      const aborted = new AbortController();
      const following = textOf(process.output({ signal: aborted.signal }));
      const waiting = process.wait({ signal: aborted.signal });
      aborted.abort(reason);
      await assert.rejects(following, reason);
      await assert.rejects(waiting, reason);
      await assert.rejects(process.wait({ signal: aborted.signal }), reason);
      await assert.rejects(process.wait({ timeoutMs: 50 }), failing('timeout'));
      await assert.rejects(textOf(process.output({ timeoutMs: 50 })), failing('timeout'));
      guest.write('stdout', 'on');
      const leaving = new AbortController();
      await assert.rejects(async () => {
        for await (const _ of process.output({ signal: leaving.signal })) leaving.abort(reason);
      }, reason);
    });

    test('followers of a deleted sandbox fail instead of waiting', async () => {
      const other = await berth.sandboxes.create({ agent: 'agent_one' });
      const process = await other.spawn('serve');
      const following = textOf(process.output());
      const { exited } = process;
      following.catch(() => undefined);
      await other.destroy();
      world.breakCalls(other.id);
      await assert.rejects(following, failing('sandbox_state_conflict', 409));
      await assert.rejects(exited, failing('sandbox_state_conflict', 409));
      await assert.rejects(textOf(process.output()), failing('sandbox_state_conflict', 409));
    });
  });
}
