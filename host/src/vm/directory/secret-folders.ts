// Secret files of each VM's folder: the secret of the guest daemon, the guest's names with its ssh
// host key, and the console of a dead VM. Sealed with the VM's data key, which this host holds in
// memory while the VM runs. In plain text only if the control plane, of an earlier release, sends
// no key.
import { randomBytes } from 'node:crypto';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { consoleText, type ConsoleText } from '@berth/protocol/calls/vms.ts';
import { vmId } from '@berth/protocol/host.ts';
import { z } from 'zod';
import { flushFolder, readIfPresent, writeDurably } from '@berth/os/durable-file.ts';
import { nullIf } from '@berth/os/errors.ts';
import type { Names } from '../../guest/identity.ts';
import type { DataKeys } from './data-keys.ts';
import { RecordFolders } from './record-folders.ts';
import { isSealed, open, seal } from './sealed-text.ts';

const names = z.strictObject({
  machineId: z.string(),
  sshHostKey: z.strictObject({ privateKey: z.string(), publicKey: z.string() }),
});

type Kind = 'secret' | 'names' | 'disk' | 'console';

/** The file with a VM's names: the public key can be read without the data key. */
const namesFile = z.strictObject({ publicKey: z.string(), sealed: z.string() });

/** A sealed file and no data key that opens it. */
export class DataKeyError extends Error {
  override readonly name = 'DataKeyError';
}

export class SecretFolders extends RecordFolders {
  readonly #keys: DataKeys;

  /** @param root absolute path of `host/vms` */
  constructor(root: string, keys: DataKeys) {
    super(root, vmId);
    this.#keys = keys;
  }

  override async open(): Promise<void> {
    await super.open();
    await this.#keys.keepOnly(await this.list());
  }

  /**
   * Holds the VM's data key in memory, and seals files of an earlier release. Rejects with
   * {@link DataKeyError}, and changes nothing, if the sealed files of the VM need another key.
   * @param dataKey null from a control plane of an earlier release
   */
  async holdDataKey(id: string, dataKey: string | null): Promise<void> {
    const key = dataKey ?? (await this.#keys.get(id));
    const plain: [path: string, kind: Kind, text: string][] = [];
    const files = this.#secretFiles(id).map(async ([path, kind]) => ({ path, kind, text: await readIfPresent(path) }));
    for (const { path, kind, text } of await Promise.all(files)) {
      if (text !== null && !isSealed(sealedPart(kind, text))) plain.push([path, kind, text]);
      else if (text !== null) this.#unseal(id, key, kind, sealedPart(kind, text));
    }
    if (key === null) return;

    await this.#keys.set(id, key);
    for (const [path, kind, text] of plain) await this.#writeSealed(id, path, kind, text);
  }

  /** Forgets the data key of a VM that does not run. */
  async forgetDataKey(id: string): Promise<void> {
    await this.#keys.remove(id);
  }

  async writeSecret(id: string, secret: string): Promise<void> {
    await this.#writeSealed(id, this.#secretPath(id), 'secret', secret);
  }

  /** Null if missing, or if this host does not hold the VM's data key. */
  async readSecret(id: string): Promise<string | null> {
    return this.#readSealed(id, this.#secretPath(id), 'secret');
  }

  /** Writes the VM's names and keys, private because of the host key. */
  async writeNames(id: string, { machineId, sshHostKey }: Names): Promise<void> {
    await this.#writeSealed(id, this.#namesPath(id), 'names', JSON.stringify({ machineId, sshHostKey }));
  }

  /** Null if missing or malformed, or if this host does not hold the VM's data key. */
  async readNames(id: string): Promise<Names | null> {
    return parseIf(names, await this.#readSealed(id, this.#namesPath(id), 'names'));
  }

  /** The public ssh host key, also of a sleeping VM; null if missing or malformed. */
  async readSshPublicKey(id: string): Promise<string | null> {
    const text = await readIfPresent(this.#namesPath(id));
    return parseIf(namesFile, text)?.publicKey || parseIf(names, text)?.sshHostKey.publicKey || null;
  }

  /** @param diskKey for disk and snapshots, for life; null: they are in plain text */
  async writeDiskKey(id: string, diskKey: string | null): Promise<void> {
    if (diskKey !== null) await this.#writeSealed(id, this.#diskKeyPath(id), 'disk', diskKey);
    else await rm(this.#diskKeyPath(id), { force: true });
  }

  /** Null for a VM in plain text. Rejects with {@link DataKeyError} without the VM's data key. */
  async readDiskKey(id: string): Promise<string | null> {
    const text = await readIfPresent(this.#diskKeyPath(id));
    return text === null ? null : this.#unseal(id, await this.#keys.get(id), 'disk', text);
  }

  /**
   * Writes the secret that a wake is about to set, beside the current one: after a crash the guest
   * may know either.
   */
  async writeNextSecret(id: string, secret: string): Promise<void> {
    await this.#writeSealed(id, this.#nextSecretPath(id), 'secret', secret);
  }

  async readNextSecret(id: string): Promise<string | null> {
    return this.#readSealed(id, this.#nextSecretPath(id), 'secret');
  }

  /** Makes the next secret the current one, after the guest accepted it. No-op if there is none. */
  async promoteNextSecret(id: string): Promise<void> {
    await rename(this.#nextSecretPath(id), this.#secretPath(id)).catch(nullIf('ENOENT'));
    await flushFolder(join(this.root, id));
  }

  /** Keeps the console of a dead VM. */
  async writeConsole(id: string, console: ConsoleText): Promise<void> {
    await this.#writeSealed(id, this.#consolePath(id), 'console', JSON.stringify(console));
  }

  /**
   * Null if there is none. The data key of a dead VM is not in memory. Rejects with {@link
   * DataKeyError} without the key of the VM.
   */
  async readConsole(id: string, dataKey: string | null): Promise<ConsoleText | null> {
    const text = await readIfPresent(this.#consolePath(id));
    if (text === null) return null;

    const key = dataKey ?? (await this.#keys.get(id));
    return parseIf(consoleText, isSealed(text) ? this.#unseal(id, key, 'console', text) : text);
  }

  async removeConsole(id: string): Promise<void> {
    await rm(this.#consolePath(id), { force: true });
  }

  async removeSecrets(id: string): Promise<void> {
    for (const [path] of this.#secretFiles(id)) await rm(path, { force: true });

    await this.removeConsole(id);
  }

  #secretFiles(id: string): [path: string, kind: Kind][] {
    return [
      [this.#diskKeyPath(id), 'disk'],
      [this.#namesPath(id), 'names'],
      [this.#nextSecretPath(id), 'secret'],
      [this.#secretPath(id), 'secret'],
    ];
  }

  /** In plain text without a data key: the control plane is of an earlier release. */
  async #writeSealed(id: string, path: string, kind: Kind, text: string): Promise<void> {
    const key = await this.#keys.get(id);
    const sealed = key === null ? null : seal(key, `${id} ${kind}`, text);
    if (sealed === null || kind !== 'names') return writeDurably(path, sealed ?? text);

    const publicKey = parseIf(names, text)?.sshHostKey.publicKey ?? '';
    await writeDurably(path, JSON.stringify({ publicKey, sealed } satisfies z.infer<typeof namesFile>));
  }

  async #readSealed(id: string, path: string, kind: Kind): Promise<string | null> {
    const text = await readIfPresent(path);
    if (text === null) return null;

    const part = sealedPart(kind, text);
    if (!isSealed(part)) return text;

    const key = await this.#keys.get(id);
    return key === null ? null : this.#unseal(id, key, kind, part);
  }

  #unseal(id: string, key: string | null, kind: Kind, sealed: string): string {
    if (key === null) throw new DataKeyError('the request has no data key, which the secrets of the VM need');

    try {
      return open(key, `${id} ${kind}`, sealed);
    } catch (error) {
      throw new DataKeyError('the data key does not open the secrets of the VM', { cause: error });
    }
  }

  #consolePath(id: string): string {
    return join(this.root, id, 'console');
  }

  #diskKeyPath(id: string): string {
    return join(this.root, id, 'disk-key');
  }

  #secretPath(id: string): string {
    return join(this.root, id, 'guest-secret');
  }

  #namesPath(id: string): string {
    return join(this.root, id, 'guest-names');
  }

  #nextSecretPath(id: string): string {
    return join(this.root, id, 'guest-secret-next');
  }
}

/** The part of a file that is sealed; the text itself in a file of an earlier release. */
function sealedPart(kind: Kind, text: string): string {
  return kind === 'names' ? (parseIf(namesFile, text)?.sealed ?? text) : text;
}

/** Null for a missing or malformed text. */
function parseIf<T>(schema: z.ZodType<T>, text: string | null): T | null {
  try {
    return schema.parse(JSON.parse(text ?? ''));
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof z.ZodError) return null;

    throw error;
  }
}

/** Null unless disks are to be encrypted. */
export function newDiskKey({ encryptDisks }: { encryptDisks?: boolean }): string | null {
  return encryptDisks === true ? randomBytes(32).toString('base64url') : null;
}
