// Work disk of a run: this checkout with its npm packages, and the caches that `./berth test` has
// filled. Nothing is fetched inside the lab.
import { access, mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { defaultCacheFolder } from '@berth/machine/config/folders.ts';
import { runCommand } from '@berth/os/command.ts';
import type { LabFolder } from './folder.ts';
import { makeFileSystem } from './file-system.ts';

const CHECKOUT = join(import.meta.dirname, '../..');
const SIZE_GIB = 24;
/** Caches that a service or a test needs; a template is built inside, under KVM. */
const CACHES = /^(?:image|image-sources|postgres|postgres-tests|console-[0-9a-f]+)$/;

/** Returns the path of a raw disk with the label `work`. */
export async function makeWorkDisk({ run }: LabFolder, signal: AbortSignal): Promise<string> {
  console.log('• work disk: copying the checkout and the caches');
  const staged = join(run, 'work');
  const checkout = join(staged, 'berth');
  await mkdir(join(staged, 'cache'), { recursive: true });
  await mkdir(join(staged, 'tmp'), { mode: 0o1777 });
  await mkdir(checkout);

  const files = ['ls-files', '-z', '--cached', '--others', '--exclude-standard'];
  const listed = (await runCommand('git', ['-C', CHECKOUT, ...files], { signal })).split('\0').filter(Boolean);
  const folders = ['node_modules', ...(await workspacesWithPackages())];
  await copy(CHECKOUT, [...(await present(listed)), ...folders], checkout, signal);

  const cache = defaultCacheFolder(process.env);
  const caches = (await readdir(cache)).filter((name) => CACHES.test(name));
  if (!caches.includes('image')) throw new Error(`${cache} has no image: run ./berth test host/test/vm/qemu once`);
  await copy(cache, caches, join(staged, 'cache'), signal);

  const disk = join(run, 'work.ext4');
  await makeFileSystem(disk, { folder: staged, gib: SIZE_GIB, label: 'work' }, signal);
  await rm(staged, { recursive: true });
  return disk;
}

async function workspacesWithPackages(): Promise<string[]> {
  const folders = await readdir(CHECKOUT, { withFileTypes: true });
  const inside = folders.filter((entry) => entry.isDirectory()).map(({ name }) => join(name, 'node_modules'));
  return await present(inside);
}

/** The paths that exist: the index of git also lists deleted files. */
async function present(paths: readonly string[]): Promise<string[]> {
  const found = await Promise.all(
    paths.map((path) =>
      access(join(CHECKOUT, path)).then(
        () => [path],
        () => [],
      ),
    ),
  );
  return found.flat();
}

/** Copies by hard links where the folders share a file system: the copies are only read. */
async function copy(from: string, paths: readonly string[], to: string, signal: AbortSignal): Promise<void> {
  const input = (): Readable => Readable.from(paths.map((path) => `${path}\0`));
  const all = (...flags: string[]): Promise<string> =>
    runCommand(
      'sh',
      [
        '-c',
        'cd "$1" && shift && exec xargs -0 cp --archive --parents "$@"',
        'sh',
        from,
        ...flags,
        `--target-directory=${to}`,
      ],
      {
        signal,
        input: input(),
      },
    );
  await all('--link').catch(() => all());
}
