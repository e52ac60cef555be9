// Packs npm packages of this checkout, with their dependencies, into an archive to unpack in a
// guest's project. Guests have no internet in tests, and share the host's CPU architecture, so
// packages installed here run there.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const CHECKOUT = join(import.meta.dirname, '../..');
const MOST_BYTES = 256 * 1_048_576;
const run = promisify(execFile);

interface Manifest {
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
}

/** A compressed tar archive of `node_modules/…`, with installed optional dependencies. */
export async function packPackages(names: readonly string[]): Promise<Buffer> {
  const folders = new Map<string, string>();
  const add = async (name: string): Promise<void> => {
    if (folders.has(name)) return;
    const folder = join('node_modules', name);
    folders.set(name, folder);
    const manifest = JSON.parse(await readFile(join(CHECKOUT, folder, 'package.json'), 'utf8')) as Manifest;
    for (const dependency of Object.keys(manifest.dependencies ?? {})) {
      // A nested dependency is packed with its package.
      if (!existsSync(join(CHECKOUT, folder, 'node_modules', dependency))) await add(dependency);
    }
    for (const dependency of Object.keys(manifest.optionalDependencies ?? {}))
      if (existsSync(join(CHECKOUT, 'node_modules', dependency, 'package.json'))) await add(dependency);
  };
  for (const name of names) await add(name);
  const args = ['-C', CHECKOUT, '--owner=0', '--group=0', '-czf', '-', ...folders.values()];
  const { stdout } = await run('tar', args, { encoding: 'buffer', maxBuffer: MOST_BYTES });
  return stdout;
}
