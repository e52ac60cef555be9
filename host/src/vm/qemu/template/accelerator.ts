// Selects the accelerator of this host's VMs. The presence of /dev/kvm proves little: on some hosts
// a kernel hangs under KVM. A real boot decides, once per QEMU, kernel and processor; the result is
// kept beside the templates.
import { createHash } from 'node:crypto';
import { access, constants } from 'node:fs/promises';
import { join } from 'node:path';
import { parseJson } from '@berth/protocol/json-text.ts';
import { z } from 'zod';
import { readIfPresent, writeDurably } from '@berth/os/durable-file.ts';
import { readHostPlatform, type HostPlatform } from '../machine/host-platform.ts';
import { TCG_MODEL } from '../machine/cpu-models.ts';
import type { Virtualization } from '../machine/machine.ts';
import { readQemuVersion, type QemuVersion } from '../machine/qemu-version.ts';
import { closeTemplatesFolder, templatesFolder } from './template.ts';

const KVM_DEVICE = '/dev/kvm';

const probeRecord = z.strictObject({
  accelerator: z.enum(['kvm', 'tcg']),
  /** Processor model of new VMs. */
  cpuModel: z.string(),
  /** Models that a VM can have under KVM on this host; empty under TCG. */
  cpuModels: z.array(z.string()),
  /** A sentence for the operator. */
  reason: z.string(),
  qemuVersion: z.string(),
  hostKernel: z.string(),
  hostCpu: z.string(),
  probedAt: z.iso.datetime(),
});
/** Result of a probe, with the versions it applies to. */
export type Probe = z.infer<typeof probeRecord>;

/**
 * The probe's result for this host's QEMU, kernel and processor; null if not probed yet. Without
 * /dev/kvm no probe is needed. Rejects with `DriverError` if QEMU is missing or too old.
 */
export async function readProbe(cacheFolder: string): Promise<Probe | null> {
  const [version, host] = await Promise.all([readQemuVersion(), readHostPlatform()]);
  return readProbeFor(cacheFolder, version, host);
}

/** As {@link readProbe}, for a known QEMU and host. */
export async function readProbeFor(
  cacheFolder: string,
  version: QemuVersion,
  host: HostPlatform,
): Promise<Probe | null> {
  const missing = await kvmMissing();
  if (missing !== null) return describe(EMULATED, missing, version, host);

  const text = await readIfPresent(probeFile(cacheFolder, version, host));
  const parsed = text === null ? null : probeRecord.safeParse(parseJson(text));
  return parsed?.success === true ? parsed.data : null;
}

/** Processor model of a boot under KVM and the supported ones, or why it did not succeed. */
export type ProbeResult = { cpuModel: string; cpuModels: readonly string[] } | { failure: string };

/** Records the result of a boot under KVM. */
export async function writeProbe(
  cacheFolder: string,
  version: QemuVersion,
  host: HostPlatform,
  result: ProbeResult,
): Promise<Probe> {
  const probe =
    'failure' in result
      ? describe(EMULATED, `${KVM_DEVICE} exists, but ${result.failure}`, version, host)
      : describe(
          { accelerator: 'kvm', cpuModel: result.cpuModel, cpuModels: [...result.cpuModels] },
          `the guest boots under KVM with the processor ${result.cpuModel}${host.isVm ? ', within another VM' : ''}`,
          version,
          host,
        );
  await closeTemplatesFolder(cacheFolder);
  await writeDurably(probeFile(cacheFolder, version, host), `${JSON.stringify(probe, null, 2)}\n`, 0o644);
  return probe;
}

async function kvmMissing(): Promise<string | null> {
  try {
    await access(KVM_DEVICE, constants.R_OK | constants.W_OK);
    return null;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    return code === 'ENOENT' ? `there is no ${KVM_DEVICE}` : `${KVM_DEVICE} cannot be opened (${code})`;
  }
}

type Found = Virtualization & Pick<Probe, 'cpuModels'>;

const EMULATED: Found = { accelerator: 'tcg', cpuModel: TCG_MODEL, cpuModels: [] };

function describe(found: Found, reason: string, version: QemuVersion, host: HostPlatform): Probe {
  return {
    ...found,
    reason,
    qemuVersion: version.text,
    hostKernel: host.kernel,
    hostCpu: `${host.cpuVendor} ${host.cpuModel}`,
    probedAt: new Date().toISOString(),
  };
}

function probeFile(cacheFolder: string, version: QemuVersion, host: HostPlatform): string {
  const key = JSON.stringify([version.text, host.kernel, host.cpuVendor, host.cpuModel]);
  return join(
    templatesFolder(cacheFolder),
    `accelerator-${createHash('sha256').update(key).digest('hex').slice(0, 24)}.json`,
  );
}
