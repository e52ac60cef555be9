// Secrets that the guest's kernel draws once and keeps: keys of TCP sequence numbers, hash tables
// and printed pointers. The template's boot and rehearsal draw them, so without renewal all VMs of
// a template would share them. The template records where they are; each restored VM gets new ones
// before its vCPUs run.
import { randomBytes } from 'node:crypto';
import { writeSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { assertRuns, type ProcessIdentity } from '@berth/os/process-identity.ts';
import { z } from 'zod';
import { DriverError } from '../../driver.ts';
import { TEMPLATE_SIZE } from '../../machine-size.ts';
import type { QmpSession } from '../machine/qmp.ts';
import { findRamBlocks } from '../machine/ram-blocks.ts';

/**
 * Largest sizes in bytes by symbol, of Linux 6.12. No socket still needed is in a hash table keyed
 * by one of them: connections of the rehearsal are closed; listening sockets have other keys.
 */
const SECRETS: ReadonlyMap<string, number> = new Map([
  ['net_secret', 16],
  ['ts_secret', 16],
  ['syncookie_secret', 32],
  ['syncookie6_secret', 32],
  ['inet_ehash_secret', 4],
  ['inet6_ehash_secret', 4],
  ['ipv6_hash_secret', 4],
  ['udp_ehash_secret', 4],
  ['udp6_ehash_secret', 4],
  ['udp_ipv6_hash_secret', 4],
  ['ip_idents_key', 16],
  ['hashrnd', 16],
  ['ptr_key', 16],
]);
const SMALLEST_BYTES = 4;
/** Without these no template is made; kernels differ in the others. */
const REQUIRED = ['net_secret', 'ptr_key'];

export const kernelSecret = z.strictObject({
  symbol: z.string(),
  /** Offset in the template's memory. */
  offset: z.int().min(0),
  sizeBytes: z.int().min(1).max(64),
});
/** The place of a secret. */
export type KernelSecret = z.infer<typeof kernelSecret>;

/** Prints the symbols, each with its successor, and the kernel's place in memory. */
export const SECRETS_COMMAND =
  `sudo grep -A1 -E ' (_text|${[...SECRETS.keys()].join('|')})([.][0-9]+)?$' /proc/kallsyms; ` +
  `sudo grep 'Kernel code' /proc/iomem`;

/** Reads the output of {@link SECRETS_COMMAND}. Throws {@link DriverError} if one is missing. */
export function kernelSecretsIn(output: string): KernelSecret[] {
  const symbols = [...output.matchAll(/^([0-9a-f]{16}) \S (\S+)/gm)].map(([, address = '', name = '']) => ({
    address: BigInt(`0x${address}`),
    name,
  }));
  const text = symbols.find(({ name }) => name === '_text')?.address;
  const code = /^\s*([0-9a-f]+)-[0-9a-f]+ : Kernel code$/m.exec(output)?.[1];
  if (text === undefined || text === 0n || code === undefined)
    throw new DriverError('the guest does not say where its kernel is');

  const found = symbols.flatMap(({ address, name }, at): KernelSecret[] => {
    const symbol = name.replace(/\.\d+$/, '');
    const most = SECRETS.get(symbol);
    if (most === undefined) return [];

    // Another, shorter secret may have the same name.
    const sizeBytes = Math.min(most, Number((symbols[at + 1]?.address ?? address) - address));
    const offset = Number(address - text) + Number.parseInt(code, 16);
    if (sizeBytes < SMALLEST_BYTES || !isInTemplate(offset, sizeBytes))
      throw new DriverError(`the kernel's ${name} is not a secret in the template's memory`);

    return [{ symbol, offset, sizeBytes }];
  });
  const whole = found.filter(({ symbol, sizeBytes }) => sizeBytes === SECRETS.get(symbol));
  const missing = REQUIRED.find((name) => !whole.some(({ symbol }) => symbol === name));
  if (missing !== undefined) throw new DriverError(`the guest's kernel has no ${missing}`);

  return found;
}

/** Writes new secrets into a VM whose vCPUs have not run since the template. */
export async function renewKernelSecrets(
  { process, qmp, signal }: { process: ProcessIdentity; qmp: QmpSession; signal: AbortSignal },
  secrets: readonly KernelSecret[],
): Promise<void> {
  const [block] = await findRamBlocks(qmp, process, [], signal);
  if (block === undefined) throw new DriverError('QEMU has no memory');

  await using memory = await open(`/proc/${process.pid}/mem`, 'r+');
  // The file stays open, so it belongs to the recorded process even if its pid is reused.
  await assertRuns(process);
  for (const { offset, sizeBytes } of secrets) {
    if (writeSync(memory.fd, randomBytes(sizeBytes), 0, sizeBytes, block.address + offset) !== sizeBytes)
      throw new DriverError('the QEMU process exited while its secrets were written');
  }
}

function isInTemplate(offset: number, sizeBytes: number): boolean {
  return Number.isSafeInteger(offset) && offset > 0 && offset + sizeBytes <= TEMPLATE_SIZE.memoryMib * 2 ** 20;
}
