// Makes the configured driver with its host-specific parts. The only place that knows both drivers.
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { nullIf } from '@berth/os/errors.ts';
import type { HostConfig } from './config.ts';
import type { Guests } from './guest/client.ts';
import type { AnswerMessage } from './network/dns/questions.ts';
import type { DataFolder } from './vm/directory/data-folder.ts';
import type { VmDriver, VmSize } from './vm/driver.ts';
import { createQemuDriver } from './vm/qemu/driver.ts';
import { LARGEST } from './vm/machine-size.ts';

/** Parsers of what guests send. */
interface GuestParsers {
  guests: Guests;
  answer: AnswerMessage;
}

interface MadeDriver {
  driver: VmDriver;
  /** Null for a driver without QEMU. */
  qemuVersion: string | null;
  templateId: string | null;
  /** Processor models that VMs can have under KVM. */
  cpuModels: readonly string[];
  /** The driver's largest VM. */
  largest: VmSize;
}

/** The prepared driver. Throws with what is missing. */
export async function makeDriver(
  config: HostConfig,
  data: DataFolder,
  { guests, answer }: GuestParsers,
  log: Logger,
): Promise<MadeDriver> {
  if (config.driver === 'fake') {
    // Loaded on demand: the fake needs the guest's bundler, which only a development checkout has.
    const { FakeDriver } = await import('./vm/fake/driver.ts');
    const driver = new FakeDriver(data.instanceId, config.fakeAgents);
    await driver.prepare();
    return { driver, qemuVersion: null, templateId: null, cpuModels: [], largest: LARGEST };
  }
  const driver = createQemuDriver({
    cacheFolder: config.cacheFolder,
    imageFolder: config.imageFolder ?? (await newestImageFolder(config.cacheFolder)),
    guests,
    cgroup: config.vmCgroup,
    rates: config.diskRates,
    network: {
      instanceId: data.instanceId,
      dataFolder: config.dataFolder,
      cidr: config.guestCidr,
      rateMbit: config.networkMbit,
      answer,
      log: ({ level, message, error }) => log[level]({ err: error }, message),
    },
    log: (level, message, fields) => log[level](fields, message),
  });
  await driver.prepare();
  return { driver, ...driver.facts(), largest: LARGEST };
}

/** The image built last, used if none is configured. Throws if there is none. */
export async function newestImageFolder(cacheFolder: string): Promise<string> {
  const images = join(cacheFolder, 'image');
  let newest: { folder: string; builtMs: number } | null = null;
  for (const name of await namesIn(images)) {
    const folder = join(images, name);
    const built = await stat(join(folder, 'image.json')).catch(nullIf('ENOENT', 'ENOTDIR'));
    if (built !== null && (newest === null || built.mtimeMs > newest.builtMs))
      newest = { folder, builtMs: built.mtimeMs };
  }
  if (newest === null) throw new Error(`no guest image in ${images}: run berth up, or set --image-folder`);

  return newest.folder;
}

async function namesIn(folder: string): Promise<string[]> {
  return (await readdir(folder).catch(nullIf('ENOENT', 'ENOTDIR'))) ?? [];
}
