import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { preparePrivateApt } from '../../src/build/apt.ts';
import { ChecksumError, ensureDebs, VanishedPackagesError } from '../../src/build/debs.ts';
import type { Manifest, ManifestPackage } from '../../src/build/manifest.ts';
import type { LocalArchive } from '../local-archive.ts';
import { serveLocalArchive } from '../local-archive.ts';

const HASH = 'ab'.repeat(32);

describe('the package files of a manifest', () => {
  let folder: string;
  let archive: LocalArchive;
  const signal = AbortSignal.timeout(120_000);

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'berth-debs-'));
    archive = await serveLocalArchive(join(folder, 'archive'));
  });
  afterEach(async () => {
    await archive.close();
    await rm(folder, { recursive: true });
  });

  function ensure(...packages: ManifestPackage[]): Promise<(each: ManifestPackage) => string> {
    const program = { version: '1', sha256: HASH };
    const manifest: Manifest = {
      format: 1,
      suite: 'trixie',
      architecture: 'amd64',
      recipeHash: HASH,
      node: program,
      npm: program,
      agents: [],
      packages,
    };
    return ensureDebs(manifest, {
      folder: join(folder, 'debs'),
      workFolder: join(folder, 'work'),
      apt: () => preparePrivateApt(join(folder, 'apt'), archive.source, 'trixie'),
      onProgress: () => undefined,
      signal,
    });
  }

  it('are fetched by their path in the pool and kept under the name that apt gives them', async () => {
    const one = await archive.add('one', '1:1.0+deb13u1~rc1');
    const pathOf = await ensure(one);
    assert.equal(pathOf(one), join(folder, 'debs/one_1%3a1.0+deb13u1~rc1_amd64.deb'));
    assert.equal((await readFile(pathOf(one))).length, one.sizeBytes);
  });

  it('are fetched from the pool when the index has a newer version', async () => {
    const old = await archive.add('one', '1.0', { listed: false });
    await archive.add('one', '2.0');
    await ensure(old);
    assert.deepEqual(await readdir(join(folder, 'debs')), ['one_1.0_amd64.deb']);
  });

  it('are fetched only once, unless damaged', async () => {
    const one = await archive.add('one', '1.0');
    const two = await archive.add('two', '1.0');
    const pathOf = await ensure(one, two);
    archive.requests.length = 0;
    await ensure(one, two);
    assert.deepEqual(archive.requests, []);
    const damaged = Buffer.from(await readFile(pathOf(two)));
    damaged[200] = (damaged[200] ?? 0) ^ 1;
    await writeFile(pathOf(two), damaged);
    await ensure(one, two);
    assert.deepEqual(archive.requests, [`/debian/${two.poolPath}`]);
    assert.notDeepEqual(await readFile(pathOf(two)), damaged);
  });

  it('that vanished from the archive are all reported by name and version, with the current one', async () => {
    const one = await archive.add('one', '1.0');
    const two = await archive.add('two', '1.0');
    const gone = await archive.add('gone', '3.1-2');
    await archive.remove(one);
    await archive.remove(gone);
    await archive.add('one', '1.1');
    await assert.rejects(ensure(one, two, gone), (error: Error) => {
      assert.ok(error instanceof VanishedPackagesError);
      assert.deepEqual(error.packages, [
        { name: 'one', version: '1.0', available: ['1.1'] },
        { name: 'gone', version: '3.1-2', available: [] },
      ]);
      assert.match(error.message, /one 1\.0 \(available now: 1\.1\)\n {2}gone 3\.1-2 \(no version is available now\)/);
      return true;
    });
    // Downloaded packages stay: the next attempt fetches less.
    assert.deepEqual(await readdir(join(folder, 'debs')), ['two_1.0_amd64.deb']);
  });

  it('are refused when the archive has other content under the same version', async () => {
    const one = await archive.add('one', '1.0', { content: 'first' });
    await archive.remove(one);
    await archive.add('one', '1.0', { content: 'other' });
    await assert.rejects(ensure(one), (error: Error) => {
      assert.ok(error instanceof ChecksumError);
      assert.match(error.message, new RegExp(`one 1\\.0: manifest ${one.sha256}, archive [0-9a-f]{64}`));
      return true;
    });
    assert.deepEqual(await readdir(join(folder, 'debs')), []);
  });

  it('that the archive lists but does not deliver are a failed download, not a vanished version', async () => {
    const one = await archive.add('one', '1.0');
    const listed = await archive.add('two', '1.0');
    await rm(join(folder, 'archive/served/debian', listed.poolPath));
    await assert.rejects(ensure(one, listed), /1 package files could not be downloaded \(two\):[^]*404/);
  });

  it('fail with a clear message when the archive cannot be reached', async () => {
    const one = await archive.add('one', '1.0');
    await archive.close();
    await assert.rejects(ensure(one), (error: Error) => {
      assert.ok(!(error instanceof VanishedPackagesError));
      assert.match(error.message, /apt-get failed/);
      return true;
    });
  });
});
