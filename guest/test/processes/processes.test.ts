// Processes of the guest daemon, over its HTTP calls.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { PROCESS_LIMITS } from '@berth/protocol/guest-limits.ts';
import type { GuestProcessStart } from '@berth/protocol/calls/processes.ts';
import { guestProcess, type GuestProcess } from '@berth/protocol/processes.ts';
import type { ProcessRecord } from '../../src/processes/record.ts';
import { runs, startDaemon, until, type Answer, type TestDaemon } from '../daemon.ts';

interface Read {
  process: GuestProcess;
  pieces: { stream: string; offset: number; base64: string }[];
  closed: string[];
}

let count = 0;
const newId = (): string =>
  `prc_${(count += 1)
    .toString()
    .padStart(24, '0')
    .replaceAll(/\d/g, (digit) => 'abcdefghij'[Number(digit)] ?? '')}`;

class Guest {
  readonly daemon: TestDaemon;

  constructor(daemon: TestDaemon) {
    this.daemon = daemon;
  }

  put(id: string, asked: Partial<GuestProcessStart>): Promise<Answer> {
    const defaults = {
      stdin: false,
      keepAwake: false,
      name: null,
      limitSeconds: null,
      outputBytes: 65_536,
      digest: 'd'.repeat(64),
    };
    return this.daemon.call('PUT', `/processes/${id}`, { ...defaults, ...asked });
  }

  async start(asked: Partial<GuestProcessStart>): Promise<string> {
    const id = newId();
    const answer = await this.put(id, asked);
    assert.equal(answer.status, 200, answer.text);
    return id;
  }

  async json<T>(method: string, path: string, body?: unknown): Promise<T> {
    const answer = await this.daemon.call(method, path, body);
    assert.equal(answer.status, 200, answer.text);
    return JSON.parse(answer.text) as T;
  }

  async view(id: string, waitMs = 0): Promise<GuestProcess> {
    const { process } = await this.json<{ process: unknown }>('GET', `/processes/${id}?waitMs=${waitMs}`);
    return guestProcess.parse(process);
  }

  async ended(id: string): Promise<GuestProcess> {
    let view = await this.view(id);
    await until('the end', async () => {
      view = await this.view(id, 1_000);
      return view.end !== null;
    });
    return view;
  }

  read(id: string, query: string): Promise<Read> {
    return this.json('GET', `/processes/${id}/output?${query}`);
  }

  /** All output of a stream that is complete. */
  async whole(id: string, stream = 'stdout', from = 0): Promise<Buffer> {
    const parts: Buffer[] = [];
    let offset = from;
    await until('its end', async () => {
      const { pieces, closed } = await this.read(id, `${stream}=${offset}&waitMs=1000`);
      for (const piece of pieces) {
        assert.equal(piece.offset, offset, 'a gap');
        const bytes = Buffer.from(piece.base64, 'base64');
        parts.push(bytes);
        offset += bytes.length;
      }
      return closed.includes(stream);
    });
    return Buffer.concat(parts);
  }

  tryInput(id: string, offset: number | null, bytes: string | Buffer, end = false): Promise<Answer> {
    const base64 = Buffer.from(bytes).toString('base64');
    return this.daemon.call('POST', `/processes/${id}/input`, { offset, base64, end });
  }

  async input(id: string, offset: number, bytes: string | Buffer, end = false): Promise<number> {
    const answer = await this.tryInput(id, offset, bytes, end);
    assert.equal(answer.status, 200, answer.text);
    return (JSON.parse(answer.text) as { offset: number }).offset;
  }
}

async function guestOf(t: TestContext): Promise<Guest> {
  const started: Guest[] = [];
  // Before the daemon stops, which ends none of its processes.
  t.after(async () => {
    for (const guest of started) {
      if (!guest.daemon.isRunning) continue;
      const { processes } = await guest.json<{ processes: GuestProcess[] }>('GET', '/processes');
      for (const { processId } of processes) await guest.json('DELETE', `/processes/${processId}`);
    }
  });
  const guest = new Guest(await startDaemon(t));
  started.push(guest);
  return guest;
}

async function refusal(answer: Promise<Answer>): Promise<[number, string]> {
  const { status, text } = await answer;
  return [status, (JSON.parse(text) as { error: { code: string } }).error.code];
}

test('a shell line and a program with arguments run with their options, and their end is kept', async (t) => {
  const guest = await guestOf(t);
  const line = await guest.start({
    command: 'printf "a\\0b\\377"; echo "$X" >&2; pwd >&2; exit 7',
    cwd: '/usr',
    env: ['X=y'],
  });
  const program = await guest.start({ argv: ['printf', '%s|', 'one', '', 'a b'], name: 'printer' });
  assert.deepEqual(await guest.whole(line), Buffer.from('a\0b\xff', 'latin1'));
  assert.equal((await guest.whole(line, 'stderr')).toString(), 'y\n/usr\n');
  assert.equal((await guest.whole(program)).toString(), 'one||a b|');
  const view = await guest.ended(line);
  assert.deepEqual({ ...view.end, endedUnixMs: 0 }, { exitCode: 7, signal: null, reason: null, endedUnixMs: 0 });
  assert.deepEqual([view.cwd, view.tty, view.name], ['/usr', false, null]);
  const { processes } = await guest.json<{ processes: GuestProcess[] }>('GET', '/processes');
  assert.deepEqual(
    processes.map(({ processId, name, command }) => [processId, name, command]),
    [
      [program, 'printer', 'printf %s| one  a b'],
      [line, null, view.command],
    ],
  );
});

test('a repeated start starts nothing twice', async (t) => {
  const guest = await guestOf(t);
  const id = newId();
  const command = 'echo run >> runs; sleep 1000';
  const answers = await Promise.all([
    guest.put(id, { command }),
    guest.put(id, { command }),
    guest.put(id, { command }),
  ]);
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200],
  );
  assert.equal((await guest.put(id, { command })).status, 200);
  await until('it runs', () => existsSync(join(guest.daemon.codeFolder, 'runs')));
  assert.equal(readFileSync(join(guest.daemon.codeFolder, 'runs'), 'utf8'), 'run\n');
});

test('a start that fails leaves nothing, and names the reason', async (t) => {
  const guest = await guestOf(t);
  assert.deepEqual(await refusal(guest.put(newId(), { command: 'true', cwd: '/nowhere' })), [
    400,
    'command_cwd_invalid',
  ]);
  assert.deepEqual(await refusal(guest.put(newId(), { command: 'true', user: 'nobody-here' })), [
    400,
    'command_user_unknown',
  ]);
  for (const program of ['no-such-program', '/etc/passwd', '/code'])
    assert.deepEqual(await refusal(guest.put(newId(), { argv: [program] })), [400, 'command_program_invalid'], program);
  assert.deepEqual(readdirSync(join(guest.daemon.folder, 'state/processes')), []);
  assert.deepEqual(await refusal(guest.daemon.call('GET', `/processes/${newId()}`)), [404, 'process_not_found']);
});

test('a reader waits for output, and for the end', async (t) => {
  const guest = await guestOf(t);
  const id = await guest.start({ command: 'read line; echo "$line"; read line', stdin: true });
  assert.deepEqual((await guest.read(id, 'stdout=0&stderr=0')).pieces, []);
  const waiting = [guest.read(id, 'stdout=0&waitMs=20000'), guest.read(id, 'stdout=0&stderr=0&waitMs=20000')];
  await guest.input(id, 0, 'hello\n');
  for (const { pieces, closed } of await Promise.all(waiting)) {
    assert.deepEqual(pieces, [{ stream: 'stdout', offset: 0, base64: Buffer.from('hello\n').toString('base64') }]);
    assert.deepEqual(closed, []);
  }
  const ends = [guest.view(id, 20_000), guest.read(id, 'stdout=6&waitMs=20000')] as const;
  await guest.input(id, 6, '', true);
  assert.equal((await ends[0]).end?.exitCode, 1);
  assert.deepEqual((await ends[1]).closed, ['stdout']);
});

test('a reader that leaves does not stop another from waiting', async (t) => {
  const guest = await guestOf(t);
  const id = await guest.start({ command: 'cat', stdin: true });
  const staying = guest.read(id, 'stdout=0&waitMs=20000');
  // The wait of this one ends first.
  assert.deepEqual((await guest.read(id, 'stdout=0&waitMs=50')).pieces, []);
  const sent = guest.input(id, 0, 'late\n').then(() => 'sent');
  assert.equal((await staying).pieces.length, 1);
  assert.equal(await sent, 'sent');
  const view = guest.view(id, 20_000);
  await guest.input(id, 5, '', true);
  assert.equal((await view).end?.exitCode, 0);
});

test('what does not fit is reported as a gap, and the last bytes are there', async (t) => {
  const guest = await guestOf(t);
  const id = await guest.start({ command: 'seq -f %09.0f 1 200000' });
  await guest.ended(id);
  const { pieces } = await guest.read(id, 'stdout=10');
  const [piece] = pieces;
  assert.ok(
    piece !== undefined && piece.offset > 10 && piece.offset <= 2_000_000 - 65_536,
    JSON.stringify(piece?.offset),
  );
  const rest = (await guest.whole(id, 'stdout', piece.offset)).toString();
  assert.equal(rest.length, 2_000_000 - piece.offset);
  assert.equal(rest.endsWith('\n000200000\n'), true);
});

test('input is written once, whatever is repeated; one with a hole is refused', async (t) => {
  const guest = await guestOf(t);
  const id = await guest.start({ command: 'cat', stdin: true });
  assert.equal(await guest.input(id, 0, 'abc'), 3);
  assert.equal(await guest.input(id, 0, 'abc'), 3);
  assert.equal(await guest.input(id, 1, 'bcde'), 5);
  assert.deepEqual(await refusal(guest.tryInput(id, 6, 'x')), [409, 'process_input_gap']);
  assert.equal(await guest.input(id, 5, 'f', true), 6);
  assert.equal(await guest.input(id, 5, 'f'), 6);
  assert.deepEqual(await refusal(guest.tryInput(id, null, 'g')), [409, 'process_over']);
  assert.equal((await guest.whole(id)).toString(), 'abcdef');
});

test('input repeated while it waits for room is written once', async (t) => {
  const guest = await guestOf(t);
  const id = await guest.start({ command: 'until [ -e go ]; do sleep 0.05; done; wc -c', stdin: true });
  // A pipe takes some of it, but leaves too little room for what follows.
  const full = Buffer.alloc(PROCESS_LIMITS.inputBytes, 'x');
  const part = Buffer.alloc(300_000, 'y');
  assert.equal(await guest.input(id, 0, full), full.length);
  const repeats = [1, 2, 3].map(() => guest.input(id, full.length, part));
  const appended = guest.tryInput(id, null, part);
  await guest.view(id);
  writeFileSync(join(guest.daemon.codeFolder, 'go'), '');
  const offsets = await Promise.all(repeats);
  offsets.push((JSON.parse((await appended).text) as { offset: number }).offset);
  // When the appended bytes come first, the repeats are taken for them.
  const end = Math.max(...offsets);
  assert.ok(
    [full.length + part.length, full.length + 2 * part.length].includes(end) &&
      Math.min(...offsets) >= full.length + part.length,
    offsets.join(),
  );
  await guest.input(id, end, '', true);
  assert.equal((await guest.whole(id)).toString().trim(), String(end));
});

test('input that a process does not read is bounded', async (t) => {
  const guest = await guestOf(t);
  const id = await guest.start({ command: 'sleep 1000', stdin: true });
  assert.equal(await guest.input(id, 0, Buffer.alloc(1_000_000, 'x')), 1_000_000);
  const more = guest.tryInput(id, 1_000_000, Buffer.alloc(1_000_000, 'y'));
  assert.deepEqual(await refusal(more), [409, 'process_input_full']);
});

test('in a terminal: size, keys, signals', async (t) => {
  const guest = await guestOf(t);
  const command = 'stty size; trap "echo caught" INT; read line; stty size; while :; do sleep 0.1; done';
  const id = await guest.start({ command, terminal: { rows: 20, cols: 70 } });
  const shows = async (text: string): Promise<void> =>
    until(text, async () => {
      const { pieces } = await guest.read(id, 'output=0');
      return pieces.some(({ base64 }) => Buffer.from(base64, 'base64').includes(text));
    });
  await shows('20 70\r\n');
  await guest.json('POST', `/processes/${id}/size`, { rows: 5, cols: 6 });
  await guest.input(id, 0, 'word\n');
  await shows('word\r\n5 6\r\n');
  await guest.json('POST', `/processes/${id}/signal`, { signal: 'SIGINT' });
  await shows('caught\r\n');
  await guest.json('POST', `/processes/${id}/signal`, { signal: 'SIGHUP' });
  assert.equal((await guest.ended(id)).tty, true);
  const plain = await guest.start({ command: 'sleep 1000' });
  const resize = guest.daemon.call('POST', `/processes/${plain}/size`, { rows: 5, cols: 6 });
  assert.deepEqual(await refusal(resize), [409, 'process_has_no_terminal']);
});

test('signals and time limits end the process group, and are told apart', async (t) => {
  const guest = await guestOf(t);
  const killed = await guest.start({ command: 'sleep 1000 & echo $! > child; wait' });
  const late = await guest.start({ command: 'sleep 1000', limitSeconds: 1 });
  const child = await guest.daemon.number('child');
  await guest.json('POST', `/processes/${killed}/signal`, { signal: 'SIGTERM' });
  const { end } = await guest.ended(killed);
  assert.deepEqual([end?.exitCode, end?.signal, end?.reason], [null, 'SIGTERM', null]);
  await until('its child is gone', async () => !(await runs(child)));
  const over = guest.daemon.call('POST', `/processes/${killed}/signal`, { signal: 'SIGTERM' });
  assert.deepEqual(await refusal(over), [409, 'process_over']);
  const timedOut = (await guest.ended(late)).end;
  assert.deepEqual([timedOut?.exitCode, timedOut?.signal, timedOut?.reason], [null, 'SIGKILL', 'timed_out']);
});

test('after a remove nothing is left', async (t) => {
  const guest = await guestOf(t);
  const id = await guest.start({ command: 'trap "" HUP TERM; echo $$ > shell; while :; do echo x; sleep 0.1; done' });
  const shell = await guest.daemon.number('shell');
  const waiting = [
    refusal(guest.daemon.call('GET', `/processes/${id}?waitMs=20000`)),
    refusal(guest.daemon.call('GET', `/processes/${id}/output?stderr=0&waitMs=20000`)),
  ];
  assert.deepEqual(await guest.json('DELETE', `/processes/${id}`), { isRemoved: true });
  for (const answer of waiting) assert.deepEqual(await answer, [404, 'process_not_found']);
  await until('it is gone', async () => !(await runs(shell)));
  assert.deepEqual(readdirSync(join(guest.daemon.folder, 'state/processes')), []);
  assert.deepEqual(await guest.json('DELETE', `/processes/${id}`), { isRemoved: false });
});

for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
  test(`a process outlives a daemon that gets ${signal}, and the next one goes on with it`, async (t) => {
    const guest = await guestOf(t);
    const id = await guest.start({ command: 'echo before; read line; echo "$line"; read line; exit 9', stdin: true });
    const over = await guest.start({ command: 'echo done; exit 4' });
    const lateEnd = await guest.start({ command: 'until [ -e go ]; do sleep 0.05; done; echo late; exit 5' });
    await guest.ended(over);
    assert.equal(await guest.input(id, 0, 'one\n'), 4);
    await guest.daemon.stop(signal);
    writeFileSync(join(guest.daemon.codeFolder, 'go'), '');
    const record = join(guest.daemon.folder, 'state/processes', lateEnd, 'end');
    await until('an end without a daemon', () => existsSync(record));
    await guest.daemon.start();
    assert.equal((await guest.view(over)).end?.exitCode, 4);
    assert.equal((await guest.view(lateEnd)).end?.exitCode, 5);
    assert.equal((await guest.whole(lateEnd)).toString(), 'late\n');
    assert.equal((await guest.view(id)).end, null);
    assert.equal(await guest.input(id, 0, 'one\n'), 4);
    await guest.input(id, 4, 'two\n');
    assert.equal((await guest.ended(id)).end?.exitCode, 9);
    assert.equal((await guest.whole(id)).toString(), 'before\none\n');
  });
}

test('a killed keeper ends nothing silently: its processes are lost', async (t) => {
  const guest = await guestOf(t);
  const id = await guest.start({ command: 'echo $$ > shell; exec sleep 1000' });
  const shell = await guest.daemon.number('shell');
  const parent = execFileSync('ps', ['-o', 'ppid=', '-p', String(shell)], { encoding: 'utf8' }).trim();
  process.kill(Number(parent), 'SIGKILL');
  const { end } = await guest.ended(id);
  assert.deepEqual([end?.exitCode, end?.signal, end?.reason], [null, null, 'lost']);
  process.kill(shell, 'SIGKILL');
  const next = await guest.start({ command: 'echo again' });
  assert.equal((await guest.whole(next)).toString(), 'again\n');
});

test('at most 256 run at once, and one that ends makes room', async (t) => {
  const guest = await guestOf(t);
  const first = await guest.start({ argv: ['sleep', '1000'] });
  for (let running = 1; running < 256; running += 1) await guest.start({ argv: ['sleep', '1000'] });
  assert.deepEqual(await refusal(guest.put(newId(), { command: 'true' })), [429, 'process_limit']);
  await guest.json('DELETE', `/processes/${first}`);
  await guest.ended(await guest.start({ command: 'true' }));
});

test('outputs beyond 2 GiB make room for others, the oldest first', async (t) => {
  const guest = await guestOf(t);
  const ids: string[] = [];
  for (let count = 0; count < 3; count += 1) {
    ids.push(await guest.start({ command: 'echo kept' }));
    await guest.ended(ids[count] ?? '');
  }
  const folder = join(guest.daemon.folder, 'state/processes');
  // Files with a hole: they take no room here.
  for (const id of ids) truncateSync(join(folder, id, 'stdout', '0'.repeat(16)), 1_000_000_000);
  await guest.daemon.stop('SIGTERM');
  await guest.daemon.start();
  await guest.start({ argv: ['sleep', '1000'] });
  assert.deepEqual(
    ids.map((id) => existsSync(join(folder, id))),
    [false, true, true],
  );
});

test('the oldest that have ended make room for others', async (t) => {
  const guest = await guestOf(t);
  const oldest = await guest.start({ command: 'echo kept' });
  await guest.ended(oldest);
  const running = await guest.start({ argv: ['sleep', '1000'] });
  await guest.daemon.stop('SIGTERM');
  const folder = join(guest.daemon.folder, 'state/processes');
  for (let copy = 1; copy < 1_000; copy += 1) {
    const id = newId();
    cpSync(join(folder, oldest), join(folder, id), { recursive: true });
    const record = JSON.parse(readFileSync(join(folder, id, 'process.json'), 'utf8')) as ProcessRecord;
    const later = { ...record, processId: id, startedUnixMs: record.startedUnixMs + copy };
    writeFileSync(join(folder, id, 'process.json'), JSON.stringify(later));
  }
  await guest.daemon.start();
  const listed = async (): Promise<string[]> => {
    const { processes } = await guest.json<{ processes: GuestProcess[] }>('GET', '/processes');
    return processes.map(({ processId }) => processId);
  };
  assert.equal((await listed()).length, 1_001);
  const next = await guest.start({ argv: ['sleep', '1000'] });
  const left = await listed();
  assert.deepEqual([left.length, left.includes(oldest), left.includes(running)], [1_001, false, true]);
  assert.equal(left.includes(next) && existsSync(join(folder, oldest)), false);
});
