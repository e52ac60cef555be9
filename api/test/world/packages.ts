// Packages that only a test needs, installed once from a lock file into the cache folder.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { defaultCacheFolder } from '../../../image/src/config.ts';

const run = promisify(execFile);
const CHECKOUT = join(import.meta.dirname, '../../..');
const FILES = ['package.json', 'package-lock.json'] as const;

/** Folder with the `node_modules` of the package.json and package-lock.json in `from`. */
export async function installPackages(from: string): Promise<string> {
  const hash = createHash('sha256');
  for (const name of FILES) hash.update(await readFile(join(from, name)));
  const folder = join(defaultCacheFolder(process.env), 'test-packages', hash.digest('hex').slice(0, 24));
  if (existsSync(folder)) return folder;

  await mkdir(dirname(folder), { recursive: true });
  const building = await mkdtemp(`${folder}.`);
  try {
    for (const name of FILES) await cp(join(from, name), join(building, name));
    await cp(join(CHECKOUT, '.npmrc'), join(building, '.npmrc'));
    // `npm ci` refuses a lock file without the packages of other systems, which a mirror may lack.
    await run('npm', ['install', '--loglevel=error', '--no-audit', '--no-fund'], {
      cwd: building,
      maxBuffer: 16 * 1_048_576,
    });
    // Fails if another test was first; its packages are the same.
    await rename(building, folder).catch((error: unknown) => {
      if (!existsSync(folder)) throw error;
    });
  } finally {
    await rm(building, { recursive: true, force: true });
  }
  return folder;
}
