// Checks of VM prerequisites: the probed accelerator, the image, the template. Read-only.
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { DriverError, readProbe, verifyTemplate } from '@berth/host/template.ts';
import type { Probe } from '@berth/host/template.ts';
import { agentsOf, ImageError, openImage } from '@berth/image/image-folder.ts';
import type { Image } from '@berth/image/image-folder.ts';
import { nullIf } from '@berth/os/errors.ts';
import type { Config } from '../../config/config.ts';
import { fault, ok, warn } from '../../doctor/check.ts';
import type { Check, Finding } from '../../doctor/check.ts';
import { commandHint } from '../../output/command-hint.ts';
import { servedUrls } from '../control-plane/service.ts';
import { EMULATION_RISK, emulationFault } from './emulation.ts';

/** The remedy of missing parts: the command that creates them in the same folders. */
const up = (config: Config): string => commandHint('up', config, '--cache-dir', config.cacheFolder);

export function vmChecks(config: Config, environment: Readonly<NodeJS.ProcessEnv>, signal: AbortSignal): Check[] {
  const images: Image[] = [];
  return [
    { subject: 'accelerator', run: () => checkAccelerator(config, environment) },
    { subject: 'image', run: () => checkImages(config, signal, images) },
    { subject: 'template', run: () => checkTemplate(config, images) },
  ];
}

async function checkAccelerator(config: Config, environment: Readonly<NodeJS.ProcessEnv>): Promise<Finding[]> {
  const probe = await probeOrFault(config);
  if (probe === null)
    return [warn('accelerator', 'not probed yet for this QEMU, kernel and processor', `${up(config)} creates it`)];

  if ('grade' in probe) return [probe];

  const detail =
    `${probe.accelerator}: ${probe.reason} ` +
    `(QEMU ${probe.qemuVersion}, kernel ${probe.hostKernel}, ${probe.hostCpu}` +
    `${probe.cpuModels.length > 0 ? `; processors: ${probe.cpuModels.join(', ')}` : ''})`;
  if (probe.accelerator === 'kvm') return [ok('accelerator', detail)];

  const found = emulationFault(probe.accelerator, servedUrls(config, environment), environment);
  return found === null
    ? [warn('accelerator', detail, EMULATION_RISK)]
    : [fault('accelerator', `${detail}; ${found.message}`, found.remedy)];
}

async function probeOrFault(config: Config): Promise<Probe | Finding | null> {
  try {
    return await readProbe(config.cacheFolder);
  } catch (error) {
    if (error instanceof DriverError) return fault('accelerator', error.message, `${up(config)} creates it`);

    throw error;
  }
}

/**
 * Reads every byte of the newest image, the one in use, and of older ones only what changed since
 * their last check. Adds the newest to `found` if intact.
 */
async function checkImages(config: Config, signal: AbortSignal, found: Image[]): Promise<Finding[]> {
  const folders = await foldersIn(join(config.cacheFolder, 'image'));
  if (folders.length === 0) return [warn('image', 'not built yet', `${up(config)} creates it`)];

  const findings: Finding[] = [];
  const open = async (folder: string, verify: 'remembered' | 'full'): Promise<Image | null> => {
    try {
      return await openImage(folder, { verify, signal });
    } catch (error) {
      if (error instanceof ImageError) {
        findings.push(fault('image', error.message, `${up(config)} repairs it, or reports why it cannot`));
        return null;
      }
      throw error;
    }
  };
  const images = (await Promise.all(folders.map((folder) => open(folder, 'remembered')))).filter(
    (image) => image !== null,
  );
  const [newest, ...older] = images.toSorted((one, other) => other.record.builtAt.localeCompare(one.record.builtAt));
  if (newest !== undefined && (await open(newest.folder, 'full')) !== null) {
    found.push(newest);
    findings.push(ok('image', `${newest.imageId}: kernel ${newest.kernelVersion}, all checksums match`));
    const agents = (await agentsOf(newest)).map(({ id, package: name }) => `${id} (${name})`);
    findings.push(ok('agents', agents.join(', ') || 'none in the image (BERTH_AGENTS)'));
  }
  if (older.length > 0) {
    findings.push(
      ok('image', `older images, which sandboxes may still use: ${older.map((image) => image.imageId).join(', ')}`),
    );
  }

  return findings;
}

async function checkTemplate(config: Config, images: readonly Image[]): Promise<Finding[]> {
  const probe = await probeOrFault(config);
  if (probe === null || 'grade' in probe || images.length === 0)
    return [warn('template', 'not built yet', `${up(config)} creates it`)];

  return Promise.all(
    images.map(async (image) => {
      try {
        const templateId = await verifyTemplate(config.cacheFolder, image, probe);
        return templateId !== null
          ? ok('template', `${templateId} of image ${image.imageId}, verified`)
          : warn('template', `image ${image.imageId} has no template for this QEMU`, `${up(config)} creates it`);
      } catch (error) {
        if (error instanceof DriverError) return fault('template', error.message, `${up(config)} rebuilds it`);

        throw error;
      }
    }),
  );
}

async function foldersIn(folder: string): Promise<string[]> {
  const entries = (await readdir(folder, { withFileTypes: true }).catch(nullIf('ENOENT'))) ?? [];
  return entries.filter((entry) => entry.isDirectory()).map((entry) => join(folder, entry.name));
}
