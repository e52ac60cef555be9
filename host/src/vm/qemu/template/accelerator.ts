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
import type { Accelerator } from '../machine/machine.ts';
import { readQemuVersion, type QemuVersion } from '../machine/qemu-version.ts';
import { closeTemplatesFolder, templatesFolder } from './template.ts';

const KVM_DEVICE = '/dev/kvm';

const probeRecord = z.strictObject({
  accelerator: z.enum(['kvm', 'tcg']),
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
  if (missing !== null) return describe('tcg', missing, version, host);

  const text = await readIfPresent(probeFile(cacheFolder, version, host));
  const parsed = text === null ? null : probeRecord.safeParse(parseJson(text));
  return parsed?.success === true ? parsed.data : null;
}

/** Records a boot under KVM: `failure` is null if the guest responded. */
export async function writeProbe(
  cacheFolder: string,
  version: QemuVersion,
  host: HostPlatform,
  failure: string | null,
): Promise<Probe> {
  const probe =
    failure === null
      ? describe('kvm', 'the guest boots under KVM', version, host)
      : describe('tcg', `${KVM_DEVICE} exists, but a boot under KVM failed: ${failure}`, version, host);
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

function describe(accelerator: Accelerator, reason: string, version: QemuVersion, host: HostPlatform): Probe {
  return {
    accelerator,
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
