// Chooses the driver that the configuration names and gives it what it needs of this machine. The only place that knows both.
import type { HostConfig } from '../config.ts';
import type { DataFolder } from '../data-folder.ts';
import type { VmDriver } from './driver.ts';

export interface MadeDriver {
  driver: VmDriver;
  /** Null for a driver without. */
  qemuVersion: string | null;
  templateId: string | null;
}

/** The driver, prepared. Throws with what is missing. */
export async function makeDriver(config: HostConfig, data: DataFolder): Promise<MadeDriver> {
  if (config.driver === 'fake') {
    // Loaded on demand: the fake needs the guest's bundler, which an installation does not have.
    const { FakeDriver } = await import('./fake/driver.ts');
    const driver = new FakeDriver(data.instanceId);
    await driver.prepare();
    return { driver, qemuVersion: null, templateId: null };
  }
  throw new Error('the QEMU driver is not wired yet');
}
