// Builds the web console into a folder of the cache, once for each state of its sources and
// packages. The folder appears complete or not at all.
import { createHash } from 'node:crypto';
import { chmod, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { waitForLock } from '@berth/os/file-lock.ts';
import { build } from 'vite';
import { CONSOLE, viteConfig } from './config.ts';

interface BuildOptions {
  /** Absolute path; made if missing. */
  cacheFolder: string;
  signal: AbortSignal;
  /** Folder of another `index.html`, for tests. */
  root?: string;
}

const CHECKOUT = join(CONSOLE, '..');
/** Everything that decides the result, relative to the checkout. */
const INPUTS = [
  'console/src',
  'console/build',
  'console/index.html',
  'sdk/src',
  'sdk/package.json',
  'package.json',
] as const;
const LOCK_FILE = 'package-lock.json';
const COMPRESSED = /\.(?:css|html|js|json|svg)$/;

/**
 * Returns the folder of this checkout's console, built if the cache lacks it. Safe to call from
 * several processes at once: one builds, the others wait.
 */
export async function ensureConsole({ cacheFolder, signal, root = CONSOLE }: BuildOptions): Promise<string> {
  const folder = join(cacheFolder, `console-${await hashOfInputs(root)}`);
  if (await exists(folder)) return folder;
  await mkdir(cacheFolder, { recursive: true, mode: 0o755 });
  const lock = await waitForLock(join(cacheFolder, 'console.lock'), () => undefined, signal);
  try {
    if (await exists(folder)) return folder;
    // Left by a build that was killed, if present.
    const partial = join(cacheFolder, 'console-partial');
    await rm(partial, { recursive: true, force: true });
    const config = viteConfig(root);
    // Vite sets it for this process, whose children would inherit it.
    const { NODE_ENV: before } = process.env;
    await build({ ...config, build: { ...config.build, outDir: partial, emptyOutDir: true } });
    if (before === undefined) delete process.env['NODE_ENV'];
    else process.env['NODE_ENV'] = before;
    await finish(partial);
    await rename(partial, folder);
    return folder;
  } finally {
    await lock.release();
  }
}

async function hashOfInputs(root: string): Promise<string> {
  const paths = [...INPUTS.map((path) => join(CHECKOUT, path)), ...(root === CONSOLE ? [] : [root])];
  const files = [...(await Promise.all(paths.map(filesOf))).flat().sort(), join(CHECKOUT, LOCK_FILE)];
  const hash = createHash('sha256');
  for (const file of files) {
    const content = await readFile(file);
    hash.update(`${file.slice(CHECKOUT.length)}\0${content.length}\0`).update(content);
  }
  return hash.digest('hex').slice(0, 24);
}

async function filesOf(path: string): Promise<string[]> {
  if ((await stat(path)).isFile()) return [path];
  const entries = await readdir(path, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

/** Compresses the files, and makes them readable for the API's user under any umask. */
async function finish(folder: string): Promise<void> {
  const files = await filesOf(folder);
  await Promise.all(files.filter((file) => COMPRESSED.test(file)).map(compress));
  for (const file of await filesOf(folder)) await chmod(file, 0o644);
  for (const path of [folder, join(folder, 'assets')]) await chmod(path, 0o755);
}

async function compress(file: string): Promise<void> {
  const content = await readFile(file);
  const params = { [constants.BROTLI_PARAM_SIZE_HINT]: content.length };
  await writeFile(`${file}.br`, await promisify(brotliCompress)(content, { params }));
  await writeFile(`${file}.gz`, await promisify(gzip)(content, { level: 9 }));
}

async function exists(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  );
}
