// The installed root file system as a tar archive, made from the manifest's packages alone with the
// root's own dpkg. Without the overlay.
import { chmod, copyFile, mkdir, open, rm, rmdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { OnProgress } from './progress.ts';
import { runInsideRoot } from './inside-root.ts';
import type { ManifestPackage } from './manifest.ts';
import { debFileName } from './manifest.ts';
import { unpackDebs } from './unpack.ts';

interface RootStage {
  essential: readonly ManifestPackage[];
  packages: readonly ManifestPackage[];
  debsFolder: string;
  debPath: (each: ManifestPackage) => string;
  recipeFolder: string;
  /** Used as the time of the build. */
  timeSeconds: number;
}

/** Writes `root.tar` into the folder. */
export async function makeRootStage(
  folder: string,
  stage: RootStage,
  onProgress: OnProgress,
  signal: AbortSignal,
): Promise<void> {
  const { essential, packages, timeSeconds } = stage;
  const root = join(folder, 'root');
  const message = 'Install the root file system';
  // Each package is unpacked and configured; the essential ones are unpacked once more beforehand,
  // so that dpkg can run.
  const total = essential.length + 2 * packages.length;
  let done = 0;
  const step = (): void => onProgress({ step: 'root', message, done: ++done, total });
  onProgress({ step: 'root', message, done, total });

  await mkdir(root);
  await chmod(root, 0o755);
  // base-files makes the links of the merged /usr, through which all others must unpack.
  const first = essential.find((each) => each.name === 'base-files');
  if (!first) throw new Error('The manifest has no base-files');
  await unpackDebs([first, ...essential.filter((each) => each !== first)].map(stage.debPath), root, signal, step);
  await prepareDpkg(root, stage.recipeFolder);

  const list = (wanted: readonly ManifestPackage[]): string =>
    wanted.map((each) => `${each.name} ${debFileName(each)}\n`).join('');
  const rest = packages.filter((each) => !essential.includes(each));
  await writeFile(join(folder, 'essential'), list(essential));
  await writeFile(join(folder, 'rest'), list(rest));
  const env = {
    DEBIAN_FRONTEND: 'noninteractive',
    DEBCONF_NONINTERACTIVE_SEEN: 'true',
    SOURCE_DATE_EPOCH: String(timeSeconds),
    // Compiled Python stores the order of sets.
    PYTHONHASHSEED: '0',
  };
  const onLine = (line: string): void => {
    if (/^(Unpacking|Setting up) /.test(line)) step();
  };
  const script = (name: string): string[] => ['/bin/sh', '-c', 'umask 022; exec sh "$0"', `/run/${name}`];
  const shown = {
    '/var/cache/debs': stage.debsFolder,
    '/run/essential': join(folder, 'essential'),
    '/run/rest': join(folder, 'rest'),
    '/run/install.sh': join(stage.recipeFolder, 'install.sh'),
  };
  await runInsideRoot(root, script('install.sh'), { signal, env, onLine, readOnly: shown });
  await rmdir(join(root, 'var/cache/debs'));
  onProgress({ step: 'configure', message: 'Configure the root file system' });
  const configure = { '/run/configure.sh': join(stage.recipeFolder, 'configure.sh') };
  await runInsideRoot(root, script('configure.sh'), { signal, env, readOnly: configure });
  await archiveRoot(root, join(folder, 'root.tar'), timeSeconds, signal);
  for (const name of ['root', 'essential', 'rest']) await rm(join(folder, name), { recursive: true });
}

/** Files that dpkg needs before it is installed. */
async function prepareDpkg(root: string, recipeFolder: string): Promise<void> {
  for (const name of ['alternatives', 'info', 'parts', 'triggers', 'updates'])
    await mkdir(join(root, 'var/lib/dpkg', name), { recursive: true, mode: 0o755 });

  for (const name of ['status', 'available']) await writeFile(join(root, 'var/lib/dpkg', name), '', { mode: 0o644 });
  await mkdir(join(root, 'etc/dpkg/dpkg.cfg.d'), { recursive: true, mode: 0o755 });
  const config = join(root, 'etc/dpkg/dpkg.cfg.d/berth');
  await copyFile(join(recipeFolder, 'dpkg.cfg'), config);
  await chmod(config, 0o644);
}

/** Makes a reproducible archive: sorted, numeric owners, no time later than the build's. */
async function archiveRoot(root: string, path: string, timeSeconds: number, signal: AbortSignal): Promise<void> {
  const output = await open(path, 'wx', 0o600);
  const args = [
    ['tar', '--create', '--file=-', '--directory=/mnt', '--format=pax', '--sort=name', '--numeric-owner'],
    [`--mtime=@${timeSeconds}`, '--clamp-mtime', '--xattrs', '--xattrs-include=security.capability'],
    ['--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime', '.'],
  ].flat();
  try {
    await runInsideRoot(root, args, { signal, readOnlyRoot: true, readOnly: { '/mnt': root }, stdoutFd: output.fd });
    await output.sync();
  } finally {
    await output.close();
  }
}

/** Links of the merged /usr, for a tree without base-files. */
export async function linkMergedUsr(root: string): Promise<void> {
  for (const name of ['bin', 'lib', 'lib64', 'sbin']) {
    await mkdir(join(root, 'usr', name), { recursive: true });
    await symlink(`usr/${name}`, join(root, name));
  }
}
