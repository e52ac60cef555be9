// The host's slot registry: one file per slot, named by its number and created exclusively. The
// file exists before anything of the slot is made and until all of it is gone. Like the slots, it
// does not survive a reboot.
import { randomBytes } from 'node:crypto';
import { link, mkdir, readdir, rename, rm, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { hasCode } from '@berth/os/errors.ts';
import { readIfPresent } from '@berth/os/durable-file.ts';

const slotEntry = z.object({
  instanceId: z.string(),
  /** Data folder of the instance. Once it is gone, the slot is abandoned. */
  dataFolder: z.string(),
  /** VM that claimed the slot; null while idle or being made. */
  vmId: z.string().nullable(),
});
export type SlotEntry = z.infer<typeof slotEntry>;

/** Default registry folder, shared by all instances on a host. */
export const DEFAULT_REGISTRY_FOLDER = '/run/berth/slots';

/** File locked by every change of the host's network. */
export function lockFile(folder: string): string {
  return join(folder, '.lock');
}

export async function makeRegistry(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
}

/** Enters the slot for the instance; false if it is already taken. */
export async function enterSlot(folder: string, number: number, entry: SlotEntry): Promise<boolean> {
  const draft = await writeDraft(folder, entry);
  try {
    await link(draft, join(folder, String(number)));
    return true;
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false;
    throw error;
  } finally {
    await unlink(draft);
  }
}

/** Atomically replaces the entry of the instance's slot. */
export async function replaceEntry(folder: string, number: number, entry: SlotEntry): Promise<void> {
  await rename(await writeDraft(folder, entry), join(folder, String(number)));
}

/** The slot's entry; null if it is free. Throws if the file is malformed. */
export async function readEntry(folder: string, number: number): Promise<SlotEntry | null> {
  const text = await readIfPresent(join(folder, String(number)));
  return text === null ? null : slotEntry.parse(JSON.parse(text));
}

export async function removeEntry(folder: string, number: number): Promise<void> {
  await rm(join(folder, String(number)), { force: true });
}

export async function enteredNumbers(folder: string): Promise<number[]> {
  const names = await readdir(folder);
  return names.filter((name) => /^\d+$/.test(name)).map(Number);
}

export async function readRegistry(folder: string, instanceId?: string): Promise<Map<number, SlotEntry>> {
  const entries = new Map<number, SlotEntry>();
  for (const number of await enteredNumbers(folder)) {
    const entry = await readEntry(folder, number);
    if (entry && (instanceId === undefined || entry.instanceId === instanceId)) entries.set(number, entry);
  }
  return entries;
}

/** Removes drafts left by a killed daemon of the instance. */
export async function removeDrafts(folder: string, instanceId: string): Promise<void> {
  const own = `.draft-${instanceId}-`;
  for (const name of await readdir(folder)) {
    if (name.startsWith(own) && !name.startsWith(`${own}${process.pid}-`))
      await rm(join(folder, name), { force: true });
  }
}

async function writeDraft(folder: string, entry: SlotEntry): Promise<string> {
  const draft = join(folder, `.draft-${entry.instanceId}-${process.pid}-${randomBytes(6).toString('hex')}`);
  await writeFile(draft, `${JSON.stringify(entry)}\n`, { flag: 'wx', mode: 0o600 });
  return draft;
}
