// The packages of the development servers, installed once from the lock file beside this module
// into the cache folder, and copied into sandboxes of the fake driver.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chown, cp, mkdir, mkdtemp, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { defaultCacheFolder } from '../../../../image/src/config.ts';

const run = promisify(execFile);
const HERE = import.meta.dirname;
const CHECKOUT = join(HERE, '../../../..');
const FILES = ['package.json', 'package-lock.json'] as const;

/** Copies `node_modules` into a folder below `/code` of a sandbox, for its user. */
export async function copyPackages(installation: string, sandboxId: string, folder: string): Promise<void> {
  const installed = await installPackages();
  const { stdout } = await run('find', [installation, '-type', 'd', '-path', `*${sandboxId}*/code/${folder}`]);
  const target = stdout.trim();
  if (target === '' || target.includes('\n')) throw new Error(`${sandboxId} has no folder ${folder}: ${stdout}`);

  await run('cp', ['-a', join(installed, 'node_modules'), target]);
  const { uid, gid } = await stat(target);
  await chown(join(target, 'node_modules'), uid, gid);
}

async function installPackages(): Promise<string> {
  const hash = createHash('sha256');
  for (const name of FILES) hash.update(await readFile(join(HERE, name)));
  const folder = join(defaultCacheFolder(process.env), 'test-packages', hash.digest('hex').slice(0, 24));
  if (existsSync(folder)) return folder;

  await mkdir(dirname(folder), { recursive: true });
  const building = await mkdtemp(`${folder}.`);
  try {
    for (const name of FILES) await cp(join(HERE, name), join(building, name));
    await cp(join(CHECKOUT, '.npmrc'), join(building, '.npmrc'));
    // `npm ci` refuses a lock file without the packages of other systems, which a mirror may lack.
    await run('npm', ['install', '--loglevel=error', '--no-audit', '--no-fund'], {
      cwd: building,
      maxBuffer: 16 * 1_048_576,
    });
    await rename(building, folder);
  } finally {
    await rm(building, { recursive: true, force: true });
  }
  return folder;
}
