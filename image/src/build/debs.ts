// The store of package files, `<cache>/debs`, verified on every use. Downloads them and reports
// versions that vanished.
import { mkdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { OnProgress } from './progress.ts';
import type { PrivateApt } from './apt.ts';
import { archiveRecords, fetchFiles, updateIndices } from './apt.ts';
import { CommandError } from '@berth/os/command.ts';
import { sha256OfFile } from '@berth/os/digest.ts';
import { nullIf } from '@berth/os/errors.ts';
import type { Manifest, ManifestPackage } from './manifest.ts';
import { debFileName } from './manifest.ts';

/** Versions in a manifest that the archive no longer has. */
export class VanishedPackagesError extends Error {
  override readonly name = 'VanishedPackagesError';
  readonly packages: { name: string; version: string; available: string[] }[];

  constructor(packages: { name: string; version: string; available: string[] }[]) {
    const lines = packages.map(({ name, version, available }) => {
      const now = available.length === 0 ? 'no version is available now' : `available now: ${available.join(', ')}`;
      return `  ${name} ${version} (${now})`;
    });
    super(
      'The archive no longer has these versions of the manifest; ' +
        `resolve again, or put their files into the debs folder:\n${lines.join('\n')}`,
    );
    this.packages = packages;
  }
}

export class ChecksumError extends Error {
  override readonly name = 'ChecksumError';
}

async function matches(path: string, each: ManifestPackage): Promise<boolean> {
  const found = await stat(path).catch(nullIf('ENOENT'));
  return found !== null && found.size === each.sizeBytes && (await sha256OfFile(path)) === each.sha256;
}

/**
 * Ensures that the folder holds every package of the manifest with the right digest, and returns
 * their paths. Downloads files with a wrong digest again. Throws {@link VanishedPackagesError} with
 * all unavailable versions.
 */
export async function ensureDebs(
  manifest: Manifest,
  options: {
    folder: string;
    workFolder: string;
    apt: () => Promise<PrivateApt>;
    onProgress: OnProgress;
    signal: AbortSignal;
  },
): Promise<(each: ManifestPackage) => string> {
  const { folder, workFolder, onProgress, signal } = options;
  await mkdir(folder, { recursive: true });
  const pathOf = (each: ManifestPackage): string => join(folder, debFileName(each));
  const missing: ManifestPackage[] = [];
  for (const each of manifest.packages) {
    signal.throwIfAborted();
    if (!(await matches(pathOf(each), each))) missing.push(each);
  }
  if (missing.length === 0) return pathOf;

  const apt = await options.apt();
  const partialFolder = join(workFolder, 'download');
  await mkdir(partialFolder, { recursive: true });
  const megabytes = Math.ceil(missing.reduce((sum, each) => sum + each.sizeBytes, 0) / 1e6);
  let fetched = 0;
  const report = (): void =>
    onProgress({
      step: 'download',
      message: `Download packages (${megabytes} MB)`,
      done: fetched,
      total: missing.length,
    });
  report();
  const files = missing.map((each) => ({
    uri: `${apt.source[each.archive]}${each.poolPath}`,
    path: join(partialFolder, debFileName(each)),
    sha256: each.sha256,
  }));
  const words = await fetchFiles(
    apt,
    files,
    () => {
      fetched = Math.min(fetched + 1, missing.length);
      report();
    },
    signal,
  );

  const failed: ManifestPackage[] = [];
  for (const each of missing) {
    const partial = join(partialFolder, debFileName(each));
    // Verify the digest here, whichever tool downloaded the file.
    if (await matches(partial, each)) await rename(partial, pathOf(each));
    else failed.push(each);
  }
  await rm(partialFolder, { recursive: true, force: true });
  if (failed.length > 0) await explain(apt, failed, words, signal);
  return pathOf;
}

/**
 * Throws the reason for missing packages: gone from the archive, other content under the same
 * version, or a failed download.
 */
async function explain(
  apt: PrivateApt,
  failed: readonly ManifestPackage[],
  words: string,
  signal: AbortSignal,
): Promise<never> {
  await updateIndices(apt, signal);
  const records = await archiveRecords(apt, [...new Set(failed.map((each) => each.name))], signal).catch(
    (error: unknown) => {
      if (error instanceof CommandError && error.exitCode === 100) return []; // not one of the names is in the archive
      throw error;
    },
  );
  const ofVersion = (each: ManifestPackage): typeof records =>
    records.filter((record) => record.name === each.name && record.version === each.version);
  const vanished = failed.filter((each) => ofVersion(each).length === 0);
  if (vanished.length > 0) {
    throw new VanishedPackagesError(
      vanished.map(({ name, version }) => ({
        name,
        version,
        available: [...new Set(records.filter((record) => record.name === name).map((record) => record.version))],
      })),
    );
  }
  const changed = failed.filter((each) => ofVersion(each).every((record) => record.sha256 !== each.sha256));
  if (changed.length > 0) {
    const lines = changed.map(
      (each) => `  ${each.name} ${each.version}: manifest ${each.sha256}, archive ${ofVersion(each)[0]?.sha256}`,
    );
    throw new ChecksumError(`The archive's content of these versions differs from the manifest:\n${lines.join('\n')}`);
  }
  throw new Error(
    `${failed.length} package files could not be downloaded (${failed.map((each) => each.name).join(', ')}):\n${words}`,
  );
}
