import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { TEMPLATE_FILES } from '../../../../src/vm/qemu/machine/argv.ts';
import {
  closeTemplatesFolder,
  openTemplate,
  templateFacts,
  templateIdOf,
  writeTemplateRecord,
  type TemplateFacts,
} from '../../../../src/vm/qemu/template/template.ts';

const VERSION = { text: '10.0.2 (Debian)', runWithUser: true };
const HOST = { cpuVendor: 'AuthenticAMD', cpuModel: 'AMD EPYC', kernel: '6.1.0' };
const FACTS = templateFacts('a'.repeat(24), VERSION, 'tcg', HOST);
const ID = templateIdOf(FACTS);
const KERNEL_SECRETS = [{ symbol: 'net_secret', offset: 4_096, sizeBytes: 16 }];

/** A cache folder with a template of a few bytes, which this file treats as opaque. */
async function cacheWith(
  context: TestContext,
  facts: TemplateFacts = FACTS,
): Promise<{ cache: string; folder: string }> {
  const cache = await mkdtemp(join(tmpdir(), 'berth-template-'));
  context.after(() => rm(cache, { recursive: true }));
  const folder = join(cache, 'template', templateIdOf(facts));
  await mkdir(folder, { recursive: true });
  for (const name of Object.values(TEMPLATE_FILES)) await writeFile(join(folder, name), `content of ${name}`);

  await writeTemplateRecord(folder, facts, { tscKhz: 2_596_105, kernelSecrets: KERNEL_SECRETS });
  return { cache, folder };
}

test('an unchanged template opens, with its device state', async (context) => {
  const { cache, folder } = await cacheWith(context);
  assert.deepEqual(await openTemplate(cache, ID), {
    templateId: ID,
    folder,
    facts: FACTS,
    tscKhz: 2_596_105,
    kernelSecrets: KERNEL_SECRETS,
    deviceState: Buffer.from('content of devices'),
  });
});

test('other users of the host cannot reach the templates, old ones included', async (context) => {
  const { cache, folder } = await cacheWith(context);
  await chmod(join(cache, 'template'), 0o755);
  await closeTemplatesFolder(cache);
  assert.equal((await stat(join(cache, 'template'))).mode & 0o777, 0o700);
  assert.notEqual(await openTemplate(cache, ID), null, folder);
  const absent = join(cache, 'absent');
  await closeTemplatesFolder(absent);
  assert.equal((await stat(join(absent, 'template'))).mode & 0o777, 0o700);
});

test('a missing template is null, not an error', async (context) => {
  const { cache } = await cacheWith(context);
  assert.equal(await openTemplate(cache, 'f'.repeat(24)), null);
});

for (const name of Object.values(TEMPLATE_FILES)) {
  test(`a template with a changed file ${name} is refused, even with its old time`, async (context) => {
    const { cache, folder } = await cacheWith(context);
    await openTemplate(cache, ID);
    const path = join(folder, name);
    const before = await readFile(path);
    await writeFile(
      path,
      before.map((byte) => byte ^ 1),
    );
    await utimes(path, 1_000_000_000, 1_000_000_000);
    await assert.rejects(openTemplate(cache, ID), /differs from the built file: its SHA-256 differs/);
  });

  test(`a template without its file ${name} is refused`, async (context) => {
    const { cache, folder } = await cacheWith(context);
    await rm(join(folder, name));
    await assert.rejects(openTemplate(cache, ID), /lacks/);
  });
}

test('verified files are read again only after a change', async (context) => {
  const { cache, folder } = await cacheWith(context);
  const note = join(folder, 'verified.json');
  const first = await readFile(note, 'utf8');
  await openTemplate(cache, ID);
  assert.equal(await readFile(note, 'utf8'), first);
  await chmod(join(folder, TEMPLATE_FILES.memory), 0o400);
  await openTemplate(cache, ID);
  assert.notEqual(await readFile(note, 'utf8'), first);
});

test('concurrent first opens do not conflict over the verification note', async (context) => {
  const { cache, folder } = await cacheWith(context);
  await rm(join(folder, 'verified.json'));
  // Left by another writer, running or killed.
  await mkdir(join(folder, '.verified.json.tmp'));
  const opened = await Promise.all(Array.from({ length: 8 }, () => openTemplate(cache, ID)));
  assert.deepEqual(new Set(opened.map((template) => template?.templateId)), new Set([ID]));
  assert.notEqual(await readFile(join(folder, 'verified.json'), 'utf8'), '');
});

test('a truncated record is refused', async (context) => {
  const { cache, folder } = await cacheWith(context);
  await chmod(join(folder, 'template.json'), 0o600);
  await writeFile(join(folder, 'template.json'), '{"format": 1');
  await assert.rejects(openTemplate(cache, ID), /is not a record of a template/);
});

test('a template under another name is refused', async (context) => {
  const { cache, folder } = await cacheWith(context);
  const other = join(cache, 'template', 'e'.repeat(24));
  await mkdir(other);
  await writeFile(join(other, 'template.json'), await readFile(join(folder, 'template.json')));
  await assert.rejects(openTemplate(cache, 'e'.repeat(24)), /holds another template/);
});

test('image, QEMU, accelerator and CPU each change the template; the host kernel only under KVM', () => {
  const id = (...parts: Parameters<typeof templateFacts>): string => templateIdOf(templateFacts(...parts));
  const newer = { ...VERSION, text: '10.0.3' };
  const elsewhere = { ...HOST, cpuModel: 'AMD EPYC 9' };
  const updated = { ...HOST, kernel: '6.12.0' };
  assert.equal(id('a'.repeat(24), VERSION, 'tcg', updated), ID);
  const others = [
    id('b'.repeat(24), VERSION, 'tcg', HOST),
    id('a'.repeat(24), newer, 'tcg', HOST),
    id('a'.repeat(24), VERSION, 'kvm', HOST),
    id('a'.repeat(24), VERSION, 'tcg', elsewhere),
    id('a'.repeat(24), VERSION, 'kvm', updated),
  ];
  assert.equal(new Set([ID, ...others]).size, 6);
});
