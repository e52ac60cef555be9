// Entry point for set-up and doctor: this host's accelerator and an image's template. Reads the
// installed QEMU and the processor, on which both depend.
import type { Image } from '@berth/image/image-folder.ts';
import { readHostPlatform } from './vm/qemu/machine/host-platform.ts';
import { readQemuVersion } from './vm/qemu/machine/qemu-version.ts';
import { readProbe, type Probe } from './vm/qemu/template/accelerator.ts';
import { ensureTemplate as ensure, type BuildOrder } from './vm/qemu/template/build/build.ts';
import { findTemplate, templateFacts } from './vm/qemu/template/template.ts';

export { DriverError } from './vm/driver.ts';
export { readProbe, type Probe };

/** Builds the image's template unless a verified one exists; probes KVM first. */
export async function ensureTemplate(order: Omit<BuildOrder, 'version' | 'host'>): Promise<void> {
  const [version, host] = await Promise.all([readQemuVersion(), readHostPlatform()]);
  await ensure({ ...order, version, host });
}

/**
 * Verifies the image's template and returns its id, null if it is not built yet. Rejects with
 * {@link DriverError} if it is damaged.
 */
export async function verifyTemplate(
  cacheFolder: string,
  image: Pick<Image, 'imageId'>,
  probe: Pick<Probe, 'accelerator' | 'cpuModel'>,
): Promise<string | null> {
  const [version, host] = await Promise.all([readQemuVersion(), readHostPlatform()]);
  const found = await findTemplate(cacheFolder, templateFacts(image.imageId, version, probe, host));
  return found?.templateId ?? null;
}
