// Processor models of guests under KVM. A named model, enforced: a guest sees the same processor on
// every host that has it, and QEMU refuses to start where a feature is missing, instead of hiding
// it from a guest that already uses it.
import { execFile } from 'node:child_process';
import { z } from 'zod';
import { parseJson } from '@berth/protocol/json-text.ts';
import { DriverError } from '../../driver.ts';
import { QEMU_PROGRAM } from './qemu-version.ts';

/** QEMU starts in well under a second; an emulated host takes many. */
const DEADLINE_MS = 60_000;
const OUTPUT_BYTES = 16 * 2 ** 20;

/** Everything that QEMU emulates, without five-level page tables, which slow down each TLB miss. */
export const TCG_MODEL = 'max,la57=off';

/**
 * Models by vendor: first the one for most hosts, then older ones that a host may have instead, for
 * example within another VM. The last needs little more than the 64-bit mode.
 */
const PREFERRED: Readonly<Record<string, readonly string[]>> = {
  AuthenticAMD: ['EPYC-v2', 'EPYC-v1', 'Opteron_G3-v1', 'qemu64-v1'],
  GenuineIntel: ['Haswell-v4', 'Haswell-v2', 'SandyBridge-v1', 'Nehalem-v1', 'qemu64-v1'],
};

/** Newer ones, which a host reports for snapshots of others. */
const OTHERS: Readonly<Record<string, readonly string[]>> = {
  AuthenticAMD: ['EPYC-Rome-v4', 'EPYC-Milan-v2', 'EPYC-Genoa-v1'],
  GenuineIntel: ['Skylake-Server-v4', 'Cascadelake-Server-v4', 'Icelake-Server-v5', 'SapphireRapids-v2'],
};

/** Read from a file: the model becomes part of QEMU's command line. */
export const virtualization = z.strictObject({
  accelerator: z.enum(['kvm', 'tcg']),
  cpuModel: z.union([z.literal(TCG_MODEL), z.string().regex(/^[A-Za-z0-9_-]{1,40}$/)]),
});

const definitions = z.array(z.object({ name: z.string(), 'unavailable-features': z.array(z.string()).optional() }));

interface CpuModels {
  /** Known models that guests can have under KVM here. */
  supported: readonly string[];
  /** The model of new guests; null: this host supports none. */
  chosen: string | null;
  /** Features that the preferred model lacks. */
  lacks: readonly string[];
}

/** Asks QEMU which models KVM supports on this host. Rejects with {@link DriverError}. */
export async function readCpuModels(vendor: string, signal: AbortSignal): Promise<CpuModels> {
  return modelsIn(await queryDefinitions(signal), vendor);
}

export function modelsIn(found: z.infer<typeof definitions>, vendor: string): CpuModels {
  const missing = new Map(found.map(({ name, 'unavailable-features': lacks }) => [name, lacks ?? []]));
  const preferred = PREFERRED[vendor] ?? ['qemu64-v1'];
  const isSupported = (name: string): boolean => missing.get(name)?.length === 0;
  return {
    supported: [...preferred, ...(OTHERS[vendor] ?? [])].filter(isSupported),
    chosen: preferred.find(isSupported) ?? null,
    lacks: missing.get(preferred[0] ?? '') ?? [],
  };
}

function queryDefinitions(signal: AbortSignal): Promise<z.infer<typeof definitions>> {
  const args = ['-accel', 'kvm', '-M', 'q35', '-nodefaults', '-no-user-config', '-display', 'none', '-S'];
  return new Promise((resolve, reject) => {
    const options = { signal, timeout: DEADLINE_MS, maxBuffer: OUTPUT_BYTES, killSignal: 'SIGKILL' } as const;
    const qemu = execFile(QEMU_PROGRAM, [...args, '-qmp', 'stdio'], options, (error, stdout, stderr) => {
      for (const line of stdout.split('\n')) {
        const answer = z.object({ return: definitions.min(1) }).safeParse(parseJson(line));
        if (answer.success) return resolve(answer.data.return);
      }
      if (signal.aborted) return reject(signal.reason as Error);
      const last = stderr.trim().split('\n').at(-1) ?? '';
      reject(new DriverError(`QEMU does not start under KVM: ${last.slice(0, 300)}`, { cause: error }));
    });
    const commands = ['qmp_capabilities', 'query-cpu-definitions', 'quit'];
    qemu.stdin?.on('error', () => undefined);
    qemu.stdin?.end(commands.map((execute) => `${JSON.stringify({ execute })}\n`).join(''));
  });
}
