// Copies the packages of the development servers into sandboxes of the fake driver.
import { execFile } from 'node:child_process';
import { chown, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { installPackages } from '../../world/packages.ts';

const run = promisify(execFile);

/** Copies `node_modules` into a folder below `/code` of a sandbox, for its user. */
export async function copyPackages(installation: string, sandboxId: string, folder: string): Promise<void> {
  const installed = await installPackages(import.meta.dirname);
  const { stdout } = await run('find', [installation, '-type', 'd', '-path', `*${sandboxId}*/code/${folder}`]);
  const target = stdout.trim();
  if (target === '' || target.includes('\n')) throw new Error(`${sandboxId} has no folder ${folder}: ${stdout}`);

  await run('cp', ['-a', join(installed, 'node_modules'), target]);
  const { uid, gid } = await stat(target);
  await chown(join(target, 'node_modules'), uid, gid);
}
