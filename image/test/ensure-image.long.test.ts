import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, open, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { defaultCacheFolder } from '../src/config.ts';
import { ensureImage } from '../src/ensure-image.ts';
import type { Image } from '../src/image-folder.ts';
import { ImageError, openImage } from '../src/image-folder.ts';

const MAIN = join(import.meta.dirname, '../src/main.ts');

/** Command lines of other processes that name the folder. */
async function processesNaming(folder: string): Promise<string[]> {
  const found: string[] = [];
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)) {
    // A process may end between the two reads.
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (command.includes(folder)) found.push(command.replaceAll('\0', ' '));
  }
  return found;
}

// Sequential: each test continues with the folder left by the previous one.
describe('building the image from a manifest', { concurrency: false, timeout: 900_000 }, () => {
  const signal = AbortSignal.timeout(900_000);
  let published: Image;
  let folder: string;
  let manifestFile: string;

  before(async () => {
    const cacheFolder = defaultCacheFolder(process.env);
    published = await ensureImage({ cacheFolder, signal });
    // Beside the real cache: it needs four gigabytes, which /tmp may lack. Packages and agents are
    // shared and only read.
    folder = await mkdtemp(join(cacheFolder, 'test-'));
    for (const name of ['debs', 'agents']) await symlink(join(cacheFolder, name), join(folder, name));
    manifestFile = published.manifestPath;
  });
  after(() => rm(folder, { recursive: true, force: true }));

  function startBuild(): ChildProcess {
    const args = [MAIN, 'build', '--manifest', manifestFile, '--cache-dir', folder];
    return spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  }

  it('that is killed midway leaves no process and nothing that passes for an image or stage', async () => {
    const build = startBuild();
    const { stderr } = build;
    assert.ok(stderr);
    let seen = '';
    for await (const chunk of stderr) {
      seen += String(chunk);
      if (seen.includes('Install the root file system')) break;
    }
    assert.match(seen, /Install the root file system/);
    const ended = once(build, 'exit');
    build.kill('SIGKILL');
    await ended;
    await assert.rejects(stat(join(folder, 'image')), { code: 'ENOENT' });
    const stages = await readdir(join(folder, 'stages'));
    assert.deepEqual(
      stages.filter((name) => name.startsWith('root-')),
      [],
    );
    const deadline = Date.now() + 20_000;
    let left = await processesNaming(folder);
    while (left.length > 0 && Date.now() < deadline) {
      await delay(50, undefined, { signal });
      left = await processesNaming(folder);
    }
    assert.deepEqual(left, []);
  });

  it('by two processes at once happens once while the other waits, and gives the published bytes', async () => {
    const outcomes = await Promise.all(
      [startBuild(), startBuild()].map(async (build) => {
        assert.ok(build.stdout && build.stderr);
        const [stdout, stderr, [code]] = await Promise.all([
          text(build.stdout),
          text(build.stderr),
          once(build, 'exit'),
        ]);
        return { stdout, stderr, code: code as number };
      }),
    );
    for (const outcome of outcomes) assert.equal(outcome.code, 0, outcome.stderr);
    assert.equal(new Set(outcomes.map((outcome) => outcome.stdout.split('\n')[0])).size, 1);
    assert.equal(outcomes.filter((outcome) => outcome.stderr.includes('Install the root file system')).length, 1);
    assert.equal(outcomes.filter((outcome) => outcome.stderr.includes('Wait for another build')).length, 1);

    const built = await ensureImage({ cacheFolder: folder, manifestFile, signal });
    assert.deepEqual(built.record.files, published.record.files);
    assert.equal(built.record.manifestDigest, published.record.manifestDigest);
    assert.equal(built.imageId, published.imageId, 'equal content has an equal id');
    assert.deepEqual((await readdir(folder)).sort(), [
      ...['agents', 'debs', 'image', 'image-sources', 'image.lock', 'stages'],
    ]);
  });

  it('again after a changed disk byte repairs it from its own manifest, to the same bytes', async () => {
    const image = await ensureImage({ cacheFolder: folder, manifestFile, signal });
    const disk = await open(image.rootPath, 'r+');
    await disk.write('changed', 5 * 2 ** 30);
    await disk.close();
    await assert.rejects(openImage(image.folder, { verify: 'remembered', signal }), ImageError);
    const steps: string[] = [];
    const repaired = await ensureImage({
      cacheFolder: folder,
      manifestFile,
      signal,
      onProgress: ({ step }) => steps.push(step),
    });
    assert.equal(steps[0], 'repair');
    assert.ok(!steps.includes('root'), 'the installed root is kept and used');
    assert.deepEqual(repaired.record.files, published.record.files);
    await openImage(repaired.folder, { verify: 'full', signal });
  });

  it('is refused with a remedy when its files changed and its manifest is untrusted', async () => {
    const image = await ensureImage({ cacheFolder: folder, manifestFile, signal });
    await writeFile(
      image.manifestPath,
      (await readFile(image.manifestPath, 'utf8')).replace('"suite": "trixie"', '"suite": "sid"'),
    );
    await assert.rejects(
      ensureImage({ cacheFolder: folder, manifestFile: await copyOfPublished(), signal }),
      /manifest\.json has \d+ bytes instead of \d+\. It cannot be repaired: its manifest was changed\. Remove .* to build a new one/,
    );
  });

  it('is refused when the manifest belongs to another recipe, before anything is fetched', async () => {
    const other = join(folder, 'other.json');
    const manifest = JSON.parse(await readFile(published.manifestPath, 'utf8')) as {
      recipeHash: string;
      node: { version: string };
    };
    manifest.recipeHash = 'ab'.repeat(32);
    manifest.node.version = '1.2.3';
    await writeFile(other, JSON.stringify(manifest));
    await assert.rejects(
      ensureImage({ cacheFolder: folder, manifestFile: other, signal }),
      /belongs to another recipe \(abababababab, .*: node 1\.2\.3, here /,
    );
  });

  async function copyOfPublished(): Promise<string> {
    const copy = join(folder, 'manifest-copy.json');
    await writeFile(copy, await readFile(published.manifestPath));
    return copy;
  }
});
