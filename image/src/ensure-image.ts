// Provides this checkout's image, building it if absent: recipe, manifest, packages, stages, disk,
// publication, in this order.
import { copyFile, mkdir, open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { nullIf } from '@berth/os/errors.ts';
import { PROTOCOL_VERSION } from '@berth/protocol/guest-limits.ts';
import type { AgentId } from './build/agent-selection.ts';
import { ensureAgents } from './build/agents.ts';
import type { ArchiveSource, PrivateApt } from './build/apt.ts';
import { machineArchive, preparePrivateApt } from './build/apt.ts';
import { ensureDebs, VanishedPackagesError } from './build/debs.ts';
import { makeExt4 } from './build/ext4.ts';
import { readGivenManifest } from './given-manifest.ts';
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
import { describeImageFiles, IMAGE_FILES, ImageError, imageIdOf, openImage } from './image-folder.ts';
import { imageFolder, imageOfSource, noteImageOfSource, sourceKeyOf } from './image-sources.ts';
import { waitForLock } from '@berth/os/file-lock.ts';
import type { OnProgress } from './build/progress.ts';

export type { Progress as BuildProgress } from './build/progress.ts';

interface EnsureImageOptions {
  /** Absolute path; made if missing. */
  cacheFolder: string;
  /** Builds from exactly these versions instead of the archive's newest. */
  manifestFile?: string;
  /** Coding agents of the image; default: all. */
  agents?: readonly AgentId[];
  /** npm's user configuration, if it is not that of this process' user. */
  npmConfigFile?: string;
  onProgress?: OnProgress;
  signal: AbortSignal;
  /** Overrides this checkout's recipe, for tests. */
  recipe?: RecipeSources;
  /** Overrides the host's archive, for tests. */
  archive?: ArchiveSource;
}

/**
 * The verified image of this checkout's recipe, built if the cache folder lacks it. Needs root.
 * Safe to call from several processes at once: one builds, the others wait and use the result.
 */
export async function ensureImage(options: EnsureImageOptions): Promise<Image> {
  const { cacheFolder, signal, onProgress = () => undefined } = options;
  const recipe = await loadRecipe({ ...(options.agents && { agents: options.agents }), ...options.recipe });
  const given = options.manifestFile === undefined ? null : await readGivenManifest(options.manifestFile, recipe);
  const source = { cacheFolder, key: sourceKeyOf(recipe, given) };
  const existing = await imageOfSource(source, signal);
  if (existing?.image !== undefined) return existing.image;

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
    const meanwhile = await imageOfSource(source, signal);
    if (meanwhile?.image !== undefined) return meanwhile.image;
    if (meanwhile !== null) return await repairImage(meanwhile.folder, meanwhile.fault, recipe, options);
    const built = await buildImage(recipe, given, options);
    const image = await publish(built.folder, imageFolder(cacheFolder, built.imageId), signal);
    await noteImageOfSource(source, image.imageId);
    return image;
  } finally {
    await rm(join(cacheFolder, 'work'), { recursive: true, force: true, maxRetries: 5 });
    await lock.release();
  }
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

/** Builds an image in the work folder. */
async function buildImage(recipe: Recipe, given: Manifest | null, options: EnsureImageOptions): Promise<Image> {
  const { cacheFolder, signal, onProgress = () => undefined, npmConfigFile } = options;
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
  const { workFolder } = folders;
  const agentFolders = await ensureAgents(recipe.agents, {
    cacheFolder,
    workFolder,
    onProgress,
    signal,
    npmConfigFile,
  });
  const unfinished = join(workFolder, 'image');
  await makeImage(unfinished, {
    recipe,
    manifest,
    debPath,
    debsFolder: join(cacheFolder, 'debs'),
    agentFolders,
    folders,
    onProgress,
    signal,
  });
  return openImage(unfinished, { verify: 'remembered', signal });
}

interface ImageInputs {
  recipe: Recipe;
  manifest: Manifest;
  debPath: (each: Manifest['packages'][number]) => string;
  debsFolder: string;
  agentFolders: ReadonlyMap<string, string>;
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
  const overlay = await overlayEntries(recipe, tools, inputs.agentFolders, existing);
  await makeExt4(
    join(folder, 'root.ext4'),
    { rootTar, rootTarBytes: contentBytes, overlay, diskGib: recipe.diskGib, timeSeconds },
    tools,
    signal,
  );
  await writeFile(join(folder, 'manifest.json'), formatManifest(manifest));

  onProgress({ step: 'digest', message: 'Take the checksums' });
  const content = {
    format: 2 as const,
    guestProtocol: PROTOCOL_VERSION,
    recipeHash: recipe.hash,
    manifestDigest: manifestDigest(manifest),
    kernelVersion: tools.kernelVersion,
    kernelArguments: recipe.kernelArguments,
    nodeVersion: recipe.node.version,
    builtAt: new Date().toISOString(),
    files: await describeImageFiles(folder, signal),
  };
  const record = { imageId: imageIdOf(content), ...content };
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
    (text) => JSON.parse(text) as { manifestDigest: string; files: Image['record']['files'] },
    (error: unknown) => Promise.reject(unusable('its image.json cannot be read', error)),
  );
  const manifest = await readFile(join(folder, 'manifest.json'), 'utf8').then(
    (text) => parseManifest(text, join(folder, 'manifest.json')),
    (error: unknown) => Promise.reject(unusable('its manifest cannot be read', error)),
  );
  if (manifestDigest(manifest) !== old.manifestDigest) throw unusable('its manifest was changed', fault);
  const repaired = await buildImage(recipe, manifest, options).catch((error: unknown) => {
    throw error instanceof VanishedPackagesError ? unusable(error.message, error) : error;
  });
  for (const name of IMAGE_FILES) {
    if (repaired.record.files[name].sha256 !== old.files[name]?.sha256)
      throw unusable(`rebuilding it yields a different ${name}`, fault);
  }

  return publish(repaired.folder, folder, options.signal);
}
