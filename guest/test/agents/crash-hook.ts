// Preloaded into the guest daemon and its bridges by crash tests (`--import HOOK?FOLDER`). Logs
// each change of an agent file, and ends the process at one of them as `kill -9` would, or fails
// writes.
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';

/** In FOLDER/order.json. Changes are counted from 1, per process, since the order was written. */
export interface CrashOrder {
  id: string;
  /** Program that crashes. */
  role: 'daemon' | 'bridge';
  /** Number of the change; 0 crashes at none. */
  at: number;
  /**
   * `torn`: before the change, after half of a write. `after`: right after the change. `full`: no
   * end; this write and all later ones fail for lack of space.
   */
  moment: 'torn' | 'after' | 'full';
}

const AGENT_FILES = /\/(agent-sessions|agent-bridges|agents)(\/|$)|\/agent-run/;

const folder = decodeURIComponent(new URL(import.meta.url).search.slice(1));
const role = process.argv[1]?.includes('/agent-bridges/') === true ? 'bridge' : 'daemon';
const real = { ...fs };
let orderId = '';
let count = 0;
/** Node's writeFileSync calls openSync and writeSync. */
let isInner = false;

function readOrder(): CrashOrder | null {
  try {
    const order = JSON.parse(real.readFileSync(join(folder, 'order.json'), 'utf8')) as CrashOrder;
    return order.role === role ? order : null;
  } catch {
    return null;
  }
}

/** Makes the change, unless the order ends the process after a part of it, or right after it. */
function change<T>(name: string, path: string, make: () => T, tear?: () => void): T {
  const order = !isInner && AGENT_FILES.test(path) ? readOrder() : null;
  if (order === null) return make();

  if (order.id !== orderId) [orderId, count] = [order.id, 0];
  const isFull = order.moment === 'full';
  if (isFull && name === 'write' && count + 1 >= order.at)
    throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
  const ends = order.at === count + 1 && !isFull;
  const line = `${name} ${path.replace(/^.*\//, '')}\n`;
  isInner = true;
  try {
    const isTorn = ends && order.moment === 'torn';
    if (isTorn) tear?.();
    // An error changes nothing, such as EEXIST.
    const made = isTorn ? undefined : make();
    count += 1;
    real.appendFileSync(join(folder, `${order.id}.log`), line);
    if (ends) process.kill(process.pid, 'SIGKILL');
    return made as T;
  } finally {
    isInner = false;
  }
}

const half = (data: unknown): Buffer => {
  const bytes = Buffer.from(data as string);
  return bytes.subarray(0, Math.floor(bytes.length / 2));
};
const pathOf = (fd: number): string => real.readlinkSync(`/proc/self/fd/${fd}`);

Object.assign(fs, {
  writeSync: (fd: number, bytes: Buffer, ...rest: [number, number]) =>
    change(
      'write',
      pathOf(fd),
      () => real.writeSync(fd, bytes, ...rest),
      () => real.writeSync(fd, half(bytes)),
    ),
  writeFileSync: (path: string, data: string, options?: fs.WriteFileOptions) =>
    change(
      'write',
      path,
      () => real.writeFileSync(path, data, options),
      () => real.writeFileSync(path, half(data), options),
    ),
  openSync: (path: string, flags: string, mode?: number) =>
    flags === 'r' ? real.openSync(path, flags) : change('open', path, () => real.openSync(path, flags, mode)),
  ftruncateSync: (fd: number, bytes: number) => change('truncate', pathOf(fd), () => real.ftruncateSync(fd, bytes)),
  renameSync: (from: string, to: string) => change('rename', from, () => real.renameSync(from, to)),
  rmSync: (path: string, options?: fs.RmOptions) => change('remove', path, () => real.rmSync(path, options)),
  mkdirSync: (path: string, options?: fs.MakeDirectoryOptions) =>
    change('make', path, () => real.mkdirSync(path, options)),
});
syncBuiltinESMExports();
