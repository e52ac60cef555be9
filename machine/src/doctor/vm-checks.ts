// What virtual machines are made from: image, template, and the accelerator that a probe chose. Looks only.
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { ImageError, openImage } from '@berth/image/image-folder.ts';
import type { Config } from '../config.ts';
import { fault, ok, warn } from './check.ts';
import type { Check, Finding } from './check.ts';

const BUILD = './berth up and ./berth demo build it';

export function vmChecks(config: Config, signal: AbortSignal): Check[] {
  return [{ subject: 'image', run: () => checkImages(config, signal) }];
}

async function checkImages(config: Config, signal: AbortSignal): Promise<Finding[]> {
  const folders = await foldersIn(join(config.cacheFolder, 'image'));
  if (folders.length === 0) {
    return [warn('image', 'not built yet', BUILD)];
  }
  return Promise.all(
    folders.map(async (folder) => {
      try {
        const image = await openImage(folder, { verify: 'full', signal });
        return ok('image', `${image.imageId}: kernel ${image.kernelVersion}, every file is what was built`);
      } catch (error) {
        if (error instanceof ImageError) {
          return fault('image', error.message, `./berth up repairs it, or says why it cannot`);
        }
        throw error;
      }
    }),
  );
}

export async function foldersIn(folder: string): Promise<string[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map((entry) => join(folder, entry.name));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') {
      return [];
    }
    throw error;
  }
}
