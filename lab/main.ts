// `npm run lab -- CHECK`: boots a Debian machine with emulated virtualization, and runs a check in
// it. Exits with the check's exit code.
import { spawnSync } from 'node:child_process';
import { messageOf } from '@berth/os/errors.ts';
import { CHECKS } from './checks.ts';
import { LabFolder } from './disks/folder.ts';
import { makeRootDisk } from './disks/root-disk.ts';
import { makeWorkDisk } from './disks/work-disk.ts';

const USAGE = `usage: npm run lab -- CHECK

Checks:
${Object.entries(CHECKS)
  .map(([name, { purpose }]) => `  ${name.padEnd(10)} ${purpose}`)
  .join('\n')}`;

async function run([name = '', ...args]: readonly string[]): Promise<number> {
  const check = CHECKS[name];
  if (check === undefined) throw new Error(USAGE);
  if (process.getuid?.() !== 0) return asRoot();

  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => stop.abort(new Error(`stopped by ${signal}`)));
  const folder = await LabFolder.open(stop.signal);
  try {
    const root = await makeRootDisk(folder, stop.signal);
    const work = await makeWorkDisk(folder, stop.signal);
    return await check.run({ folder, root, work, args, signal: stop.signal });
  } finally {
    await folder.close();
  }
}

/** Disks hold files of many users, and the network of the lab needs rights. */
function asRoot(): number {
  const again = spawnSync('sudo', ['--', process.execPath, ...process.argv.slice(1)], { stdio: 'inherit' });
  return again.status ?? 1;
}

try {
  process.exitCode = await run(process.argv.slice(2));
} catch (error) {
  console.error(`lab: ${messageOf(error)}`);
  process.exitCode = 1;
}
