// Watches of folders: every change below is reported, or a reset.
import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, rename, rm, rmdir, symlink, unlink, writeFile } from 'node:fs/promises';
import { readdirSync, lstatSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import fc from 'fast-check';
import { watchFiles, type GuestFileChange } from '@berth/protocol/calls/file-watch.ts';
import { FILE_WATCH_LIMITS } from '@berth/protocol/guest-limits.ts';
import { startDaemon, until, type TestDaemon } from '../daemon.ts';
import { outcomeOf, TestFiles } from './files-daemon.ts';

const root = process.getuid?.() === 0;
type Changes = ReturnType<typeof watchFiles.response.parse>;

async function ask(daemon: TestDaemon, path: string, query: Record<string, string> = {}): Promise<Changes | string> {
  const search = new URLSearchParams({ path, recursive: 'true', ...query }).toString();
  const outcome = outcomeOf(await daemon.open('GET', `/files/changes?${search}`).answer);
  return typeof outcome === 'string' ? outcome : watchFiles.response.parse(JSON.parse(outcome.toString()));
}

/** A reader of the changes below a folder. */
class Reader {
  readonly #daemon: TestDaemon;
  readonly #path: string;
  readonly #marks = new Set<string>();
  cursor: string | undefined;

  constructor(daemon: TestDaemon, path = daemon.codeFolder, cursor?: string) {
    this.cursor = cursor;
    this.#daemon = daemon;
    this.#path = path;
  }

  async next(waitMs = 20_000): Promise<Changes> {
    const from = this.cursor === undefined ? {} : { cursor: this.cursor, waitMs: String(waitMs) };
    const found = await ask(this.#daemon, this.#path, from);
    if (typeof found === 'string') throw new Error(found);
    this.cursor = found.cursor;
    return found;
  }

  /**
   * Changes up to that of a new file, as `created directory a`; paths without the folder. Without
   * changes of such files, and of what was created just before: how many there are depends on time.
   */
  async upTo(mark: string): Promise<string[]> {
    await writeFile(join(this.#path, mark), '');
    const seen: string[] = [];
    for (;;) {
      const { changes, reset } = await this.next();
      assert.equal(reset, false);
      for (const one of changes) {
        if (one.path === join(this.#path, mark)) {
          this.#marks.add(one.path);
          return seen;
        }
        const line = shown(one, this.#path);
        const isKnown = this.#marks.has(one.path) || seen.includes(line.replace('changed', 'created'));
        if (one.change !== 'changed' || !isKnown) seen.push(line);
      }
    }
  }
}

function shown({ path, change, kind }: GuestFileChange, folder: string): string {
  return [change, ...(kind === undefined ? [] : [kind]), path === folder ? '.' : path.slice(folder.length + 1)].join(
    ' ',
  );
}

async function begun(daemon: TestDaemon, path?: string): Promise<Reader> {
  const reader = new Reader(daemon, path);
  const first = await reader.next();
  assert.deepEqual([first.changes, first.reset], [[], false]);
  return reader;
}

async function outside(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-watch-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  await chmod(folder, 0o777);
  return folder;
}

test('files and folders are reported as created, changed and removed, with their kind', async (t) => {
  const daemon = await startDaemon(t);
  await daemon.exec('mkdir old; touch old/f; touch gone');
  const reader = await begun(daemon);
  await daemon.exec('echo 1 > new');
  assert.deepEqual(await reader.upTo('1'), ['created file new']);
  await daemon.exec('echo 2 >> new; echo 3 >> new; chmod 600 old/f');
  assert.deepEqual(await reader.upTo('2'), ['changed file new', 'changed file old/f']);
  await daemon.exec('rm gone; mkdir folder; mkfifo fifo; ln -s nowhere link; ln -s / root');
  assert.deepEqual(await reader.upTo('3'), [
    'removed gone',
    'created directory folder',
    'created other fifo',
    'created link link',
    'created link root',
  ]);
  await daemon.exec('rm -r old');
  assert.deepEqual(await reader.upTo('4'), ['removed old/f', 'removed directory old']);
});

test('a write of the file calls is one change of the final name', async (t) => {
  const daemon = await startDaemon(t);
  const files = new TestFiles(daemon);
  const reader = await begun(daemon);
  await files.write('a', 'one');
  assert.deepEqual(await reader.upTo('1'), ['created file a']);
  await files.write('a', 'two');
  assert.deepEqual(await reader.upTo('2'), ['created file a']);
});

test('nested folders made at once are reported with their content', async (t) => {
  const daemon = await startDaemon(t);
  const reader = await begun(daemon);
  for (let round = 0; round < 20; round += 1) {
    await daemon.exec(`mkdir -p ${round}/b/c/d && touch ${round}/b/c/d/f`);
    const seen = new Set(await reader.upTo(`mark-${round}`));
    for (const one of [`directory ${round}`, `directory ${round}/b/c/d`, `file ${round}/b/c/d/f`])
      assert.ok(seen.has(`created ${one}`), [...seen].join('\n'));
  }
});

test('a moved folder is removed and created with its content, and reports its new path alone', async (t) => {
  const daemon = await startDaemon(t);
  const elsewhere = await outside(t);
  await daemon.exec('mkdir -p a/b; touch a/b/f');
  const reader = await begun(daemon);
  await daemon.exec('mv a z');
  assert.deepEqual(await reader.upTo('1'), [
    'removed directory a',
    'created directory z',
    'created directory z/b',
    'created file z/b/f',
  ]);
  await daemon.exec('echo 1 > z/b/f');
  assert.deepEqual(await reader.upTo('2'), ['changed file z/b/f']);
  await daemon.exec(`mv z ${elsewhere}/out; echo 2 > ${elsewhere}/out/b/f`);
  assert.deepEqual(await reader.upTo('3'), ['removed directory z']);
  await daemon.exec(`mv ${elsewhere}/out in; echo 3 > in/b/f`);
  const seen = new Set(await reader.upTo('4'));
  assert.deepEqual(
    [...seen].filter((one) => one.startsWith('created')),
    ['created directory in', 'created directory in/b', 'created file in/b/f'],
  );
});

test('links are not followed, and without recursive only the folder itself is watched', async (t) => {
  const daemon = await startDaemon(t);
  const elsewhere = await outside(t);
  await mkdir(join(elsewhere, 'in'));
  await symlink(elsewhere, join(daemon.codeFolder, 'link'));
  const reader = await begun(daemon);
  await mkdir(join(daemon.codeFolder, 'sub'));
  await reader.upTo('1');
  await writeFile(join(elsewhere, 'f'), '');
  await writeFile(join(elsewhere, 'in/f'), '');
  assert.deepEqual(await reader.upTo('2'), []);
  const search = new URLSearchParams({ path: daemon.codeFolder }).toString();
  const first = JSON.parse((await daemon.call('GET', `/files/changes?${search}`)).text) as Changes;
  await writeFile(join(daemon.codeFolder, 'sub/f'), '');
  await writeFile(join(daemon.codeFolder, 'f'), '');
  const next = await daemon.call('GET', `/files/changes?${search}&cursor=${first.cursor}&waitMs=20000`);
  assert.deepEqual(
    new Set((JSON.parse(next.text) as Changes).changes.map(({ path }) => path)),
    new Set([join(daemon.codeFolder, 'f')]),
  );
  assert.notEqual(first.cursor.split('.')[0], reader.cursor?.split('.')[0]);
});

test('a name that is not UTF-8 is reported as a change of its folder', async (t) => {
  const daemon = await startDaemon(t);
  await daemon.exec('mkdir folder');
  const reader = await begun(daemon);
  await daemon.exec(String.raw`cd folder; mkdir "$(printf 'no\377')"; touch "$(printf 'no\377')/text"`);
  assert.deepEqual(new Set(await reader.upTo('1')), new Set(['changed directory folder']));
  await daemon.exec(String.raw`cd folder; touch "$(printf 'odd\n\033')"`);
  assert.deepEqual(await reader.upTo('2'), ['created file folder/odd\n\u001b']);
});

test('a folder that cannot be read is watched once it can', { skip: !root }, async (t) => {
  const daemon = await startDaemon(t);
  await mkdir(join(daemon.codeFolder, 'closed'), { mode: 0o700 });
  await writeFile(join(daemon.codeFolder, 'closed/f'), '');
  const reader = await begun(daemon);
  await writeFile(join(daemon.codeFolder, 'closed/g'), '');
  assert.deepEqual(await reader.upTo('1'), []);
  await chmod(join(daemon.codeFolder, 'closed'), 0o755);
  assert.deepEqual((await reader.upTo('2')).toSorted(), [
    'changed directory closed',
    'created file closed/f',
    'created file closed/g',
  ]);
  assert.equal(await ask(daemon, join(daemon.folder, 'run')), '403 file_access_denied');
});

test('a watch of a folder that is gone, or has been replaced, is reset or refused', async (t) => {
  const daemon = await startDaemon(t);
  const folder = join(daemon.codeFolder, 'there');
  assert.equal(await ask(daemon, folder), '404 file_not_found');
  await daemon.exec('mkdir there; touch file');
  assert.equal(await ask(daemon, join(daemon.codeFolder, 'file')), '400 not_a_directory');
  const reader = await begun(daemon, folder);
  const held = reader.next();
  await rmdir(folder);
  await assert.rejects(held, /404 file_not_found/);
  await daemon.exec('mkdir there');
  const again = await reader.next(0);
  assert.deepEqual([again.changes, again.reset], [[], true]);
  await writeFile(join(folder, 'f'), '');
  assert.deepEqual(await reader.upTo('1'), ['created file f']);
  // Moved with its parent, which no event tells.
  await daemon.exec('mkdir -p parent/there');
  const below = await begun(daemon, join(daemon.codeFolder, 'parent/there'));
  const pending = below.next();
  await daemon.exec('mv parent other && mkdir -p parent/there');
  // Between the two there is no folder.
  const replaced = await pending.catch((error: unknown) => {
    assert.match(String(error), /404 file_not_found/);
    return below.next(0);
  });
  assert.equal(replaced.reset, true);
});

test('a cursor that is unknown, of another folder, or of an earlier daemon gives a reset', async (t) => {
  const daemon = await startDaemon(t);
  const reader = await begun(daemon);
  const { cursor = '' } = reader;
  for (const other of ['0123456789abcdef.0', `${cursor.split('.')[0]}.999`]) {
    const found = await ask(daemon, daemon.codeFolder, { cursor: other });
    assert.deepEqual(found, { changes: [], cursor, reset: true });
  }
  for (const malformed of ['', 'x', `${cursor}0x`, `${cursor}.1`])
    await assert.rejects(new Reader(daemon, daemon.codeFolder, malformed).next(), /^Error: 400/);
  await daemon.stop('SIGKILL');
  await daemon.start();
  await writeFile(join(daemon.codeFolder, 'f'), '');
  const found = await reader.next(0);
  assert.deepEqual([found.changes, found.reset], [[], true]);
  assert.deepEqual(await reader.upTo('1'), []);
});

test('a file that is written all the time takes one place, and a reader that falls behind is reset', async (t) => {
  const daemon = await startDaemon(t);
  const slow = await begun(daemon);
  const start = slow.cursor ?? '';
  await daemon.exec('for i in $(seq 3000); do echo $i >> log; done; touch end', 120);
  const names = new Set<string>();
  let count = 0;
  while (!names.has('end')) {
    const { changes } = await slow.next();
    count += changes.length;
    for (const { path } of changes) names.add(path.slice(daemon.codeFolder.length + 1));
  }
  assert.deepEqual(names, new Set(['log', 'end']));
  // From the start again, each is there once: as created, and as changed.
  const again = await ask(daemon, daemon.codeFolder, { cursor: start });
  assert.ok(typeof again !== 'string' && !again.reset && again.changes.length <= 4, JSON.stringify(again));
  assert.ok(count >= again.changes.length);
  await daemon.exec('seq -f file-%g 10000 | xargs touch', 120);
  const [id, last] = again.cursor.split('.');
  await until('the changes have arrived', async () => {
    const now = await ask(daemon, daemon.codeFolder);
    const [nowId, number] = typeof now === 'string' ? [] : now.cursor.split('.');
    // The kernel may have dropped some, which ended the watch.
    return nowId !== id || Number(number) >= Number(last) + 10_000;
  });
  const found = await slow.next(0);
  assert.deepEqual([found.changes, found.reset], [[], true]);
});

test('a watch has a limit of folders, and a sandbox of watches', async (t) => {
  const daemon = await startDaemon(t);
  const { folders, perSandbox } = FILE_WATCH_LIMITS;
  await daemon.exec(`mkdir many; cd many; seq ${folders} | xargs mkdir`, 120);
  const many = join(daemon.codeFolder, 'many');
  assert.equal(await ask(daemon, many), '409 watch_too_large');
  await rmdir(join(many, '1'));
  const reader = await begun(daemon, many);
  const held = reader.next();
  await mkdir(join(many, 'one-more'));
  // The change may come first; the watch is over then.
  const last = await held.then(
    () => reader.next().then(() => '', String),
    (error: unknown) => String(error),
  );
  assert.match(last, /409 watch_too_large/);
  for (let at = 1; at <= perSandbox; at += 1) {
    await daemon.exec(`mkdir watched-${at}`);
    await begun(daemon, join(daemon.codeFolder, `watched-${at}`));
  }
  assert.equal(await ask(daemon, '/tmp'), '429 watch_limit');
  await begun(daemon, join(daemon.codeFolder, 'watched-1'));
  await rmdir(join(daemon.codeFolder, 'watched-1'));
  await until(
    'a watch has ended',
    async () => typeof (await ask(daemon, join(daemon.codeFolder, 'many/2'))) !== 'string',
  );
});

/** Paths with the content of files. */
function truthOf(folder: string): Map<string, string> {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return new Map(names.map((name) => [name, contentAt(join(folder, name))] as const));
}

function contentAt(path: string): string {
  return lstatSync(path).isDirectory() ? 'directory' : `file ${readFileSync(path, 'utf8')}`;
}

/** Applies a change as a reader would: removes, or reads what is there now. */
function apply(mirror: Map<string, string>, folder: string, { path, change, kind }: GuestFileChange): void {
  const name = path.slice(folder.length + 1);
  if (name === '') return;
  if (change === 'removed' || kind !== 'directory')
    for (const known of mirror.keys()) if (known.startsWith(`${name}/`)) mirror.delete(known);
  mirror.delete(name);
  if (change === 'removed') return;
  try {
    mirror.set(name, contentAt(path));
  } catch {
    // Removed meanwhile: a change tells so.
  }
}

const NAMES = ['a', 'b', 'c'];
const place = fc.array(fc.constantFrom(...NAMES), { minLength: 1, maxLength: 3 }).map((parts) => parts.join('/'));
const operation = fc.oneof(
  fc.record({ verb: fc.constant('write' as const), at: place, text: fc.constantFrom('1', '22', '') }),
  fc.record({ verb: fc.constant('folder' as const), at: place }),
  fc.record({ verb: fc.constant('remove' as const), at: place }),
  fc.record({ verb: fc.constant('move' as const), at: place, to: place }),
  fc.record({ verb: fc.constant('leave' as const), at: place }),
  fc.record({ verb: fc.constant('enter' as const), at: place }),
  fc.record({ verb: fc.constant('read' as const) }),
);
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

async function carryOut(folder: string, elsewhere: string, one: Exclude<Operation, { verb: 'read' }>): Promise<void> {
  const path = join(folder, one.at);
  if (one.verb === 'write') await writeFile(path, one.text);
  else if (one.verb === 'folder') await mkdir(path, { recursive: true });
  else if (one.verb === 'remove') await unlink(path).catch(() => rm(path, { recursive: true }));
  else if (one.verb === 'move') await rename(path, join(folder, one.to));
  else if (one.verb === 'leave') await rename(path, elsewhere);
  else await rename(elsewhere, path);
}

test('a mirror that applies the changes ends equal to the folder, after any operations', async (t) => {
  const daemon = await startDaemon(t);
  const base = await outside(t);
  let run = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(operation, { minLength: 1, maxLength: 30 }), async (operations) => {
      run += 1;
      const folder = join(base, String(run));
      const elsewhere = join(base, `elsewhere-${run}`);
      await mkdir(folder);
      await mkdir(join(folder, 'a/b'), { recursive: true });
      const reader = await begun(daemon, folder);
      const mirror = truthOf(folder);
      const take = async (waitMs: number): Promise<boolean> => {
        const { changes, reset } = await reader.next(waitMs);
        assert.equal(reset, false);
        changes.forEach((change) => apply(mirror, folder, change));
        return changes.some(({ path }) => path === join(folder, 'mark'));
      };
      for (const one of operations) {
        if (one.verb === 'read') await take(0);
        else await carryOut(folder, elsewhere, one).catch(() => undefined);
      }
      await writeFile(join(folder, 'mark'), '');
      while (!(await take(20_000)));
      assert.deepEqual(mirror, truthOf(folder));
      await rm(folder, { recursive: true });
      await until('the watch has ended', async () => typeof (await ask(daemon, folder)) === 'string');
    }),
    { numRuns: 60 },
  );
});

const CHURN = String.raw`
  pick() { echo "d$((RANDOM % 3))/d$((RANDOM % 3))/n$((RANDOM % 4))"; }
  up() { dirname "$(pick)"; }
  for i in $(seq 400); do
    case $((RANDOM % 6)) in
      0) mkdir -p "$(pick)" ;; 1) echo $i > "$(pick)" ;; 2) rm -rf "$(pick)" ;;
      3) mv "$(up)" "$(pick)" ;; 4) mv -T "$(pick)" "$(up)" ;; 5) mkdir -p "$(up)/x/y"; echo $i > "$(up)/x/y/f" ;;
    esac
  done 2>/dev/null; touch mark`;

test('a mirror that is kept while a program changes the folder ends equal to it', async (t) => {
  const daemon = await startDaemon(t);
  for (let run = 0; run < 5; run += 1) {
    await daemon.exec(`mkdir -p run-${run}/d0/d0 run-${run}/d1/d1 run-${run}/d2/d2`);
    const folder = join(daemon.codeFolder, `run-${run}`);
    const reader = await begun(daemon, folder);
    const mirror = truthOf(folder);
    const done = daemon.exec(`cd ${folder}; bash -c '${CHURN}'`, 120);
    while (!mirror.has('mark')) {
      const { changes, reset } = await reader.next();
      assert.equal(reset, false);
      changes.forEach((change) => apply(mirror, folder, change));
    }
    assert.equal((await done).exitCode, 0);
    assert.ok(mirror.size > 5, String(mirror.size));
    assert.deepEqual(mirror, truthOf(folder));
  }
});
