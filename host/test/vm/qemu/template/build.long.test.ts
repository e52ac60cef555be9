// The set-up's template builder with a real image, on a private host, in its own cache folder.
// Needs root and the image.
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, type Stats } from 'node:fs';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { readConfig } from '../../../../src/config.ts';
import { newestImageFolder } from '../../../../src/make-driver.ts';
import { readHostPlatform } from '../../../../src/vm/qemu/machine/host-platform.ts';
import { readQemuVersion } from '../../../../src/vm/qemu/machine/qemu-version.ts';
import { writeProbe } from '../../../../src/vm/qemu/template/accelerator.ts';
import { openTemplate, type Template } from '../../../../src/vm/qemu/template/template.ts';
import { hostState } from '../../../network/slots/host-state.ts';
import { enterPrivateHost } from '../../private-host.ts';

enterPrivateHost();

const BUILDER = fileURLToPath(new URL('../../../../src/vm/qemu/template/build/main.ts', import.meta.url));
const DEADLINE_MS = 300_000;

const config = readConfig([], process.env);
const imageFolder = config.imageFolder ?? (await newestImageFolder(config.cacheFolder));
let cache = '';

before(async () => {
  // On a disk, like a real cache: memory files of templates are large.
  cache = await mkdtemp('/var/tmp/berth-template-');
  // The probed accelerator does not matter here; TCG works everywhere.
  await writeProbe(cache, await readQemuVersion(), await readHostPlatform(), { failure: 'this test wants TCG' });
});
after(() => rm(cache, { recursive: true, force: true }));

interface Build {
  child: ChildProcess;
  /** Resolves when the builder has printed the text. */
  said(text: string): Promise<void>;
  /** Resolves with the exit code and all output. */
  ended: Promise<{ code: number | null; output: string }>;
}

function startBuild(): Build {
  const args = [BUILDER, 'build', '--cache-dir', cache, '--image-folder', imageFolder];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  const waiting = new Map<string, () => void>();
  const take = (text: string): void => {
    output += text;
    for (const [wanted, tell] of waiting) if (output.includes(wanted)) tell();
  };
  child.stdout.setEncoding('utf8').on('data', take);
  child.stderr.setEncoding('utf8').on('data', take);
  return {
    child,
    said: (text) =>
      new Promise((resolve, reject) => {
        waiting.set(text, resolve);
        child.once('close', () => reject(new Error(`the builder ended before it said "${text}": ${output}`)));
        take('');
      }),
    ended: once(child, 'close').then(([code]) => ({ code: code as number | null, output })),
  };
}

function leftBehind(): unknown {
  const { namespaces, devices, entries, drafts } = hostState();
  const building = readdirSync(join(cache, 'template')).filter((name) => name.startsWith('.build-'));
  return { namespaces, devices, entries, drafts, building };
}

const NOTHING = { namespaces: [], devices: [], entries: [], drafts: [], building: [] };

test(
  'the next build cleans up after a killed one, and two at once make one template',
  { timeout: DEADLINE_MS },
  async () => {
    const killed = startBuild();
    await killed.said('rehearsing');
    killed.child.kill('SIGKILL');
    await killed.ended;

    const builds = [startBuild(), startBuild()];
    const results = await Promise.all(builds.map((build) => build.ended));
    const said = results.map(
      ({ output }) => /template: ([0-9a-f]{24}) (was built|exists)/.exec(output)?.slice(1, 3) ?? output,
    );
    assert.deepEqual(
      results.map(({ code }) => code),
      [0, 0],
      results.map(({ output }) => output).join('\n'),
    );
    assert.equal(said[0]?.[0], said[1]?.[0]);
    assert.deepEqual(
      said.map(([, how]) => how).sort((a, b) => String(a).localeCompare(String(b))),
      ['exists', 'was built'],
    );
    assert.deepEqual(leftBehind(), NOTHING);

    const template: Template | null = await openTemplate(cache, String(said[0]?.[0]));
    assert.ok(template);
    for (const name of ['memory', 'devices', 'disk.qcow2', 'template.json']) {
      const found: Stats = await stat(join(template.folder, name));
      assert.deepEqual([found.mode & 0o777, found.uid], [0o444, 0], name);
    }
    const folder: Stats = await stat(join(cache, 'template'));
    assert.deepEqual([folder.mode & 0o777, folder.uid], [0o700, 0], 'other users of the host can read guest memory');
  },
);

test('an aborted build removes its files', { timeout: DEADLINE_MS }, async () => {
  const [templateId = ''] = readdirSync(join(cache, 'template')).filter((name) => /^[0-9a-f]{24}$/.test(name));
  await rm(join(cache, 'template', templateId), { recursive: true });
  const stopped = startBuild();
  await stopped.said('booting the template');
  stopped.child.kill('SIGTERM');
  const { code, output } = await stopped.ended;
  assert.equal(code, 1);
  assert.match(output, /stopped by SIGTERM/);
  assert.deepEqual(leftBehind(), NOTHING);
  assert.equal(await openTemplate(cache, templateId), null);
});
