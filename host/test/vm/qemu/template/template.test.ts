import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { TEMPLATE_FILES } from '../../../../src/vm/qemu/machine/argv.ts';
import { TCG_MODEL } from '../../../../src/vm/qemu/machine/cpu-models.ts';
import {
  closeTemplatesFolder,
  findTemplate,
  openTemplate,
  templateFacts,
  templatesFolder,
  virtualizationOf,
  writeTemplateRecord,
} from '../../../../src/vm/qemu/template/template.ts';

const VERSION = { text: '10.0.2 (Debian)', runWithUser: true };
const HOST = { cpuVendor: 'AuthenticAMD', cpuModel: 'AMD EPYC', kernel: '6.1.0', isVm: false };
const TCG = { accelerator: 'tcg', cpuModel: TCG_MODEL } as const;
const KVM = { accelerator: 'kvm', cpuModel: 'EPYC-v2' } as const;
const FACTS = templateFacts('a'.repeat(24), VERSION, TCG, HOST);
const KERNEL_SECRETS = [{ symbol: 'net_secret', offset: 4_096, sizeBytes: 16 }];

interface Cache {
  cache: string;
  folder: string;
  id: string;
}

/** A cache folder with a template of a few bytes, which this file treats as opaque. */
async function cacheWith(context: TestContext): Promise<Cache> {
  const cache = await mkdtemp(join(tmpdir(), 'berth-template-'));
  context.after(() => rm(cache, { recursive: true }));
  return addTemplate(cache, 'content');
}

async function addTemplate(cache: string, content: string, facts = FACTS): Promise<Cache> {
  const made = join(cache, 'made');
  await mkdir(made, { recursive: true });
  for (const name of Object.values(TEMPLATE_FILES)) await writeFile(join(made, name), `${content} of ${name}`);

  const id = await writeTemplateRecord(made, facts, { tscKhz: 2_596_105, kernelSecrets: KERNEL_SECRETS });
  const folder = join(templatesFolder(cache), id);
  await mkdir(templatesFolder(cache), { recursive: true });
  await rename(made, folder);
  return { cache, folder, id };
}

test('an unchanged template opens, with its device state', async (context) => {
  const { cache, folder, id } = await cacheWith(context);
  assert.deepEqual(await openTemplate(cache, id), {
    templateId: id,
    folder,
    facts: FACTS,
    tscKhz: 2_596_105,
    kernelSecrets: KERNEL_SECRETS,
    deviceState: Buffer.from('content of devices'),
  });
});

test('other users of the host cannot reach the templates, old ones included', async (context) => {
  const { cache, folder, id } = await cacheWith(context);
  await chmod(join(cache, 'template'), 0o755);
  await closeTemplatesFolder(cache);
  assert.equal((await stat(join(cache, 'template'))).mode & 0o777, 0o700);
  assert.notEqual(await openTemplate(cache, id), null, folder);
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
    const { cache, folder, id } = await cacheWith(context);
    await openTemplate(cache, id);
    const path = join(folder, name);
    const before = await readFile(path);
    await writeFile(
      path,
      before.map((byte) => byte ^ 1),
    );
    await utimes(path, 1_000_000_000, 1_000_000_000);
    await assert.rejects(openTemplate(cache, id), /differs from the built file: its SHA-256 differs/);
  });

  test(`a template without its file ${name} is refused`, async (context) => {
    const { cache, folder, id } = await cacheWith(context);
    await rm(join(folder, name));
    await assert.rejects(openTemplate(cache, id), /lacks/);
  });
}

test('verified files are read again only after a change', async (context) => {
  const { cache, folder, id } = await cacheWith(context);
  const note = join(folder, 'verified.json');
  const first = await readFile(note, 'utf8');
  await openTemplate(cache, id);
  assert.equal(await readFile(note, 'utf8'), first);
  await chmod(join(folder, TEMPLATE_FILES.memory), 0o400);
  await openTemplate(cache, id);
  assert.notEqual(await readFile(note, 'utf8'), first);
});

test('concurrent first opens do not conflict over the verification note', async (context) => {
  const { cache, folder, id } = await cacheWith(context);
  await rm(join(folder, 'verified.json'));
  // Left by another writer, running or killed.
  await mkdir(join(folder, '.verified.json.tmp'));
  const opened = await Promise.all(Array.from({ length: 8 }, () => openTemplate(cache, id)));
  assert.deepEqual(new Set(opened.map((template) => template?.templateId)), new Set([id]));
  assert.notEqual(await readFile(join(folder, 'verified.json'), 'utf8'), '');
});

test('a truncated record is refused', async (context) => {
  const { cache, folder, id } = await cacheWith(context);
  await chmod(join(folder, 'template.json'), 0o600);
  await writeFile(join(folder, 'template.json'), '{"format": 1');
  await assert.rejects(openTemplate(cache, id), /is not a record of a template/);
});

test('a template under another name is refused', async (context) => {
  const { cache, folder } = await cacheWith(context);
  const other = join(cache, 'template', 'e'.repeat(24));
  await mkdir(other);
  await writeFile(join(other, 'template.json'), await readFile(join(folder, 'template.json')));
  await assert.rejects(openTemplate(cache, 'e'.repeat(24)), /holds another template/);
});

test('templates of equal facts and other bytes have other ids, and the newest is found', async (context) => {
  const { cache, id } = await cacheWith(context);
  const other = await addTemplate(cache, 'others');
  assert.notEqual(other.id, id);
  assert.equal((await findTemplate(cache, FACTS))?.templateId, other.id);
  assert.equal((await openTemplate(cache, id))?.templateId, id);
});

test('a template whose record was changed is refused, whatever id it gives', async (context) => {
  const { cache, folder, id } = await cacheWith(context);
  const path = join(folder, 'template.json');
  const text = await readFile(path, 'utf8');
  await chmod(path, 0o600);
  for (const [from, to] of [
    ['"tscKhz": 2596105', '"tscKhz": 1'],
    ['"offset": 4096', '"offset": 0'],
    ['"accelerator": "tcg"', '"accelerator": "kvm"'],
  ] as const) {
    assert.ok(text.includes(from));
    await writeFile(path, text.replace(from, to));
    await assert.rejects(openTemplate(cache, id), /holds another template/);
  }
});

test('templates of earlier releases keep the processor that their host selected', () => {
  const { cpuModel: _, ...former } = FACTS;
  assert.deepEqual(virtualizationOf(former), TCG);
  const kvm = { ...former, accelerator: 'kvm' } as const;
  assert.deepEqual(virtualizationOf({ ...kvm, hostCpu: 'AuthenticAMD AMD EPYC' }), KVM);
  assert.equal(virtualizationOf({ ...kvm, hostCpu: 'GenuineIntel Xeon' }).cpuModel, 'Haswell-v4');
  assert.equal(virtualizationOf({ ...FACTS, ...KVM, cpuModel: 'EPYC-Milan-v2' }).cpuModel, 'EPYC-Milan-v2');
});

test('a template of the format without ids of content serves wakes only', async (context) => {
  const { cache, folder } = await cacheWith(context);
  const record = JSON.parse(await readFile(join(folder, 'template.json'), 'utf8')) as object;
  const id = 'a'.repeat(24);
  const old = join(templatesFolder(cache), id);
  await rename(folder, old);
  await chmod(join(old, 'template.json'), 0o600);
  await writeFile(join(old, 'template.json'), JSON.stringify({ ...record, format: 1, templateId: id }));
  assert.equal((await openTemplate(cache, id))?.templateId, id);
  assert.equal(await findTemplate(cache, FACTS), null);
});

test('image, QEMU and accelerator select the template; kernel and CPU of the host only under KVM', async (context) => {
  const { cache, id } = await cacheWith(context);
  const find = async (...parts: Parameters<typeof templateFacts>): Promise<string | undefined> =>
    (await findTemplate(cache, templateFacts(...parts)))?.templateId;
  const newer = { ...VERSION, text: '10.0.3' };
  const elsewhere = { ...HOST, cpuModel: 'AMD EPYC 9', kernel: '6.12.0' };
  assert.equal(await find('a'.repeat(24), VERSION, TCG, elsewhere), id);
  assert.equal(await find('b'.repeat(24), VERSION, TCG, HOST), undefined);
  assert.equal(await find('a'.repeat(24), newer, TCG, HOST), undefined);
  assert.equal(await find('a'.repeat(24), VERSION, KVM, HOST), undefined);
  const kvm = await addTemplate(cache, 'content', templateFacts('a'.repeat(24), VERSION, KVM, HOST));
  assert.equal(await find('a'.repeat(24), VERSION, KVM, HOST), kvm.id);
  assert.equal(await find('a'.repeat(24), VERSION, KVM, elsewhere), undefined);
  assert.equal(await find('a'.repeat(24), VERSION, { ...KVM, cpuModel: 'EPYC-v1' }, HOST), undefined);
});
