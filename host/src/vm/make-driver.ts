// Chooses the driver that the configuration names and gives it what it needs of this machine. The only place that knows both.
import type { Logger } from 'pino';
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
export async function makeDriver(_config: HostConfig, _data: DataFolder, _log: Logger): Promise<MadeDriver> {
  throw new Error('no driver yet');
}
