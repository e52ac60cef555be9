// The initramfs: a static busybox, the modules for disk and network, and the script that mounts the
// disk.
import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { runInsideRoot } from './inside-root.ts';
import type { Tools } from './tools-stage.ts';

interface CpioEntry {
  path: string;
  mode: number;
  content: Buffer;
}

const FOLDER = 0o040755;
const PROGRAM = 0o100755;
const FILE = 0o100644;

/** A cpio `newc` archive, the kernel's format, owned by root with one time everywhere. */
export function cpioArchive(entries: readonly CpioEntry[], timeSeconds: number): Buffer {
  const padded = (part: Buffer): Buffer => Buffer.concat([part, Buffer.alloc((4 - (part.length % 4)) % 4)]);
  const record = (entry: CpioEntry, inode: number): Buffer => {
    const links = entry.mode === FOLDER ? 2 : 1;
    const name = `${entry.path}\0`;
    const size = entry.content.length;
    const fields = [
      inode,
      entry.mode,
      0,
      0,
      links,
      inode === 0 ? 0 : timeSeconds,
      size,
      0,
      0,
      0,
      0,
      Buffer.byteLength(name),
      0,
    ];
    const head = `070701${fields.map((field) => field.toString(16).padStart(8, '0')).join('')}${name}`;
    return Buffer.concat([padded(Buffer.from(head)), padded(entry.content)]);
  };
  const end = record({ path: 'TRAILER!!!', mode: 0, content: Buffer.alloc(0) }, 0);
  return Buffer.concat([...entries.map((entry, index) => record(entry, index + 1)), end]);
}

/**
 * Load order of modules, dependencies first, from the text of `modules.dep` (`path: path ...`).
 * Skips modules built into the kernel (`builtin`, from `modules.builtin`). Returns paths as in
 * `modules.dep`.
 */
export function moduleLoadOrder(wanted: readonly string[], modulesDep: string, builtin: string): string[] {
  const nameOf = (path: string): string =>
    basename(path)
      .replace(/\.ko(\.\w+)?$/, '')
      .replaceAll('-', '_');
  const needs = new Map<string, string[]>();
  for (const line of modulesDep.split('\n')) {
    const [path, list] = line.split(':');
    if (path && list !== undefined) needs.set(path, list.trim().split(/\s+/).filter(Boolean));
  }
  const pathOf = new Map([...needs.keys()].map((path) => [nameOf(path), path]));
  const inKernel = new Set(builtin.split('\n').filter(Boolean).map(nameOf));
  const order: string[] = [];
  const add = (path: string): void => {
    if (order.includes(path)) return;
    for (const needed of needs.get(path) ?? []) add(needed);
    order.push(path);
  };
  for (const name of wanted) {
    const path = pathOf.get(nameOf(name));
    if (path !== undefined) add(path);
    else if (!inKernel.has(nameOf(name))) throw new Error(`The kernel has no module ${name}`);
  }
  return order;
}

/** The archive's bytes, uncompressed: fastest to unpack on an emulated CPU. */
export async function makeInitramfs(
  tools: Tools,
  recipe: { folder: string; initramfsModules: readonly string[] },
  timeSeconds: number,
  signal: AbortSignal,
): Promise<Buffer> {
  const read = (name: string): Promise<string> => readFile(join(tools.modulesFolder, name), 'utf8');
  const order = moduleLoadOrder(recipe.initramfsModules, await read('modules.dep'), await read('modules.builtin'));
  const modules: CpioEntry[] = [];
  for (const path of order)
    modules.push({ path: `modules/${plainName(path)}`, mode: FILE, content: await moduleBytes(tools, path, signal) });

  const folders = ['bin', 'dev', 'modules', 'proc', 'root', 'sys'].map((path) => ({
    path,
    mode: FOLDER,
    content: Buffer.alloc(0),
  }));
  const entries: CpioEntry[] = [
    ...folders,
    { path: 'bin/busybox', mode: PROGRAM, content: await readFile(tools.busybox) },
    { path: 'init', mode: PROGRAM, content: await readFile(join(recipe.folder, 'initramfs/init')) },
    { path: 'modules.order', mode: FILE, content: Buffer.from(order.map((path) => `${plainName(path)}\n`).join('')) },
    ...modules,
  ];
  return cpioArchive(entries, timeSeconds);
}

function plainName(path: string): string {
  return basename(path).replace(/\.xz$/, '');
}

async function moduleBytes(tools: Tools, path: string, signal: AbortSignal): Promise<Buffer> {
  if (!path.endsWith('.xz')) return readFile(join(tools.modulesFolder, path));
  const shown = { '/mnt': tools.modulesFolder };
  return runInsideRoot(tools.root, ['xz', '--decompress', '--stdout', `/mnt/${path}`], {
    signal,
    readOnlyRoot: true,
    readOnly: shown,
  });
}
