// Provides this checkout's image, building it if absent: recipe, manifest, packages, stages, disk,
// publication, in this order.
import { copyFile, mkdir, open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { nullIf } from '@berth/os/errors.ts';
import type { ArchiveSource, PrivateApt } from './build/apt.ts';
import { machineArchive, preparePrivateApt } from './build/apt.ts';
import { ensureDebs, VanishedPackagesError } from './build/debs.ts';
import { sha256Of } from './build/digest.ts';
import { makeExt4 } from './build/ext4.ts';
import { makeInitramfs } from './build/initramfs.ts';
import type { Manifest } from './build/manifest.ts';
import { formatManifest, manifestDigest, packagesFor, parseManifest } from './build/manifest.ts';
import { overlayEntries } from './build/overlay.ts';
import type { Recipe, RecipeSources } from './build/recipe.ts';
import { loadRecipe } from './build/recipe.ts';
import { resolveManifest } from './build/resolve.ts';
import { makeRootStage } from './build/root-stage.ts';
import { ensureStage, stageKey } from './build/stage-folder.ts';
import { scanTar } from '@berth/os/tar.ts';
import { makeToolsStage, openTools } from './build/tools-stage.ts';
import { newestPackageSeconds } from './build/unpack.ts';
import type { Image } from './image-folder.ts';
import { describeImageFiles, IMAGE_FILES, ImageError, openImage } from './image-folder.ts';
import { waitForLock } from '@berth/os/file-lock.ts';
import type { OnProgress } from './build/progress.ts';

export type { Progress as BuildProgress } from './build/progress.ts';

interface EnsureImageOptions {
  /** Absolute path; made if missing. */
  cacheFolder: string;
  /** Builds from exactly these versions instead of the archive's newest. */
  manifestFile?: string;
  onProgress?: OnProgress;
  signal: AbortSignal;
  /** Overrides this checkout's recipe, for tests. */
  recipe?: RecipeSources;
  /** Overrides the host's archive, for tests. */
  archive?: ArchiveSource;
}

/** Ids are the first 96 bits of a SHA-256, in hex. */
function imageIdOf(recipe: Recipe, given: Manifest | null): string {
  // The id covers a given manifest, but not versions resolved from the archive.
  return sha256Of(JSON.stringify(given ? [recipe.hash, manifestDigest(given)] : [recipe.hash])).slice(0, 24);
}

/**
 * The verified image of this checkout's recipe, built if the cache folder lacks it. Needs root.
 * Safe to call from several processes at once: one builds, the others wait and use the result.
 */
export async function ensureImage(options: EnsureImageOptions): Promise<Image> {
  const { cacheFolder, signal, onProgress = () => undefined } = options;
  const recipe = await loadRecipe(options.recipe);
  const given = options.manifestFile === undefined ? null : await readGivenManifest(options.manifestFile, recipe);
  const imageId = imageIdOf(recipe, given);
  const folder = join(cacheFolder, 'image', imageId);
  const existing = await openExisting(folder, signal);
  if (existing !== null && !(existing instanceof ImageError)) return existing;

  if (process.getuid?.() !== 0) {
    throw new ImageError(
      'Building the image needs root: it sets the owners of the files in it. Run it as root, or with sudo.',
    );
  }

  if (process.arch !== 'x64')
    throw new ImageError(`Images can be built on x86-64 hosts only; this host is ${process.arch}`);
  await mkdir(cacheFolder, { recursive: true, mode: 0o755 });
  const waiting = (): void => onProgress({ step: 'lock', message: 'Wait for another build of the image' });
  const lock = await waitForLock(join(cacheFolder, 'image.lock'), waiting, signal);
  try {
    const meanwhile = await openExisting(folder, signal);
    if (meanwhile instanceof ImageError) return await repairImage(folder, meanwhile, recipe, options);
    if (meanwhile !== null) return meanwhile;
    return await buildImage(folder, imageId, recipe, given, options);
  } finally {
    await rm(join(cacheFolder, 'work'), { recursive: true, force: true, maxRetries: 5 });
    await lock.release();
  }
}

/** The image if present and intact, the fault if present but damaged, else null. */
async function openExisting(folder: string, signal: AbortSignal): Promise<Image | ImageError | null> {
  try {
    return await openImage(folder, { verify: 'remembered', signal });
  } catch (error) {
    if (!(error instanceof ImageError)) throw error;
    const there = await readFile(join(folder, 'image.json')).catch(() => null);
    return there === null ? null : error;
  }
}

async function readGivenManifest(path: string, recipe: Recipe): Promise<Manifest> {
  const manifest = parseManifest(await readFile(path, 'utf8'), path);
  if (manifest.recipeHash !== recipe.hash) {
    const programs = (['node', 'npm'] as const).filter((name) => manifest[name].version !== recipe[name].version);
    const differ = programs.map((name) => `${name} ${manifest[name].version}, here ${recipe[name].version}`).join('; ');
    throw new ImageError(
      `${path} belongs to another recipe (${manifest.recipeHash.slice(0, 12)}, ` +
        `this checkout has ${recipe.hash.slice(0, 12)}${differ === '' ? '' : `: ${differ}`}); ` +
        'the same packages would yield a different image. ' +
        'Use the checkout that created it, or build without a manifest.',
    );
  }
  return manifest;
}

interface BuildFolders {
  workFolder: string;
  stagesFolder: string;
}

async function freshWorkFolder(cacheFolder: string): Promise<BuildFolders> {
  // The lock is held, so any content was left by a killed build.
  const workFolder = join(cacheFolder, 'work');
  await rm(workFolder, { recursive: true, force: true, maxRetries: 5 });
  await mkdir(workFolder, { recursive: true, mode: 0o700 });
  return { workFolder, stagesFolder: join(cacheFolder, 'stages') };
}

async function buildImage(
  folder: string,
  imageId: string,
  recipe: Recipe,
  given: Manifest | null,
  options: EnsureImageOptions,
): Promise<Image> {
  const { cacheFolder, signal, onProgress = () => undefined } = options;
  const folders = await freshWorkFolder(cacheFolder);
  let apt: PrivateApt | null = null;
  const openApt = async (): Promise<PrivateApt> => {
    const source = options.archive ?? (await machineArchive(signal));
    apt ??= await preparePrivateApt(join(cacheFolder, 'apt'), source, recipe.suite);
    return apt;
  };
  if (!given) onProgress({ step: 'resolve', message: 'Read the archive and choose versions' });
  const manifest = given ?? (await resolveManifest(await openApt(), recipe, signal));
  const debPath = await ensureDebs(manifest, {
    folder: join(cacheFolder, 'debs'),
    workFolder: folders.workFolder,
    apt: openApt,
    onProgress,
    signal,
  });
  const unfinished = join(folders.workFolder, 'image');
  await makeImage(unfinished, {
    imageId,
    recipe,
    manifest,
    debPath,
    debsFolder: join(cacheFolder, 'debs'),
    folders,
    onProgress,
    signal,
  });
  return publish(unfinished, folder, signal);
}

interface ImageInputs {
  imageId: string;
  recipe: Recipe;
  manifest: Manifest;
  debPath: (each: Manifest['packages'][number]) => string;
  debsFolder: string;
  folders: BuildFolders;
  onProgress: OnProgress;
  signal: AbortSignal;
}

async function makeImage(folder: string, inputs: ImageInputs): Promise<void> {
  const { recipe, manifest, debPath, folders, onProgress, signal } = inputs;
  const source = (name: string): string => join(import.meta.dirname, 'build', name);
  const essential = packagesFor(manifest, 'essential');
  const packages = packagesFor(manifest, 'essential', 'root');
  const toolPackages = packagesFor(manifest, 'tools');
  const kernel = packagesFor(manifest, 'kernel');
  const timeSeconds = await newestPackageSeconds(manifest.packages.map(debPath));
  const digests = (list: Manifest['packages']): string[] => list.map((each) => each.sha256);

  const toolsKey = await stageKey(
    [digests(toolPackages), digests(kernel)],
    [source('tools-stage.ts'), source('unpack.ts')],
  );
  const toolsFolder = await ensureStage(folders, 'tools', toolsKey, (at) =>
    makeToolsStage(at, { tools: toolPackages, kernel, debPath }, onProgress, signal),
  );
  const tools = await openTools(toolsFolder);

  const scripts = await Promise.all(
    ['dpkg.cfg', 'install.sh', 'configure.sh'].map((name) => readFile(join(recipe.folder, name), 'utf8')),
  );
  const rootKey = await stageKey(
    [digests(essential), digests(packages), scripts, timeSeconds],
    ['root-stage.ts', 'inside-root.ts', 'unpack.ts'].map(source),
  );
  const rootFolder = await ensureStage(folders, 'root', rootKey, (at) =>
    makeRootStage(
      at,
      { essential, packages, debPath, debsFolder: inputs.debsFolder, recipeFolder: recipe.folder, timeSeconds },
      onProgress,
      signal,
    ),
  );

  onProgress({ step: 'disk', message: 'Write the root disk' });
  await mkdir(folder, { mode: 0o755 });
  await copyFile(tools.vmlinuz, join(folder, 'vmlinuz'));
  await writeFile(join(folder, 'initramfs'), await makeInitramfs(tools, recipe, timeSeconds, signal));
  const rootTar = join(rootFolder, 'root.tar');
  const { contentBytes, folders: existing } = await scanTar(rootTar);
  const overlay = await overlayEntries(recipe, tools, existing);
  await makeExt4(
    join(folder, 'root.ext4'),
    { rootTar, rootTarBytes: contentBytes, overlay, diskGib: recipe.diskGib, timeSeconds },
    tools,
    signal,
  );
  await writeFile(join(folder, 'manifest.json'), formatManifest(manifest));

  onProgress({ step: 'digest', message: 'Take the checksums' });
  const record = {
    format: 1,
    imageId: inputs.imageId,
    recipeHash: recipe.hash,
    manifestDigest: manifestDigest(manifest),
    kernelVersion: tools.kernelVersion,
    kernelArguments: recipe.kernelArguments,
    nodeVersion: recipe.node.version,
    builtAt: new Date().toISOString(),
    files: await describeImageFiles(folder, signal),
  };
  await writeFile(join(folder, 'image.json'), `${JSON.stringify(record, null, 2)}\n`);
}

/** Publishes the finished image atomically, after all of it is durable. */
async function publish(unfinished: string, folder: string, signal: AbortSignal): Promise<Image> {
  for (const name of [...IMAGE_FILES, 'image.json', '.']) {
    const handle = await open(join(unfinished, name));
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  }
  await mkdir(dirname(folder), { recursive: true, mode: 0o755 });
  const replaced = join(dirname(unfinished), 'replaced');
  await rename(folder, replaced).catch(nullIf('ENOENT'));
  await rename(unfinished, folder);
  await rm(replaced, { recursive: true, force: true });
  return openImage(folder, { verify: 'remembered', signal });
}

/**
 * Rebuilds a damaged image from its own manifest, and replaces it only if identical to the byte: VM
 * disks may be based on it.
 */
async function repairImage(
  folder: string,
  fault: ImageError,
  recipe: Recipe,
  options: EnsureImageOptions,
): Promise<Image> {
  const { onProgress = () => undefined } = options;
  onProgress({ step: 'repair', message: `Repair the image (${fault.message})` });
  const unusable = (reason: string, cause: unknown): ImageError =>
    new ImageError(
      `${fault.message}. It cannot be repaired: ${reason}. ` +
        `Remove ${folder} to build a new one; VMs created from it are lost.`,
      { cause },
    );
  const old = await readFile(join(folder, 'image.json'), 'utf8').then(
    (text) => JSON.parse(text) as { imageId: string; manifestDigest: string; files: Image['record']['files'] },
    (error: unknown) => Promise.reject(unusable('its image.json cannot be read', error)),
  );
  const manifest = await readFile(join(folder, 'manifest.json'), 'utf8').then(
    (text) => parseManifest(text, join(folder, 'manifest.json')),
    (error: unknown) => Promise.reject(unusable('its manifest cannot be read', error)),
  );
  if (manifestDigest(manifest) !== old.manifestDigest) throw unusable('its manifest was changed', fault);
  const aside = join(options.cacheFolder, 'work', 'repaired');
  const repaired = await buildImage(aside, old.imageId, recipe, manifest, options).catch((error: unknown) => {
    throw error instanceof VanishedPackagesError ? unusable(error.message, error) : error;
  });
  for (const name of IMAGE_FILES) {
    if (repaired.record.files[name].sha256 !== old.files[name]?.sha256)
      throw unusable(`rebuilding it yields a different ${name}`, fault);
  }

  return publish(aside, folder, options.signal);
}
