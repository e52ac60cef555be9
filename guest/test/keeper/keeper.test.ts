// The keeper of processes, as the guest daemon uses it.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { Keeper, NotStarted, type ProcessEnd } from '../../src/keeper/keeper.ts';
import type { Launch, StreamName } from '../../src/keeper/launch.ts';
import { StreamReader, type Piece } from '../../src/keeper/stream-files.ts';
import { untilTrue } from '../../../os/test/until.ts';

const PROGRAM = readFileSync(new URL('../../src/keeper/keeper.pl', import.meta.url), 'utf8');
const KIB = 1_024;
const isRoot = process.getuid?.() === 0;
const user = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0, groups: [] };

/** Events of the keeper about one process. */
class Seen {
  readonly lengths = new Map<StreamName, number>();
  readonly closed = new Set<StreamName>();
  taken: (number | null)[] = [];
  end: ProcessEnd | undefined;
  isLost = false;
}

class Scene {
  readonly folder = mkdtempSync(join(tmpdir(), 'berth-keeper-'));
  readonly #keepers: Keeper[] = [];
  readonly #mounted: string[] = [];
  keeper = this.daemon();

  /** A daemon that starts; an earlier one has detached. */
  daemon(): Keeper {
    const keeper = new Keeper(join(this.folder, 'keeper'), PROGRAM, 2);
    this.#keepers.push(keeper);
    this.keeper = keeper;
    return keeper;
  }

  mount(folder: string): void {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'small', folder]);
    this.#mounted.push(folder);
  }

  place(id: string): string {
    return join(this.folder, id);
  }

  async start(id: string, script: string, launch: Partial<Launch> = {}): Promise<{ pid: number; seen: Seen }> {
    mkdirSync(this.place(id), { recursive: true });
    const pid = await this.keeper.start(id, {
      folder: this.place(id),
      cwd: this.folder,
      program: '/bin/sh',
      argv: ['/bin/sh', '-c', script],
      hasScript: false,
      env: { PATH: '/usr/bin:/bin' },
      user,
      hasInput: false,
      keepBytes: 64 * KIB,
      holds: false,
      records: false,
      ...launch,
    });
    return { pid, seen: this.listen(id) };
  }

  listen(id: string): Seen {
    const seen = new Seen();
    this.keeper.listen(id, {
      grown: (stream, length, isClosed) => {
        seen.lengths.set(stream, length);
        if (isClosed) seen.closed.add(stream);
      },
      taken: (bytes) => void seen.taken.push(bytes),
      ended: (end) => (seen.end = end),
      lost: () => (seen.isLost = true),
    });
    return seen;
  }

  output(id: string, stream: StreamName = 'stdout', from = 0): Buffer {
    const pieces: Buffer[] = [];
    for (let offset = from; ;) {
      const piece = readStream(this.place(id), stream, offset, 10_000);
      if (piece.bytes.length === 0) return Buffer.concat(pieces);
      assert.equal(piece.offset, offset, 'a gap');
      pieces.push(piece.bytes);
      offset += piece.bytes.length;
    }
  }

  async end(): Promise<void> {
    for (const { id } of await this.keeper.list().catch(() => [])) this.keeper.forget(id);
    for (const keeper of this.#keepers) await keeper.detach();
    for (const folder of this.#mounted) execFileSync('umount', ['-l', folder]);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

function scene(t: TestContext): Scene {
  const created = new Scene();
  t.after(() => created.end());
  return created;
}

function readStream(folder: string, stream: StreamName, offset: number, limit: number): Piece {
  const reader = new StreamReader(folder, stream, offset);
  const piece = reader.read(limit);
  reader.close();
  return piece;
}

const alive = (pid: number): boolean => existsSync(`/proc/${pid}`);

test('output is stored byte for byte, and the end comes after it', async (t) => {
  const at = scene(t);
  const { seen } = await at.start('one', String.raw`printf 'a\0\377\n\n\nend'; printf bad >&2; exit 3`);
  await untilTrue('the end', () => seen.end !== undefined);
  assert.deepEqual(seen.end, { code: 3, signal: 0, timedOut: false });
  assert.deepEqual(at.output('one'), Buffer.from('a\0\xff\n\n\nend', 'latin1'));
  assert.equal(at.output('one', 'stderr').toString(), 'bad');
});

test('a stream keeps at least its last bytes, and its files say what is lost', async (t) => {
  const at = scene(t);
  const { seen } = await at.start('one', 'seq -f %09.0f 1 100000');
  await untilTrue('the end', () => seen.end !== undefined);
  const first = readStream(at.place('one'), 'stdout', 0, 10);
  assert.equal(first.offset > 0 && first.offset <= 1_000_000 - 64 * KIB, true, `from ${first.offset}`);
  assert.equal(first.offset >= 1_000_000 - 336 * KIB, true, `from ${first.offset}`);
  assert.equal(at.output('one', 'stdout', 999_970).toString(), '000099998\n000099999\n000100000\n');
});

test('a held process waits for its reader, and loses nothing', async (t) => {
  const at = scene(t);
  // Several times the bytes that pipe and keeper take ahead of the reader.
  const lines = 200_000;
  const { pid, seen } = await at.start('one', `seq -f %09.0f 1 ${lines}`, { holds: true });
  at.keeper.watch('one', 'stdout', 64 * KIB - 1);
  await untilTrue('it is ahead', () => (seen.lengths.get('stdout') ?? 0) >= 64 * KIB);
  assert.equal(alive(pid), true);
  const whole: Buffer[] = [];
  let offset = 0;
  while (offset < lines * 10) {
    const { bytes } = readStream(at.place('one'), 'stdout', offset, 30_000);
    whole.push(bytes);
    offset += bytes.length;
    const known = offset;
    at.keeper.watch('one', 'stdout', offset);
    await untilTrue('more', () => (seen.lengths.get('stdout') ?? 0) > known || seen.end !== undefined);
  }
  const numbers = Buffer.concat(whole).toString().trim().split('\n').map(Number);
  assert.deepEqual([numbers.length, numbers[0], numbers.at(-1)], [lines, 1, lines]);
  assert.equal(
    numbers.every((number, index) => number === index + 1),
    true,
  );
});

test('a full disk makes a hole in kept output, and holds a held process', { skip: !isRoot }, async (t) => {
  const at = scene(t);
  const small = join(at.folder, 'small');
  mkdirSync(small);
  at.mount(small);
  mkdirSync(join(small, 'held'));
  mkdirSync(join(small, 'kept'));
  writeFileSync(join(small, 'ballast'), Buffer.alloc(900 * KIB));
  const script = 'seq -f %09.0f 1 30000';
  const keepBytes = 8 * 1_024 * KIB;
  const held = await at.start('held', script, { folder: join(small, 'held'), keepBytes, holds: true });
  at.keeper.watch('held', 'stdout', 0);
  await untilTrue('it has written', () => held.seen.lengths.has('stdout'));
  const kept = await at.start('kept', script, { folder: join(small, 'kept'), keepBytes });
  await untilTrue('the kept one has ended', () => kept.seen.end !== undefined);
  assert.equal(held.seen.end, undefined);
  rmSync(join(small, 'ballast'));
  await untilTrue('the held one has ended', () => held.seen.end !== undefined);
  let offset = 0;
  for (;;) {
    const piece = readStream(join(small, 'held'), 'stdout', offset, 100_000);
    if (piece.bytes.length === 0) break;
    assert.equal(piece.offset, offset, 'a gap');
    offset += piece.bytes.length;
  }
  assert.equal(offset, 300_000);
  const stored =
    readdirSync(join(small, 'kept')).length === 0 ? 0 : readStream(join(small, 'kept'), 'stdout', 0, 1).bytes.length;
  assert.equal(stored <= 1, true);
});

test('input arrives in order, its end too; a reader that is gone is reported', async (t) => {
  const at = scene(t);
  const { seen } = await at.start('one', 'cat; exec <&-; sleep 1000', { hasInput: true });
  const bytes = Buffer.alloc(40_000, 'x\0y');
  at.keeper.input('one', bytes);
  await untilTrue('it is taken', () => seen.taken.at(-1) === 40_000);
  at.keeper.input('one', Buffer.from('end'));
  at.keeper.endInput('one');
  await untilTrue('it came back', () => at.output('one').length === 40_003);
  assert.deepEqual(at.output('one'), Buffer.concat([bytes, Buffer.from('end')]));
  at.keeper.signal('one', 15);
  await untilTrue('the end', () => seen.end?.signal === 15);
  assert.equal(seen.taken.at(-1), 40_003);

  const closed = await at.start('two', 'exec <&-; sleep 1000', { hasInput: true });
  await untilTrue('its reader is gone', () => {
    at.keeper.input('two', Buffer.from('x'));
    return closed.seen.taken.includes(null);
  });
  at.keeper.signal('two', 9);
});

test('in a terminal: its size, its foreground programs, and a hang-up', async (t) => {
  const at = scene(t);
  const terminal = { rows: 30, columns: 100 };
  const script = 'stty size; trap "echo caught" INT; read line; stty size; echo "$line"; read line';
  const { pid, seen } = await at.start('one', script, { terminal, hasInput: true });
  await untilTrue('its size', () => at.output('one', 'output').toString().includes('30 100\r\n'));
  at.keeper.resize('one', { rows: 5, columns: 6 });
  at.keeper.input('one', Buffer.from('word\n'));
  await untilTrue('a new size', () => at.output('one', 'output').toString().includes('5 6\r\nword\r\n'));
  at.keeper.signal('one', 2);
  await untilTrue('the signal', () => at.output('one', 'output').toString().includes('caught\r\n'));
  at.keeper.forget('one');
  await untilTrue('the shell is gone', () => !alive(pid));
  assert.equal(seen.isLost, false);
});

test('a time limit kills the process group', async (t) => {
  const at = scene(t);
  const { seen } = await at.start('one', 'sleep 1000 & echo $!; wait', { limitMs: 300 });
  await untilTrue('the end', () => seen.end !== undefined);
  assert.deepEqual(seen.end, { code: 0, signal: 9, timedOut: true });
  const child = Number(at.output('one').toString());
  await untilTrue('its child is gone', () => !alive(child));
});

test('what cannot be started names the step and the error', async (t) => {
  const at = scene(t);
  const failed = (stage: string, errno: number) => (error: unknown) =>
    error instanceof NotStarted && error.stage === stage && error.errno === errno;
  await assert.rejects(at.start('one', '', { cwd: '/nowhere' }), failed('cwd', 2));
  await assert.rejects(at.start('one', '', { program: '/etc/passwd' }), failed('program', 13));
  await assert.rejects(at.start('one', '', { program: 'no-such-program' }), failed('program', 2));
});

test('processes with a record outlive their daemon, others end with it', async (t) => {
  const at = scene(t);
  const recorded = await at.start('recorded', 'echo before; read line; echo "$line"; exit 7', {
    records: true,
    hasInput: true,
  });
  const bare = await at.start('bare', 'sleep 1000');
  const inTerminal = await at.start('terminal', 'sleep 1000', { terminal: { rows: 5, columns: 5 }, hasInput: true });
  await at.keeper.detach();
  await untilTrue('the others are gone', () => !alive(bare.pid) && !alive(inTerminal.pid));
  assert.equal(alive(recorded.pid), true);
  const next = at.daemon();
  assert.deepEqual(await next.list(), [{ id: 'recorded', pid: recorded.pid, inputBytes: 0, end: null }]);
  const seen = at.listen('recorded');
  next.input('recorded', Buffer.from('after\n'));
  await untilTrue('the end', () => seen.end !== undefined);
  assert.deepEqual(seen.end, { code: 7, signal: 0, timedOut: false });
  assert.equal(at.output('recorded').toString(), 'before\nafter\n');
  const [code, signal, timedOut, endedAtMs] = readFileSync(join(at.place('recorded'), 'end'), 'utf8').split(' ');
  assert.deepEqual([code, signal, timedOut], ['7', '0', '0']);
  assert.equal(Math.abs(Date.now() - Number(endedAtMs)) < 600_000, true);
  assert.deepEqual(await next.list(), []);
});

test('the end of a process is recorded without a daemon; then the keeper exits', async (t) => {
  const at = scene(t);
  const { pid } = await at.start('one', `until [ -e ${at.folder}/go ]; do sleep 0.05; done; echo late; exit 5`, {
    records: true,
  });
  const keeper = Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ')[1]);
  await at.keeper.detach();
  writeFileSync(`${at.folder}/go`, '');
  await untilTrue('the record', () => existsSync(join(at.place('one'), 'end')));
  assert.match(readFileSync(join(at.place('one'), 'end'), 'utf8'), /^5 0 0 \d+\n$/);
  assert.equal(at.output('one').toString(), 'late\n');
  await untilTrue('the keeper is gone', () => !alive(keeper));
});

test('a killed keeper is reported, and the next start makes another', async (t) => {
  const at = scene(t);
  const { pid, seen } = await at.start('one', 'sleep 1000');
  const keeper = Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ')[1]);
  process.kill(keeper, 'SIGKILL');
  await untilTrue('it is reported', () => seen.isLost);
  process.kill(pid, 'SIGKILL');
  const again = await at.start('two', 'echo again');
  await untilTrue('the end', () => again.seen.end !== undefined);
  assert.equal(at.output('two').toString(), 'again\n');
});

test('a process sees its own descriptors only, and default signals', async (t) => {
  const at = scene(t);
  // The shell reads its own status: it blocks signals for a moment when it starts another program.
  const status = 'while read name value; do case $name in Sig[BI]*) echo "$name $value";; esac; done </proc/$$/status';
  const { seen } = await at.start('one', `ls /proc/$$/fd; ${status}`);
  await untilTrue('the end', () => seen.end !== undefined);
  const lines = at.output('one').toString().trim().split('\n');
  assert.deepEqual(
    lines.map((line) => line.replace(/\s+/, ' ')),
    ['0', '1', '2', 'SigBlk: 0000000000000000', 'SigIgn: 0000000000000000'],
  );
});
