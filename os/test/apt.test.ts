import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { AptError, describeStatus, ensureBackports, readAptSources } from '../src/apt/apt.ts';

let root: string;
let apt: string;
let count = 0;
before(async () => {
  root = await mkdtemp(join(tmpdir(), 'berth-apt-'));
});
after(() => rm(root, { recursive: true, force: true }));
beforeEach(async () => {
  apt = join(root, String((count += 1)));
  await mkdir(join(apt, 'sources.list.d'), { recursive: true });
});

test('sources are read in both formats; files that apt ignores are left alone', async () => {
  await writeFile(join(apt, 'sources.list'), 'deb http://one.example/debian bookworm main\n');
  await writeFile(join(apt, 'sources.list.d', 'two.list'), 'deb http://two.example/debian bookworm main\n');
  await writeFile(
    join(apt, 'sources.list.d', 'three.sources'),
    'Types: deb\nURIs: http://three.example/debian\nSuites: bookworm\nComponents: main\n',
  );
  await writeFile(join(apt, 'sources.list.d', 'four.list.save'), 'deb http://four.example/debian bookworm main\n');
  const uris = (await readAptSources(apt)).map((source) => source.uri);
  assert.deepEqual(uris, ['http://one.example/debian', 'http://three.example/debian', 'http://two.example/debian']);
});

test('backports are added once, in a separate file, and only if missing', async () => {
  await writeFile(join(apt, 'sources.list'), 'deb http://one.example/debian bookworm main\n');
  assert.equal(await ensureBackports('bookworm', { name: 'our-backports', comment: 'why' }, apt), 'added');
  assert.deepEqual(await readdir(join(apt, 'sources.list.d')), ['our-backports.sources']);
  assert.match(
    await readFile(join(apt, 'sources.list.d', 'our-backports.sources'), 'utf8'),
    /^URIs: http:\/\/one\.example\/debian$/m,
  );
  assert.equal(await ensureBackports('bookworm', { name: 'our-backports', comment: 'why' }, apt), 'there');
});

test('a host without a source to derive from gets a remedy', async () => {
  await writeFile(join(apt, 'sources.list'), 'deb http://one.example/debian bookworm-updates main\n');
  await assert.rejects(
    ensureBackports('bookworm', { name: 'our-backports', comment: 'why' }, apt),
    (error) => error instanceof AptError && /add bookworm-backports/.test(error.remedy),
  );
});

test("apt's status lines become a percentage and the current action", () => {
  assert.equal(
    describeStatus('dlstatus:7:36.5128:Retrieving file 7 of 39 (2s remaining)'),
    '37 % download: Retrieving file 7 of 39 (2s remaining)',
  );
  assert.equal(
    describeStatus('pmstatus:qemu-utils:52.1:Unpacking qemu-utils (amd64)'),
    '52 % installation: Unpacking qemu-utils (amd64)',
  );
  assert.equal(
    describeStatus('pmstatus:libc6:amd64:10:Configuring libc6 (amd64)'),
    '10 % installation: Configuring libc6 (amd64)',
  );
  assert.equal(describeStatus('media-change: Debian'), null);
});
