// A template on disk: the facts it was built from, its files, and their verification. Builds
// nothing. A template's folder appears by one rename and is never written again, except for the
// cache file `verified.json`.
import { createHash, randomUUID } from 'node:crypto';
import { chmod, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { DriverError } from '../../driver.ts';
import { sha256OfFile } from '@berth/os/digest.ts';
import { readIfPresent, writeDurably } from '@berth/os/durable-file.ts';
import { nullIf } from '@berth/os/errors.ts';
import { bootId } from '@berth/os/process-identity.ts';
import { parseJson } from '@berth/protocol/json-text.ts';
import { TEMPLATE_FILES } from '../machine/argv.ts';
import { TCG_MODEL } from '../machine/cpu-models.ts';
import type { HostPlatform } from '../machine/host-platform.ts';
import { machineHash, type Virtualization } from '../machine/machine.ts';
import type { QemuVersion } from '../machine/qemu-version.ts';
import { kernelSecret, type KernelSecret } from './kernel-secrets.ts';

const RECORD_FILE = 'template.json';
const NOTE_FILE = 'verified.json';

/** Increased when the builder changes a template without changing any other fact. */
const BUILD_REVISION = 4;

const templateFactsRecord = z.object({
  imageId: z.string(),
  qemuVersion: z.string(),
  accelerator: z.enum(['kvm', 'tcg']),
  machineHash: z.string(),
  buildRevision: z.int(),
  /** Kernel and CPU of the host, which a guest sees under KVM; null for an emulated VM. */
  hostKernel: z.string().nullable(),
  hostCpu: z.string().nullable(),
  /** Absent in templates of earlier releases. */
  cpuModel: z.string().optional(),
});
/** Facts that decide whether a template is restorable here and current. */
export type TemplateFacts = z.infer<typeof templateFactsRecord>;

const sha256 = z.string().regex(/^[0-9a-f]{64}$/);
const templateRecord = z.strictObject({
  /** 1: of earlier releases, whose id is a digest of the facts. Only wakes use them. */
  format: z.union([z.literal(1), z.literal(2)]),
  templateId: z.string(),
  facts: templateFactsRecord,
  builtAt: z.iso.datetime(),
  /** Calibration result that later boots reuse. */
  tscKhz: z.int().positive().nullable().default(null),
  /** Empty in templates of earlier releases, which only wakes use. */
  kernelSecrets: z.array(kernelSecret).default([]),
  files: z.record(z.enum(['memory', 'devices', 'disk']), z.strictObject({ sizeBytes: z.int().positive(), sha256 })),
});
/** Content of `template.json`. */
type TemplateRecord = z.infer<typeof templateRecord>;
type FileName = keyof typeof TEMPLATE_FILES;
const FILE_NAMES = Object.keys(TEMPLATE_FILES) as FileName[];

export interface Template {
  /** Digest of its content; of a template of format 1, of its facts. */
  templateId: string;
  folder: string;
  facts: TemplateFacts;
  /** Rate of the kernel's time stamp counter; null if unknown. */
  tscKhz: number | null;
  /** Renewed in each restored VM. */
  kernelSecrets: readonly KernelSecret[];
  /** Device state as written by `xen-save-devices-state`, streamed into every restore. */
  deviceState: Buffer;
}

/** Facts of the template that this host requires for the image. */
export function templateFacts(
  imageId: string,
  version: QemuVersion,
  virtualization: Virtualization,
  host: HostPlatform,
): TemplateFacts {
  const { accelerator, cpuModel } = virtualization;
  return {
    imageId,
    qemuVersion: version.text,
    accelerator,
    cpuModel,
    machineHash: machineHash(virtualization),
    buildRevision: BUILD_REVISION,
    hostKernel: accelerator === 'kvm' ? host.kernel : null,
    hostCpu: accelerator === 'kvm' ? `${host.cpuVendor} ${host.cpuModel}` : null,
  };
}

/** How a template was booted, and how VMs restored from it run. */
export function virtualizationOf({ accelerator, cpuModel, hostCpu }: TemplateFacts): Virtualization {
  if (cpuModel !== undefined) return { accelerator, cpuModel };

  return { accelerator, cpuModel: accelerator === 'tcg' ? TCG_MODEL : formerModel(hostCpu) };
}

/** The model of earlier releases, which knew a single one for each vendor. */
const formerModel = (hostCpu: string | null): string =>
  hostCpu?.startsWith('AuthenticAMD') === true ? 'EPYC-v2' : 'Haswell-v4';

/**
 * Id of a template, which names its folder: the first 96 bits, in hex, of the SHA-256 of its record
 * without the time. Templates of one id are equal to the byte, wherever they were built: a snapshot
 * holds only the pages that differ from them.
 */
function templateIdOf({ facts, tscKhz, kernelSecrets, files }: Omit<TemplateRecord, 'templateId'>): string {
  const content = FILE_NAMES.map((name) => [name, files[name].sizeBytes, files[name].sha256]);
  const secrets = kernelSecrets.map(({ symbol, offset, sizeBytes }) => [symbol, offset, sizeBytes]);
  return createHash('sha256')
    .update(JSON.stringify([keyOf(facts), tscKhz, secrets, content]))
    .digest('hex')
    .slice(0, 24);
}

const keyOf = (facts: TemplateFacts): string =>
  JSON.stringify(Object.entries(facts).sort(([a], [b]) => (a < b ? -1 : 1)));

/** Folder of all templates of a cache folder. */
export function templatesFolder(cacheFolder: string): string {
  return join(cacheFolder, 'template');
}

/**
 * Creates the folder of all templates, or closes an existing one to other users of the host: a
 * template's memory holds the first state of every guest. The jail binds a single template.
 */
export async function closeTemplatesFolder(cacheFolder: string): Promise<void> {
  const folder = templatesFolder(cacheFolder);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await chmod(folder, 0o700);
}

/**
 * The newest template with these facts, opened as by {@link openTemplate}. Null if none was built
 * yet.
 */
export async function findTemplate(cacheFolder: string, facts: TemplateFacts): Promise<Template | null> {
  const folder = templatesFolder(cacheFolder);
  let newest: TemplateRecord | null = null;
  for (const name of (await readdir(folder).catch(nullIf('ENOENT'))) ?? []) {
    const text = await readIfPresent(join(folder, name, RECORD_FILE)).catch(nullIf('ENOTDIR'));
    const record = text === null ? null : (templateRecord.safeParse(parseJson(text)).data ?? null);
    if (record === null || record.format === 1 || name !== record.templateId) continue;
    const isNewer = newest === null || record.builtAt > newest.builtAt;
    if (isNewer && keyOf(record.facts) === keyOf(facts)) newest = record;
  }
  return newest === null ? null : openTemplate(cacheFolder, newest.templateId);
}

/**
 * Opens a template and verifies its files by SHA-256. Skips files that were verified since the host
 * booted and are unchanged (same inode, size, mtime and ctime; no program can set the ctime). Null
 * if there is no such template. Rejects with {@link DriverError} if it is incomplete.
 */
export async function openTemplate(cacheFolder: string, templateId: string): Promise<Template | null> {
  const folder = join(templatesFolder(cacheFolder), templateId);
  const text = await readIfPresent(join(folder, RECORD_FILE));
  if (text === null) return null;

  const record = parseRecord(text, folder);
  if (record.templateId !== templateId || (record.format === 2 && templateIdOf(record) !== templateId))
    throw new DriverError(`${folder} holds another template, ${record.templateId}`);

  const before = await fingerprint(folder, text);
  if ((await readIfPresent(join(folder, NOTE_FILE))) !== before) {
    for (const name of FILE_NAMES) {
      const path = join(folder, TEMPLATE_FILES[name]);
      if ((await sha256OfFile(path)) !== record.files[name].sha256)
        throw new DriverError(`${path} differs from the built file: its SHA-256 differs`);
    }
    // Taken before reading: a concurrent write changes the file's times, so it is read again next
    // time.
    await writeNote(folder, before);
  }
  return {
    templateId,
    folder,
    facts: record.facts,
    tscKhz: record.tscKhz,
    kernelSecrets: record.kernelSecrets,
    deviceState: await readFile(join(folder, TEMPLATE_FILES.devices)),
  };
}

/**
 * A cache only, so losing it is harmless. Concurrent processes each write a separate file first.
 */
async function writeNote(folder: string, note: string): Promise<void> {
  const unfinished = join(folder, `.${NOTE_FILE}.${randomUUID()}`);
  try {
    await writeFile(unfinished, note, { mode: 0o644 });
    await rename(unfinished, join(folder, NOTE_FILE));
  } catch {
    await rm(unfinished, { force: true }).catch(() => undefined);
  }
}

/**
 * Describes and records the finished files of a future template, which must already be durable.
 * Returns its id.
 */
export async function writeTemplateRecord(
  folder: string,
  facts: TemplateFacts,
  { tscKhz, kernelSecrets }: Pick<Template, 'tscKhz' | 'kernelSecrets'>,
): Promise<string> {
  const files: Partial<TemplateRecord['files']> = {};
  for (const name of FILE_NAMES) {
    const path = join(folder, TEMPLATE_FILES[name]);
    files[name] = { sizeBytes: (await stat(path)).size, sha256: await sha256OfFile(path) };
  }
  const content = {
    format: 2 as const,
    facts: { ...facts },
    builtAt: new Date().toISOString(),
    tscKhz,
    kernelSecrets: [...kernelSecrets],
    files: files as TemplateRecord['files'],
  };
  const record: TemplateRecord = { templateId: templateIdOf(content), ...content };
  const text = `${JSON.stringify(record, null, 2)}\n`;
  await writeDurably(join(folder, RECORD_FILE), text, 0o444);
  await writeNote(folder, await fingerprint(folder, text));
  return record.templateId;
}

function parseRecord(text: string, folder: string): TemplateRecord {
  try {
    return templateRecord.parse(JSON.parse(text));
  } catch (error) {
    throw new DriverError(`${join(folder, RECORD_FILE)} is not a record of a template`, { cause: error });
  }
}

/** Includes the boot id: damage by a power cut shows in none of a file's times. */
async function fingerprint(folder: string, recordText: string): Promise<string> {
  const files = await Promise.all(
    FILE_NAMES.map(async (name) => {
      const path = join(folder, TEMPLATE_FILES[name]);
      const found = await stat(path, { bigint: true }).catch((error: unknown) => {
        throw new DriverError(`the template lacks ${path}`, { cause: error });
      });
      return [found.dev, found.ino, found.size, found.mtimeNs, found.ctimeNs].join(':');
    }),
  );
  return JSON.stringify({ bootId: bootId(), record: createHash('sha256').update(recordText).digest('hex'), files });
}
