// The manifest of a snapshot: its content, its files and the conditions of its use. Written last,
// atomically: without a manifest there is no snapshot.
import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { SnapshotUnusable } from '../../driver.ts';
import { readIfPresent, writeDurably } from '@berth/os/durable-file.ts';
import { virtualization } from '../machine/cpu-models.ts';
import { readMark } from '../machine/disk.ts';
import { manifestMac } from './encryption.ts';
import { plugged } from '../machine/plugged.ts';

export const SNAPSHOT_FILES = { memory: 'memory', devices: 'devices', manifest: 'manifest.json' } as const;

/** Device state has about 200 KB. */
export const DEVICES_MAX_BYTES = 64 * 2 ** 20;

const sha256 = z.string().regex(/^[0-9a-f]{64}$/);
const count = z
  .int()
  .min(0)
  .max(2 ** 40);

const decimal = z.string().regex(/^\d{1,20}$/);

const manifest = z.strictObject({
  /** 1: of earlier releases, whose disks have no mark. */
  format: z.union([z.literal(1), z.literal(2)]),
  vmId: z.string(),
  capturedAt: z.iso.datetime(),
  templateId: z.string(),
  imageId: z.string(),
  qemuVersion: z.string(),
  /** Present if its files are encrypted (encryption.ts). */
  salt: z
    .string()
    .regex(/^[0-9a-f]{32}$/)
    .optional(),
  /** Absent in format 1: those of the template. */
  virtualization: virtualization.optional(),
  /** Hash of the VM's options: state of different hardware does not load. */
  machineHash: z.string(),
  /** Devices beyond the template's; a VM that loads the snapshot needs the same. */
  devices: plugged,
  memoryFile: z.strictObject({ dataBytes: count, runs: count, sha256 }),
  devicesFile: z.strictObject({ sizeBytes: z.int().min(1).max(DEVICES_MAX_BYTES), sha256 }),
  /**
   * The disk at the time of the capture. A VM that ran since has changed it. The mark in its header
   * survives a copy; inode and time tell of writes to the same file.
   */
  disk: z.strictObject({
    sizeBytes: count,
    modifiedNs: decimal,
    inode: decimal.optional(),
    mark: z
      .string()
      .regex(/^[0-9a-f]{32}$/)
      .optional(),
  }),
});
export type Manifest = z.infer<typeof manifest>;

/** Completes the snapshot. Everything it names must be durable already. */
export async function writeManifest(folder: string, content: Manifest, diskKey: string | null = null): Promise<void> {
  const body = JSON.stringify(manifest.parse(content), null, 2);
  await writeDurably(join(folder, SNAPSHOT_FILES.manifest), `${checkOf(body, diskKey)}\n${body}\n`);
}

/** True if the manifest is complete, without checking the files it names. */
export async function hasManifest(folder: string): Promise<boolean> {
  return (await readIfPresent(join(folder, SNAPSHOT_FILES.manifest))) !== null;
}

/** Rejects with {@link SnapshotUnusable} if the manifest is missing or altered. */
export async function readManifest(folder: string, diskKey: string | null = null): Promise<Manifest> {
  const text = await readIfPresent(join(folder, SNAPSHOT_FILES.manifest));
  if (text === null) throw new SnapshotUnusable('the snapshot has no manifest');

  const end = text.indexOf('\n');
  const body = text.slice(end + 1).trimEnd();
  if (text.slice(0, end) !== checkOf(body, diskKey))
    throw new SnapshotUnusable('the manifest of the snapshot is damaged: its SHA-256 differs');

  const parsed = manifest.safeParse(JSON.parse(body));
  if (!parsed.success) throw new SnapshotUnusable('the manifest of the snapshot has another version');

  return parsed.data;
}

function checkOf(body: string, diskKey: string | null): string {
  return diskKey === null ? digest(body) : manifestMac(diskKey, body);
}

/** Describes a disk as it is. */
export async function diskMark(path: string): Promise<Manifest['disk']> {
  const { size, mtimeNs, ino } = await stat(path, { bigint: true });
  const mark = await readMark(path);
  return {
    ...{ sizeBytes: Number(size), modifiedNs: String(mtimeNs), inode: String(ino) },
    ...(mark === null ? {} : { mark }),
  };
}

/** Whether the disk is the captured one, or a copy of it. */
export function isSameDisk(captured: Manifest['disk'], seen: Manifest['disk']): boolean {
  const isCopy = captured.mark !== undefined && captured.inode !== seen.inode;
  return (
    captured.sizeBytes === seen.sizeBytes &&
    (captured.mark === undefined || captured.mark === seen.mark) &&
    (isCopy || captured.modifiedNs === seen.modifiedNs)
  );
}

export function digest(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}
